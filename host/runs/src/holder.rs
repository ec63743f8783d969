//! The process that writes into a run's folder.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::path::Path;
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
        let since = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        Self { pid: Some(std::process::id()), host: this_machine(), since: Some(since) }
    }

    pub(crate) fn is_of_this_machine(&self) -> bool {
        self.host.is_some() && self.host == this_machine()
    }

    /// Whether this machine has a process with its number.
    pub(crate) fn is_alive(&self) -> bool {
        self.pid.is_some_and(|pid| Path::new("/proc").join(pid.to_string()).exists())
    }
}

fn this_machine() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned())
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
