//! The folder through which processes share the use of the limits. Anybody may have written what it holds.

use super::state::State;
use gavel_data::files::open_unlinked;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most processes that share a folder.
const MOST: u32 = 4096;
/// The most bytes of a state: as many processes have a quarter of it.
const STATE_BYTES: u64 = 1 << 20;
/// The file of the state.
const STATE: &str = "state.json";
/// How often the lock of the state is tried: 10 s in all. Other processes hold it for a moment.
const TRIES: u32 = 2000;
/// The time between two tries.
const RETRY: Duration = Duration::from_millis(5);

/// A folder of a limit, and this process in it. Times are the system's.
pub(crate) struct Folder {
    path: PathBuf,
    /// The number of this process among the processes that share the folder.
    id: u32,
    /// Locked as long as this process lives.
    alive: File,
    /// How often the lock of the state is tried: once, if all tries were in vain before.
    tries: AtomicU32,
    /// What was reported: once each, since a folder that stays unusable is met with every request.
    reported: Mutex<BTreeSet<String>>,
}

/// Opens a regular file to lock, but not through a link. The lock ends when the file is closed.
fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = open_unlinked(path, options.read(true).write(true))?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// The same; creates the file if it is missing.
fn open_or_create(path: &Path) -> io::Result<File> {
    open(path, OpenOptions::new().create(true)).map_err(|error| {
        let name = path.file_name().unwrap_or_default();
        io::Error::new(error.kind(), format!("{}: {error}", name.display()))
    })
}

/// Locks the state. Another process that was stopped, or that anybody started, may hold it for ever.
fn lock(file: &File, tries: u32) -> io::Result<()> {
    for _ in 0..tries {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(RETRY),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, format!("{STATE}: another process keeps it locked")))
}

/// Replaces the content of a locked file, which releases the lock.
fn write(mut file: File, state: &State) -> io::Result<()> {
    let text = serde_json::to_vec(state)?;
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(&text)
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started has it open until its program begins.
        let _ = self.alive.unlock();
    }
}

impl Folder {
    /// Makes this process one of those that share the folder. `own` is the state of its limits, unused.
    ///
    /// # Errors
    /// The folder or a file of it cannot be used.
    pub(crate) fn open(path: &Path, own: &mut State) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        for id in 1..=MOST {
            let alive = open_or_create(&path.join(format!("{id}.lock")))?;
            if alive.try_lock().is_ok() {
                let (tries, reported) = (TRIES.into(), Mutex::default());
                let folder = Self { path: path.to_owned(), id, alive, tries, reported };
                let (file, now) = folder.read(own)?;
                own.at = now;
                return write(file, own).map(|()| folder);
            }
        }
        Err(io::Error::other(format!("{MOST} processes share it already")))
    }

    /// Changes the shared state, which becomes `state`, on behalf of this process. `change` gets its number and the
    /// time.
    pub(crate) fn change<T>(&self, state: &mut State, change: impl FnOnce(&mut State, u32, f64) -> T) -> T {
        let (file, now) = match self.read(state) {
            Ok((file, now)) => (Ok(file), now),
            Err(error) => (Err(error), now()),
        };
        let changed = change(state, self.id, now);
        state.at = now;
        if let Err(error) = file.and_then(|file| write(file, state)) {
            let path = self.path.display();
            self.report(format!("cannot share a limit through {path}: {error}; it holds in this process alone"));
        }
        changed
    }

    /// Locks the shared state, and reads it into `state`. If it cannot be parsed, `state` becomes the shared state.
    /// Returns the time, which no process that has the lock later finds earlier.
    fn read(&self, state: &mut State) -> io::Result<(File, f64)> {
        let path = self.path.join(STATE);
        let mut file = open_or_create(&path)?;
        let locked = lock(&file, self.tries.load(Ordering::Relaxed));
        self.tries.store(if locked.is_ok() { TRIES } else { 1 }, Ordering::Relaxed);
        locked?;
        let mut text = Vec::new();
        if Read::by_ref(&mut file).take(STATE_BYTES + 1).read_to_end(&mut text)? as u64 > STATE_BYTES {
            let what = format!("{STATE}: it has more than {STATE_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        let now = now();
        // A process that was killed while it wrote leaves half a state.
        if let Ok(mut shared) = serde_json::from_slice::<State>(&text) {
            shared.in_flight.retain(|id, _| (1..=MOST).contains(id));
            for what in state.adopt(shared, self.id, now) {
                self.report(format!("{}: {what}", path.display()));
            }
        }
        Ok((file, now))
    }

    /// Whether the process with this number lives and shares the folder.
    pub(crate) fn is_alive(&self, id: u32) -> bool {
        let path = self.path.join(format!("{id}.lock"));
        id == self.id || open(&path, &mut OpenOptions::new()).is_ok_and(|file| file.try_lock().is_err())
    }

    fn report(&self, what: String) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if !reported.contains(&what) {
            tracing::warn!("{what}");
            reported.insert(what);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::table::LimiterTable;

    #[test]
    fn a_state_that_stays_locked_is_waited_for_once() {
        let root = tempfile::tempdir().unwrap();
        let mut state = State::new(&LimiterTable::default());
        let folder = Folder::open(root.path(), &mut state).unwrap();
        let other = File::open(root.path().join(STATE)).unwrap();
        other.lock().unwrap();
        let error = lock(&open_or_create(&root.path().join(STATE)).unwrap(), 2).unwrap_err().to_string();
        assert_eq!(error, "state.json: another process keeps it locked");
        folder.tries.store(2, Ordering::Relaxed);
        assert!(folder.read(&mut state).is_err());
        assert_eq!(folder.tries.load(Ordering::Relaxed), 1);
        // The limits hold in this process alone.
        assert_eq!(folder.change(&mut state, |_, id, _| id), 1);
        other.unlock().unwrap();
        assert!(folder.read(&mut state).is_ok());
        assert_eq!(folder.tries.load(Ordering::Relaxed), TRIES);
    }
}
