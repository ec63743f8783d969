//! One process at a time writes into a run's folder. It locks the file `lock`,
//! which names the process. The system releases the lock when the process ends,
//! however it ends.

use crate::error::{Result, RunError};
use crate::holder::Holder;
use crate::layout;
use gavel_data::files::{open_regular, open_unlinked};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;

/// The most bytes of an entry that is read.
const ENTRY_BYTES: u64 = 4096;
/// How often a locked file is tried again: [`writer`] has it locked for a moment.
const TRIES: usize = 20;
/// The time between two tries.
const PAUSE: Duration = Duration::from_millis(5);

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
        match lock_patiently(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(RunError::InUse { run: run.to_owned(), holder: read_holder(file) });
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

/// The process that writes into `run`; `None` if there is none. On a disk without locks, it is the process that the lock
/// names, unless that was on this machine and has ended.
///
/// # Errors
/// The lock cannot be read.
pub fn writer(run: &Path) -> Result<Option<Holder>> {
    let path = layout::lock(run);
    let file = match open_regular(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RunError::io("read", &path)(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => {
            // Closing the file would do, but for a child process that is being started.
            let _ = file.unlock();
            Ok(None)
        }
        Err(TryLockError::WouldBlock) => Ok(Some(read_holder(file))),
        Err(TryLockError::Error(_)) => {
            let holder = read_holder(file);
            let is_over = holder.is_of_this_machine() && !holder.is_alive();
            Ok(Some(holder).filter(|_| !is_over))
        }
    }
}

/// Whether the lock of `run` names a process, as every run's lock does since its start.
pub(crate) fn names_process(run: &Path) -> bool {
    open_regular(&layout::lock(run)).is_ok_and(|file| read_holder(file).pid.is_some())
}

/// The entry in a lock, as far as it can be read: the process may be writing it right now.
fn read_holder(file: File) -> Holder {
    let mut text = String::new();
    let read = file.take(ENTRY_BYTES).read_to_string(&mut text);
    read.ok().and_then(|_| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn lock_patiently(file: &File) -> std::result::Result<(), TryLockError> {
    for _ in 1..TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            tried => return tried,
        }
    }
    file.try_lock()
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
    fn a_reader_knows_who_writes_and_keeps_nobody_out() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(writer(run.path()).unwrap(), None);
        let lock = RunLock::take(run.path()).unwrap();
        assert_eq!(writer(run.path()).unwrap().unwrap().pid, Some(std::process::id()));
        drop(lock);
        assert_eq!(writer(run.path()).unwrap(), None);
        // Readers do not keep each other out, and leave no lock behind.
        let reader = File::open(layout::lock(run.path())).unwrap();
        reader.lock_shared().unwrap();
        assert_eq!(writer(run.path()).unwrap(), None);
        let file = File::open(layout::lock(run.path())).unwrap();
        assert!(matches!(lock_patiently(&file), Err(TryLockError::WouldBlock)));
        reader.unlock().unwrap();
        lock_patiently(&file).unwrap();
    }

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
