//! The process that writes into a run's folder.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::time::SystemTime;

/// The process that writes into a run's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Holder {
    /// Its process id.
    pub pid: Option<u32>,
    /// The machine that it runs on.
    pub host: Option<String>,
    /// When it locked the folder, RFC 3339.
    pub since: Option<String>,
}

impl Holder {
    pub(crate) fn this_process() -> Self {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
        let since = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        Self { pid: Some(std::process::id()), host, since: Some(since) }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "process {pid}")?,
            None => f.write_str("another process")?,
        }
        if let Some(host) = &self.host {
            write!(f, " on {host}")?;
        }
        match &self.since {
            Some(since) => write!(f, " since {since}"),
            None => Ok(()),
        }
    }
}
