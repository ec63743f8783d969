//! `trackers/NAME.json`: what a tracker was sent. It is written after each request that the tracker has answered.

use crate::error::{Result, SendError};
use crate::numbers::Numbers;
use gavel_data::disk;
use gavel_data::files::{make_folder, open_unlinked, read_regular, write_whole};
use gavel_runs::layout;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The most bytes of the file.
const MOST_BYTES: u64 = 16 << 20;
/// The length of an id.
const ID: usize = 16;

/// What a tracker was sent of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// Where it was sent. Another place begins anew.
    pub(crate) target: String,
    /// The run's id, which Gavel chose.
    pub(crate) id: String,
    /// When the run began, in seconds since 1970 (UTC).
    pub(crate) since: f64,
    /// The id that the tracker chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remote: Option<String>,
    /// Whether it has the configuration.
    #[serde(default)]
    pub(crate) has_config: bool,
    /// The last numbers that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<SentNumbers>,
    /// The end of the run that it has: when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) end: Option<f64>,
}

/// Numbers that a tracker has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SentNumbers {
    pub(crate) step: u64,
    pub(crate) at: Option<f64>,
    pub(crate) names: BTreeSet<String>,
}

impl Sent {
    /// What the tracker `name` was sent of `run`, if that was sent to `target`.
    pub(crate) fn read(run: &Path, name: &str, target: &str) -> Result<Option<Self>> {
        let path = layout::tracker(run, name);
        let text = match read_regular(&path, MOST_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SendError::io("read", &path)(error)),
        };
        let sent: Self = serde_json::from_slice(&text)
            .map_err(|error| SendError::Damaged { path: path.clone(), what: error.to_string() })?;
        Ok(Some(sent).filter(|sent| sent.target == target))
    }

    /// Nothing was sent yet of a run that began at `since`.
    pub(crate) fn nothing(run: &Path, target: &str, since: f64) -> Self {
        let (target, id) = (target.to_owned(), new_id(run));
        Self { target, id, since, remote: None, has_config: false, last: None, end: None }
    }

    pub(crate) fn write(&self, run: &Path, name: &str) -> Result<()> {
        let (folder, path) = (layout::trackers(run), layout::tracker(run, name));
        make_folder(&folder).map_err(SendError::io("make the folder", &folder))?;
        let text = serde_json::to_vec(self).map_err(std::io::Error::from);
        text.and_then(|text| write_whole(&path, &text)).map_err(SendError::io("write", &path))
    }

    /// Notes that the tracker has these numbers.
    pub(crate) fn note(&mut self, numbers: &Numbers) {
        match &mut self.last {
            Some(last) if last.step == numbers.step && last.at == numbers.at => last.names.append(&mut numbers.names()),
            _ => self.last = Some(SentNumbers { step: numbers.step, at: numbers.at, names: numbers.names() }),
        }
    }
}

/// An id that no other run has.
fn new_id(run: &Path) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    // An address of this process, which differs from start to start.
    let address = std::ptr::from_ref(&now) as usize;
    hasher.update(&address.to_le_bytes());
    hasher.update(run.as_os_str().as_encoded_bytes());
    hasher.update(&now.as_nanos().to_le_bytes());
    hasher.update(&std::process::id().to_le_bytes());
    hasher.finalize().to_hex()[..ID].to_owned()
}

/// Held by the process that sends a run to its trackers.
pub(crate) struct SendLock(#[expect(dead_code, reason = "the lock ends with it")] Option<File>);

impl SendLock {
    /// # Errors
    /// Another process has it.
    pub(crate) fn take(run: &Path) -> Result<Self> {
        let folder = layout::trackers(run);
        make_folder(&folder).map_err(SendError::io("make the folder", &folder))?;
        let path = folder.join("lock");
        let mut options = OpenOptions::new();
        let file = open_unlinked(&path, options.create(true).read(true).write(true).truncate(false));
        let file = file.map_err(SendError::io("lock", &path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(Some(file))),
            Err(TryLockError::WouldBlock) => Err(SendError::Busy { run: run.to_owned() }),
            // A disk without locks.
            Err(TryLockError::Error(_)) => Ok(Self(None)),
        }
    }
}

/// Removes a file, if it is there.
pub(crate) fn remove_file(path: &Path) -> Result<()> {
    match disk::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(SendError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_kept_for_its_target() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(Sent::read(run.path(), "mlflow", "http://a").unwrap(), None);
        let mut sent = Sent::nothing(run.path(), "http://a", 5.0);
        assert_eq!(sent.id.len(), ID);
        assert_ne!(sent.id, Sent::nothing(run.path(), "http://a", 5.0).id);
        let numbers = |step, name: &str| Numbers { step, at: Some(1.5), values: vec![(name.to_owned(), 0.5)] };
        sent.note(&numbers(1, "a"));
        sent.note(&numbers(2, "b"));
        // A validation added to the step.
        sent.note(&numbers(2, "c"));
        sent.write(run.path(), "mlflow").unwrap();
        assert_eq!(Sent::read(run.path(), "mlflow", "http://a").unwrap().as_ref(), Some(&sent));
        assert_eq!(sent.last.unwrap().names.into_iter().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(Sent::read(run.path(), "mlflow", "http://b").unwrap(), None);
        std::fs::write(layout::tracker(run.path(), "mlflow"), "{\"target\":").unwrap();
        let error = Sent::read(run.path(), "mlflow", "http://a").unwrap_err().to_string();
        assert!(error.contains("mlflow.json is damaged: ") && error.contains("hint: remove it"), "{error}");
    }

    #[test]
    fn one_process_sends_a_run() {
        let run = tempfile::tempdir().unwrap();
        let lock = SendLock::take(run.path()).unwrap();
        assert!(matches!(SendLock::take(run.path()), Err(SendError::Busy { .. })));
        drop(lock);
        SendLock::take(run.path()).unwrap();
    }
}
