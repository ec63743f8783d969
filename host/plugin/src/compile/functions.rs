//! A cache of the code of single functions. Components of one language have
//! nearly all functions in common, and so have the snapshots of one component.
//! Only functions that differ are compiled.

use crate::compile::trusted;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use wasmtime::CacheStore;

/// The largest file; a larger one is started anew. CPython's functions have
/// 26 MB, StarlingMonkey's 36 MB.
const MAX_BYTES: usize = 256 << 20;
/// The file is rewritten only if the new code is at least one 64th of it, since a
/// few functions differ in every component.
const WORTH_WRITING: usize = 64;

/// The functions in a file: hash of the rest, then for each function the
/// lengths of its key and its code, in four bytes each, and both.
#[derive(Debug)]
pub(super) struct Functions {
    path: PathBuf,
    known: Stored,
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
    /// The functions in the file at `path`; empty if it is missing, damaged or
    /// another user's.
    pub(super) fn open(path: &Path) -> Arc<Self> {
        Arc::new(Self { path: path.into(), known: Stored::read(path), new: Mutex::default() })
    }

    /// Adds the new code to the file, if there is enough of it.
    pub(super) fn keep(&self) -> io::Result<()> {
        let new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
        let size: usize = new.iter().map(|(key, code)| 8 + key.len() + code.len()).sum();
        if size == 0 || size < self.known.bytes.len() / WORTH_WRITING {
            return Ok(());
        }
        // Another process may have added to it meanwhile.
        let mut stored = Stored::read(&self.path);
        if stored.bytes.len() + size > MAX_BYTES {
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
    fn read(path: &Path) -> Self {
        let bytes = trusted::read(path, MAX_BYTES as u64).unwrap_or_default();
        match index(&bytes) {
            Some(code) => Self { bytes, code },
            None => Self::default(),
        }
    }
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
        let found = self.known.code.get(key).map(|range| Cow::Borrowed(&self.known.bytes[range.clone()]));
        found.or_else(|| {
            let new = self.new.lock().unwrap_or_else(PoisonError::into_inner);
            Some(Cow::Owned(new.get(key)?.clone()))
        })
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
    fn a_file_that_would_be_too_large_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("functions");
        let old = Functions::open(&path);
        insert(&old, b"o", MAX_BYTES / 2);
        old.keep().unwrap();
        let new = Functions::open(&path);
        insert(&new, b"n", MAX_BYTES / 2);
        new.keep().unwrap();
        let again = Functions::open(&path);
        assert!(again.get(b"o").is_none() && again.get(b"n").is_some());
    }
}
