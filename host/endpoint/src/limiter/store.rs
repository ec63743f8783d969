//! Stores the use of the limits: in this process, or in a folder that processes share.

use super::state::State;
use super::table::LimiterTable;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The most processes that share a folder.
const MOST: u32 = 4096;

/// The use of the limits.
pub(crate) struct Store {
    state: Mutex<State>,
    kind: Kind,
}

enum Kind {
    /// The use by this process alone. Times count from here.
    Own(Instant),
    /// The use by all processes with this folder. Times are the system's.
    Shared(Folder),
}

struct Folder {
    path: PathBuf,
    /// The number of this process among the processes that share the folder.
    id: u32,
    /// Locked as long as this process lives.
    alive: File,
}

/// Opens a file to lock, and creates it if it is missing. The lock ends when the file is closed.
fn lock_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)
}

/// Replaces the content of a locked file, which releases the lock.
fn write(mut file: File, state: &State) -> io::Result<()> {
    let text = serde_json::to_vec(state)?;
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(&text)
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started has it open until its program begins.
        let _ = self.alive.unlock();
    }
}

impl Folder {
    fn open(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        for id in 1..=MOST {
            let alive = lock_file(&path.join(format!("{id}.lock")))?;
            if alive.try_lock().is_ok() {
                return Ok(Self { path: path.to_owned(), id, alive });
            }
        }
        Err(io::Error::other(format!("{MOST} processes share it already")))
    }

    /// Locks the shared state, and reads it into `state`. If it cannot be read, `state` becomes the shared state.
    fn read(&self, state: &mut State) -> io::Result<File> {
        let mut file = lock_file(&self.path.join("state.json"))?;
        file.lock()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        // A process that was killed while it wrote leaves half a state.
        if let Ok(shared) = serde_json::from_str(&text) {
            *state = shared;
        }
        Ok(file)
    }

    fn is_alive(&self, id: u32) -> bool {
        let path = self.path.join(format!("{id}.lock"));
        id == self.id || lock_file(&path).is_ok_and(|file| file.try_lock().is_err())
    }
}

impl Store {
    pub(crate) fn open(table: &LimiterTable) -> io::Result<Self> {
        let kind = match &table.share {
            None => Kind::Own(Instant::now()),
            Some(path) => Kind::Shared(Folder::open(path)?),
        };
        let store = Self { state: Mutex::default(), kind };
        *store.lock() = State::new(table, store.now());
        store.change(|state, id| {
            // They are from an earlier process with this number.
            state.in_flight.remove(&id);
            state.configure(table, store.now());
        });
        Ok(store)
    }

    /// Whether other processes may change it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.kind, Kind::Shared(_))
    }

    /// The current time, in the time of the state.
    pub(crate) fn now(&self) -> f64 {
        match &self.kind {
            Kind::Own(start) => start.elapsed().as_secs_f64(),
            Kind::Shared(_) => SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
        }
    }

    /// Changes the state on behalf of this process, whose number `change` gets.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State, u32) -> T) -> T {
        let mut state = self.lock();
        let folder = match &self.kind {
            Kind::Own(_) => return change(&mut state, 0),
            Kind::Shared(folder) => folder,
        };
        let file = folder.read(&mut state);
        let changed = change(&mut state, folder.id);
        // Without the file, the limits hold in this process at least.
        if let Err(error) = file.and_then(|file| write(file, &state)) {
            tracing::warn!("cannot share a limit through {}: {error}", folder.path.display());
        }
        changed
    }

    /// Forgets the requests of processes that have ended.
    pub(crate) fn forget_the_dead(&self) {
        if let Kind::Shared(folder) = &self.kind {
            self.change(|state, _| state.in_flight.retain(|id, _| folder.is_alive(*id)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
