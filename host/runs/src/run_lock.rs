//! One process at a time writes into a run's folder. It locks the file `lock`,
//! which names the process. The system releases the lock when the process ends,
//! however it ends.

use crate::error::{Result, RunError};
use crate::holder::Holder;
use crate::layout;
use gavel_data::files::open_unlinked;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

/// The most bytes of an entry that is read.
const ENTRY_BYTES: u64 = 4096;

/// Held while this process writes into a run's folder.
pub(crate) struct RunLock {
    file: File,
}

impl RunLock {
    /// Locks the run's folder.
    ///
    /// # Errors
    /// Another process has locked it.
    pub(crate) fn take(run: &Path) -> Result<Self> {
        let path = layout::lock(run);
        let io = |error| RunError::io("lock", &path)(error);
        let mut options = OpenOptions::new();
        let mut file = open_unlinked(&path, options.create(true).read(true).write(true).truncate(false)).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The other process may be writing its entry right now.
                let read = file.take(ENTRY_BYTES).read_to_string(&mut text);
                let holder = read.ok().and_then(|_| serde_json::from_str(&text).ok());
                return Err(RunError::InUse { run: run.to_owned(), holder: holder.unwrap_or_default() });
            }
            Err(TryLockError::Error(error)) => tracing::warn!(
                "{} cannot be locked ({error}): nothing keeps a second process out of this run",
                path.display()
            ),
        }
        let text = serde_json::to_vec(&Holder::this_process()).map_err(|error| io(error.into()))?;
        file.set_len(0).and_then(|()| file.write_all(&text)).map_err(io)?;
        Ok(Self { file })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started has it open until its program begins.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_second_process_is_told_of_the_first() {
        let run = tempfile::tempdir().unwrap();
        let lock = RunLock::take(run.path()).unwrap();
        let Err(RunError::InUse { holder, .. }) = RunLock::take(run.path()) else { panic!("it was taken twice") };
        assert_eq!(holder.pid, Some(std::process::id()));
        let said = holder.to_string();
        assert!(said.starts_with("process ") && said.contains(" since 20"), "{said}");
        drop(lock);
        // No more of it is read than an entry has.
        let lock = RunLock::take(run.path()).unwrap();
        let entry = fs::read_to_string(layout::lock(run.path())).unwrap();
        fs::write(layout::lock(run.path()), format!("{entry}{}", " ".repeat(4096))).unwrap();
        let Err(RunError::InUse { holder, .. }) = RunLock::take(run.path()) else { panic!("it was taken twice") };
        assert_eq!(holder.pid, Some(std::process::id()));
        fs::write(layout::lock(run.path()), format!("{}{entry}", " ".repeat(4096))).unwrap();
        let Err(RunError::InUse { holder, .. }) = RunLock::take(run.path()) else { panic!("it was taken twice") };
        assert_eq!(holder.pid, None);
        drop(lock);
        // The content that an earlier holder left is ignored.
        fs::write(layout::lock(run.path()), "x".repeat(500)).unwrap();
        let _lock = RunLock::take(run.path()).unwrap();
        let Err(RunError::InUse { holder, .. }) = RunLock::take(run.path()) else { panic!("it was taken twice") };
        assert_eq!(holder.pid, Some(std::process::id()));
    }
}
