//! A language model that `gavel serve` serves.

use crate::demo;
use crate::failure::{Failure, Result};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// `gavel serve`. It ends when it is dropped.
pub struct Served {
    child: Child,
    /// `HOST:PORT`
    pub address: String,
}

impl Served {
    /// Serves the checkpoint under the name `judge`.
    pub fn start(root: &Path, checkpoint: &str) -> Result<Self> {
        let what = || Failure::new(format!("cannot serve {checkpoint}"));
        let mut child = Command::new(demo::built(root, "gavel"))
            .args(["serve", "--port", "0", "--name", "judge", "-m", checkpoint])
            .current_dir(root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| what().why(error))?;
        let mut line = String::new();
        let read = child.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
        let address = line.trim().rsplit_once("http://").map(|(_, address)| address.trim_end_matches("/v1").to_owned());
        // Dropped, and so ended, where there is no address.
        let mut served = Self { child, address: String::new() };
        served.address =
            address.ok_or_else(|| what().why(format!("it printed {line:?} ({read:?}); its message is above")))?;
        Ok(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}
