//! A cache of the code of single functions. Components of one language have
//! nearly all functions in common, and so have the snapshots of one component.
//! Only functions that differ are compiled.

use crate::compile::trusted;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use wasmtime::CacheStore;

/// The largest file. When it is full, it becomes the old one, and a new one begins with the functions that are used
/// from then on. CPython's functions have 26 MB, StarlingMonkey's 36 MB, and both twice, with and without the functions
/// that read their memory.
const MAX_BYTES: usize = 192 << 20;
/// The extension of the old file.
const OLD: &str = "old";
/// The file is rewritten only if the new code is at least one 64th of it, since a
/// few functions differ in every component.
const WORTH_WRITING: usize = 64;
/// The extension of the file that is locked while the other two change.
const LOCK: &str = "lock";
/// How long another process may hold the lock; writing a full file takes less than a second.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// The functions in a file: hash of the rest, then for each function the
/// lengths of its key and its code, in four bytes each, and both.
#[derive(Debug)]
pub(super) struct Functions {
    path: PathBuf,
    /// The largest file.
    limit: usize,
    known: Stored,
    /// The functions of the file before.
    old: Stored,
    /// The code that is not in the file.
    new: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
}

/// The content of a file.
#[derive(Debug, Default)]
struct Stored {
    bytes: Vec<u8>,
    /// By key, the range of the code in `bytes`.
    code: HashMap<Vec<u8>, Range<usize>>,
}

impl Functions {
    /// The functions in the file at `path` and the one before; empty if it is missing, damaged or
    /// another user's.
    pub(super) fn open(path: &Path) -> Arc<Self> {
        Self::open_within(path, MAX_BYTES)
    }

    fn open_within(path: &Path, limit: usize) -> Arc<Self> {
        let (known, old) = (Stored::read(path, limit), Stored::read(&path.with_extension(OLD), limit));
        Arc::new(Self { path: path.into(), limit, known, old, new: Mutex::default() })
    }

    /// Adds the new code to the file, if there is enough of it.
    pub(super) fn keep(&self) -> io::Result<()> {
        let new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        let size: usize = new.iter().map(|(key, code)| 8 + key.len() + code.len()).sum();
        if size == 0 || size < self.known.bytes.len() / WORTH_WRITING || blake3::OUT_LEN + size > self.limit {
            return Ok(());
        }
        let _lock = lock(&self.path.with_extension(LOCK))?;
        // Another process may have added to it meanwhile.
        let mut stored = Stored::read(&self.path, self.limit);
        if stored.bytes.len() + size > self.limit {
            fs::rename(&self.path, self.path.with_extension(OLD))?;
            stored = Stored::default();
        }
        let mut bytes = stored.bytes;
        bytes.resize(bytes.len().max(blake3::OUT_LEN), 0);
        for (key, code) in new.iter().filter(|(key, _)| !stored.code.contains_key(*key)) {
            for part in [key, code] {
                let length = u32::try_from(part.len()).map_err(io::Error::other)?;
                bytes.extend(length.to_le_bytes());
            }
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(code);
        }
        let hash = blake3::hash(&bytes[blake3::OUT_LEN..]);
        bytes[..blake3::OUT_LEN].copy_from_slice(hash.as_bytes());
        let Some(folder) = self.path.parent() else { return Ok(()) };
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&bytes)?;
        file.persist(&self.path)?;
        Ok(())
    }
}

impl Stored {
    /// The content of the file at `path`; empty if it is not whole.
    fn read(path: &Path, limit: usize) -> Self {
        let bytes = read(path, limit).unwrap_or_default();
        match index(&bytes) {
            Some(code) => Self { bytes, code },
            None => Self::default(),
        }
    }

    fn code(&self, key: &[u8]) -> Option<&[u8]> {
        self.code.get(key).map(|range| &self.bytes[range.clone()])
    }
}

/// Locks the file at `path` until the result is dropped or this process ends.
fn lock(path: &Path) -> io::Result<File> {
    let begun = Instant::now();
    loop {
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if begun.elapsed() > LONGEST_WAIT => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{} stays locked", path.display())));
            }
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
        }
        // The cache removes last what was used last, and may have removed this file before it was locked.
        file.set_modified(SystemTime::now())?;
        if fs::metadata(path).is_ok_and(|about| file.metadata().is_ok_and(|own| own.ino() == about.ino())) {
            return Ok(file);
        }
    }
}

/// The bytes of a file of at most `limit`.
fn read(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let file = trusted::open(path, limit as u64)?;
    // The cache removes last what was used last. If the time cannot be set, only this order is wrong.
    let _ = file.set_modified(SystemTime::now());
    let mut bytes = Vec::with_capacity(limit.min(usize::try_from(file.metadata()?.len()).unwrap_or(limit)));
    file.take(limit as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The range of each function's code; `None` if [`Functions::keep`] did not
/// write these bytes.
fn index(bytes: &[u8]) -> Option<HashMap<Vec<u8>, Range<usize>>> {
    let (hash, functions) = bytes.split_at_checked(blake3::OUT_LEN)?;
    if blake3::hash(functions).as_bytes() != hash {
        return None;
    }
    let mut known = HashMap::new();
    let mut at = blake3::OUT_LEN;
    while at < bytes.len() {
        let length = |at: usize| {
            let length = bytes.get(at..at + 4)?;
            Some(u32::from_le_bytes(length.try_into().ok()?) as usize)
        };
        let (key, code) = (length(at)?, length(at + 4)?);
        let start = at + 8 + key;
        known.insert(bytes.get(at + 8..start)?.to_vec(), start..start + code);
        at = start + code;
    }
    (at == bytes.len()).then_some(known)
}

impl CacheStore for Functions {
    fn get(&self, key: &[u8]) -> Option<Cow<'_, [u8]>> {
        if let Some(code) = self.known.code(key) {
            return Some(Cow::Borrowed(code));
        }
        let mut new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = new.get(key) {
            return Some(Cow::Owned(code.clone()));
        }
        let code = self.old.code(key)?;
        // What is used stays when the old file goes, if it is enough to be written.
        new.insert(key.to_vec(), code.to_vec());
        Some(Cow::Borrowed(code))
    }

    fn insert(&self, key: &[u8], code: Vec<u8>) -> bool {
        self.new.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_vec(), code);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(functions: &Functions, key: &[u8], size: usize) {
        assert!(functions.insert(key, key.repeat(size)));
    }

    #[test]
    fn what_is_kept_is_found_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("functions");
        let functions = Functions::open(&path);
        insert(&functions, b"a", 6);
        insert(&functions, b"bb", 0);
        assert_eq!(functions.get(b"a").unwrap().as_ref(), b"aaaaaa");
        functions.keep().unwrap();

        let again = Functions::open(&path);
        assert_eq!(again.get(b"a").unwrap().as_ref(), b"aaaaaa");
        assert_eq!(again.get(b"bb").unwrap().as_ref(), b"");
        assert!(again.get(b"c").is_none());

        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(Functions::open(&path).get(b"a").is_none());
    }

    #[test]
    fn components_add_to_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("functions");
        let has = |key: &[u8]| Functions::open(&path).get(key).is_some();
        // Two components are compiled at once, and the functions of both are kept.
        let (python, javascript) = (Functions::open(&path), Functions::open(&path));
        insert(&python, b"p", 10_000);
        insert(&javascript, b"j", 10_000);
        python.keep().unwrap();
        javascript.keep().unwrap();
        assert!(has(b"p") && has(b"j"));

        // A few functions are compiled again rather than written.
        let edited = Functions::open(&path);
        insert(&edited, b"e", 100);
        edited.keep().unwrap();
        assert!(!has(b"e"));
        insert(&edited, b"l", 1000);
        edited.keep().unwrap();
        assert!(has(b"e") && has(b"l") && has(b"p"));
    }

    #[test]
    fn a_full_file_is_begun_anew_with_what_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("functions");
        let open = || Functions::open_within(&path, 1000);
        let keep = |key: &[u8]| {
            let functions = open();
            insert(&functions, key, 400);
            functions.keep().unwrap();
        };
        let has = |key: &[u8]| open().get(key).is_some();
        keep(b"u");
        keep(b"v");
        assert!(has(b"u") && has(b"v"));
        // The file is full, and what it had is still found.
        keep(b"w");
        assert!(has(b"u") && has(b"v") && has(b"w"));
        // A component that uses an old function and brings no new ones.
        let functions = open();
        assert_eq!(functions.get(b"u").unwrap().as_ref(), b"u".repeat(400));
        functions.keep().unwrap();
        keep(b"x");
        assert!(has(b"u") && has(b"w") && has(b"x"));
        assert!(!has(b"v"), "it was used last before the file was full for the first time");
        for file in [&path, &path.with_extension(OLD)] {
            assert!(fs::metadata(file).unwrap().len() <= 1000);
        }
        // More than fits.
        let functions = open();
        insert(&functions, b"y", 1000);
        functions.keep().unwrap();
        assert!(!has(b"y") && has(b"u") && has(b"x"));
    }

    /// Adds each key to the file at `path`, all at once, as processes do that compile at the same time.
    fn keep_at_once(path: &Path, limit: usize, keys: &[[u8; 2]], size: usize) {
        let begin = &std::sync::Barrier::new(keys.len());
        std::thread::scope(|threads| {
            for key in keys {
                threads.spawn(move || {
                    let functions = Functions::open_within(path, limit);
                    insert(&functions, key, size);
                    begin.wait();
                    functions.keep().unwrap();
                });
            }
        });
    }

    #[test]
    fn writers_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let keys: Vec<[u8; 2]> = (0..8).map(|writer| [writer, 0]).collect();
        for round in 0..20 {
            let path = folder.path().join(format!("functions-{round}"));
            keep_at_once(&path, 1 << 20, &keys, 10_000);
            let functions = Functions::open(&path);
            assert!(keys.iter().all(|key| functions.get(key).is_some()), "{round}");
        }
    }

    #[test]
    fn writers_at_once_begin_a_full_file_anew_once() {
        let folder = tempfile::tempdir().unwrap();
        let keys = [[1, 0], [2, 0], [3, 0]];
        for round in 0..20 {
            let path = folder.path().join(format!("functions-{round}"));
            let open = || Functions::open_within(&path, 1000);
            let functions = open();
            insert(&functions, b"u", 900);
            functions.keep().unwrap();
            keep_at_once(&path, 1000, &keys, 100);
            let functions = open();
            assert!(keys.iter().all(|key| functions.get(key).is_some()), "{round}");
            assert!(functions.get(b"u").is_some(), "{round}: the full file was lost");
        }
    }

    #[test]
    fn a_file_that_is_used_is_removed_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("functions");
        let functions = Functions::open(&path);
        insert(&functions, b"a", 6);
        functions.keep().unwrap();
        let file = fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(Functions::open(&path).get(b"a").is_some());
        assert_ne!(file.metadata().unwrap().modified().unwrap(), SystemTime::UNIX_EPOCH);
    }
}
