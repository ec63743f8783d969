//! Writing a tape.

use super::{Entry, Line, TapeError, blob, index};
use gavel_data::files::{append_to_lines, partial};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Keeps answers in a folder; many calls may do so at once.
pub struct Recorder {
    folder: PathBuf,
    /// Opened for the first answer.
    index: Mutex<Option<File>>,
    /// Tells apart what is being written at the same time.
    writes: AtomicU64,
}

impl Recorder {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, index: Mutex::new(None), writes: AtomicU64::new(0) }
    }

    /// Keeps an answer and gives it back. Files are written on a thread of
    /// their own: the call waits for them, and pays no processor time.
    pub(super) async fn keep(self: &Arc<Self>, entry: Entry, answer: Vec<u8>) -> Result<Vec<u8>, TapeError> {
        let recorder = self.clone();
        let written = tokio::task::spawn_blocking(move || recorder.write(entry, &answer).map(|()| answer)).await;
        written.unwrap_or(Err(TapeError::Stopped))
    }

    /// The answer first, then the line that speaks of it: a process that is
    /// killed in between leaves an answer that nobody asks for.
    fn write(&self, entry: Entry, answer: &[u8]) -> Result<(), TapeError> {
        let hash = blake3::hash(answer).to_hex().to_string();
        let path = blob(&self.folder, &hash);
        self.write_blob(&path, answer).map_err(|source| TapeError::Io { action: "write", path, source })?;
        let path = index(&self.folder);
        self.write_line(&path, &Line { entry, answer: hash }).map_err(|source| TapeError::Io {
            action: "write",
            path,
            source,
        })
    }

    fn write_blob(&self, path: &Path, answer: &[u8]) -> io::Result<()> {
        if path.exists() {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let partial = partial(&path.with_extension(number.to_string()));
        fs::write(&partial, answer)?;
        fs::rename(&partial, path)
    }

    fn write_line(&self, path: &Path, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *index {
            Some(file) => file.write_all(&text),
            none => none.insert(append_to_lines(path)?).write_all(&text),
        }
    }
}
