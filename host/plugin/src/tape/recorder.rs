//! Writes a tape.

use super::call_log::CallLog;
use super::entry::{Entry, Line, blob, index, indexes};
use super::error::TapeError;
use gavel_data::disk;
use gavel_data::files::{WholeFile, append_to_lines, open_regular, partial, read_regular};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Records answers in a folder; many calls may do so at once.
pub struct Recorder {
    folder: PathBuf,
    rank: usize,
    /// Where the requests are noted, if they are.
    calls: Option<CallLog>,
    /// Opened for the first answer.
    index: Mutex<Option<Index>>,
    /// Numbers the writes, to tell apart files that are written at the same time.
    writes: AtomicU64,
    /// The answers that are not synced yet.
    unsynced: Mutex<Vec<PathBuf>>,
}

/// The file of the tape's lines.
struct Index {
    file: File,
    /// Whether its last line may be cut off, as on a full disk.
    is_cut_off: bool,
}

impl Recorder {
    pub(super) fn new(folder: PathBuf, rank: usize, calls: Option<CallLog>) -> Self {
        Self { folder, rank, calls, index: Mutex::new(None), writes: AtomicU64::new(0), unsynced: Mutex::default() }
    }

    pub(super) fn calls(&self) -> Option<&CallLog> {
        self.calls.as_ref()
    }

    /// Records an answer and returns it. Files are written on another thread: the
    /// call waits for it without a charge of processor time.
    pub(super) async fn keep(self: &Arc<Self>, entry: Entry, answer: Vec<u8>) -> Result<Vec<u8>, TapeError> {
        let recorder = self.clone();
        let written = tokio::task::spawn_blocking(move || recorder.write(entry, &answer).map(|()| answer)).await;
        written.unwrap_or(Err(TapeError::Stopped))
    }

    /// Syncs all answers so far, so that they survive a power cut.
    ///
    /// # Errors
    /// A file cannot be synced; the next call tries again.
    pub fn sync(&self) -> Result<(), TapeError> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(index) = &mut *index else { return Ok(()) };
        let mut unsynced = self.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| TapeError::Io { action: "sync", path, source }
        };
        for path in unsynced.iter() {
            disk::sync_file(path).map_err(failed(path))?;
        }
        let path = super::entry::index(&self.folder, self.rank);
        disk::sync(&index.file, &path).map_err(failed(&path))?;
        // The folders of the answers, and their parents up to the tape's own folder.
        let mut folders: BTreeSet<&Path> = unsynced.iter().filter_map(|path| path.parent()).collect();
        folders.extend(unsynced.iter().filter_map(|path| path.parent()?.parent()));
        folders.extend([self.folder.as_path(), disk::folder_of(&self.folder)]);
        for folder in folders {
            disk::sync_folder(folder).map_err(failed(folder))?;
        }
        unsynced.clear();
        Ok(())
    }

    /// Writes the answer first, then its line of the index. A process that is killed
    /// in between leaves only an answer without a line.
    fn write(&self, entry: Entry, answer: &[u8]) -> Result<(), TapeError> {
        let hash = blake3::hash(answer).to_hex().to_string();
        let path = blob(&self.folder, &hash);
        self.write_blob(&path, answer).map_err(|source| TapeError::Io { action: "write", path, source })?;
        let path = index(&self.folder, self.rank);
        self.write_line(&path, &Line { entry, answer: hash }).map_err(|source| TapeError::Io {
            action: "write",
            path,
            source,
        })
    }

    fn write_blob(&self, path: &Path, answer: &[u8]) -> io::Result<()> {
        // An existing file with this name may be damaged by a power cut.
        if read_regular(path, answer.len() as u64).is_ok_and(|kept| kept == answer) {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        let mut file = WholeFile::create_as(path, partial(&path.with_extension(format!("{}-{number}", self.rank))))?;
        file.write_all(answer)?;
        // There are many answers, which are synced together.
        file.finish_unsynced()?;
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        Ok(())
    }

    fn write_line(&self, path: &Path, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let Index { file, is_cut_off } = match &mut *index {
            Some(index) => index,
            none => none.insert(Index { file: append_to_lines(path)?, is_cut_off: false }),
        };
        if *is_cut_off {
            // This removes what is there of the line, and the open file appends to what is left.
            append_to_lines(path)?;
        }
        let written = file.write_all(&text);
        *is_cut_off = written.is_err();
        written
    }
}

/// See [`Tape::join_ranks`](super::Tape::join_ranks).
pub(super) fn join_ranks(folder: &Path) -> Result<(), TapeError> {
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source| TapeError::Io { action, path, source }
    };
    let own = index(folder, 0);
    for other in indexes(folder).map_err(failed("read", folder))?.into_iter().filter(|path| *path != own) {
        let join = || {
            let mut lines = open_regular(&other)?;
            io::copy(&mut lines, &mut append_to_lines(&own)?)?;
            disk::sync_file(&own)
        };
        join().map_err(failed("write", &own))?;
        // Until here, both have the lines, which changes nothing.
        disk::remove_file(&other).map_err(failed("remove", &other))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_cut_off_does_not_damage_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::new(folder.path().to_owned(), 0, None);
        let entry = |nth| Entry {
            plugin: "p".into(),
            input: "i".into(),
            seed: 1,
            import: "http".into(),
            request: "r".into(),
            nth,
        };
        recorder.write(entry(0), b"first").unwrap();
        let path = index(folder.path(), 0);
        let open = || File::options().append(true).open(&path).unwrap();
        let write_to = |file| recorder.index.lock().unwrap().as_mut().unwrap().file = file;
        // As a disk does that has room for a part of the line.
        write_to(File::open(&path).unwrap());
        open().write_all(b"{\"plugin\":\"p\",\"inp").unwrap();
        recorder.write(entry(1), b"second").unwrap_err();
        write_to(open());
        recorder.write(entry(2), b"third").unwrap();
        recorder.write(entry(3), b"fourth").unwrap();
        recorder.sync().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let kept: Vec<u32> = text.lines().map(|line| serde_json::from_str::<Line>(line).unwrap().entry.nth).collect();
        assert_eq!(kept, [0, 2, 3]);
    }
}
