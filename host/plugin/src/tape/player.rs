//! Reads a tape.

use super::entry::{Entry, Line, blob, indexes};
use super::error::TapeError;
use gavel_data::files::{open_regular, read_line, read_regular};
use std::collections::HashMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use tokio::sync::Semaphore;

/// Answers from a folder that a [`Recorder`](super::Recorder) wrote.
pub struct Player {
    folder: PathBuf,
    /// The hash of each answer by the hash of its [`Entry`], since a tape may have
    /// millions of lines.
    answers: HashMap<[u8; 32], [u8; 32]>,
    /// Limits the answers that are read at once, since the memory of an answer is
    /// charged to its call only after it is read.
    readers: Semaphore,
}

/// The most answers that are read at once; more would not be faster.
const READERS: usize = 16;
/// The most bytes of an answer.
const ANSWER_BYTES: u64 = 256 << 20;

impl Player {
    /// Reads the index. Where there is none, nothing was recorded.
    pub(super) fn open(folder: &Path) -> Result<Self, TapeError> {
        let readers = Semaphore::new(READERS);
        let mut player = Self { folder: folder.to_owned(), answers: HashMap::new(), readers };
        let list = |source| TapeError::Io { action: "read", path: folder.to_owned(), source };
        for index in indexes(folder).map_err(list)? {
            player.add(&index)?;
        }
        Ok(player)
    }

    /// Adds the answers that an index names.
    fn add(&mut self, path: &Path) -> Result<(), TapeError> {
        let read = |source| TapeError::Io { action: "read", path: path.to_owned(), source };
        let mut lines = BufReader::new(open_regular(path).map_err(read)?);
        let mut text = Vec::new();
        for number in 1.. {
            read_line(&mut lines, &mut text).map_err(read)?;
            // A line without a line break was being written when the process was killed.
            if text.pop() != Some(b'\n') {
                break;
            }
            let line = serde_json::from_slice::<Line>(&text).map_err(|error| error.to_string()).and_then(|line| {
                let answer = blake3::Hash::from_hex(&line.answer).map_err(|error| error.to_string())?;
                Ok((line, answer))
            });
            // Without this line, its request counts as not recorded; the others have their answers.
            let (line, answer) = match line {
                Ok(found) => found,
                Err(what) => {
                    tracing::warn!("{}, line {number}, is damaged and left out: {what}", path.display());
                    continue;
                }
            };
            // A call that was repeated, such as after a run was resumed, has its last answers.
            self.answers.insert(key(&line.entry), answer.into());
        }
        Ok(())
    }

    pub(super) async fn answer(&self, entry: &Entry, name: &str) -> Result<Vec<u8>, TapeError> {
        let Some(answer) = self.answers.get(&key(entry)) else {
            return Err(TapeError::NotRecorded { import: entry.import.clone(), name: name.to_owned() });
        };
        let hash = blake3::Hash::from(*answer);
        let path = blob(&self.folder, &hash.to_hex());
        let reading = path.clone();
        let _reader = self.readers.acquire().await.map_err(|_| TapeError::Stopped)?;
        let read = tokio::task::spawn_blocking(move || read_regular(&reading, ANSWER_BYTES)).await;
        let bytes = read.map_err(|_| TapeError::Stopped)?.map_err(|source| TapeError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        if blake3::hash(&bytes) != hash {
            return Err(TapeError::Damaged { path, what: "its content does not have the hash that names it".into() });
        }
        Ok(bytes)
    }
}

fn key(entry: &Entry) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for text in [&entry.plugin, &entry.input, &entry.import, &entry.request] {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    hasher.update(&entry.seed.to_le_bytes()).update(&entry.nth.to_le_bytes());
    hasher.finalize().into()
}
