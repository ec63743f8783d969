//! The code of a component's functions, kept apart. A snapshot has the
//! functions of its component and other data: only what differs is compiled.

use crate::trusted;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use wasmtime::CacheStore;

/// More is not read: the functions of reasoning-gym come to 26 MB.
const MAX_BYTES: u64 = 1 << 30;

/// The functions in a file: hash of the rest, then for each function the
/// lengths of its key and its code, in four bytes each, and both.
#[derive(Debug)]
pub(super) struct Functions {
    path: PathBuf,
    bytes: Vec<u8>,
    /// By key, where its code lies in `bytes`.
    known: HashMap<Vec<u8>, Range<usize>>,
    /// What is not in the file. It stays empty where there is a file: a few functions differ in every snapshot, and
    /// are not worth writing it again.
    new: Option<Mutex<HashMap<Vec<u8>, Vec<u8>>>>,
}

impl Functions {
    /// Those in the file at `path`; none where it is missing, damaged or
    /// another user's.
    pub(super) fn open(path: &Path) -> Arc<Self> {
        let bytes = trusted::read(path, MAX_BYTES).unwrap_or_default();
        let known = index(&bytes);
        let new = known.is_none().then(Mutex::default);
        Arc::new(Self { path: path.into(), bytes, known: known.unwrap_or_default(), new })
    }

    /// Writes the file where there was none.
    pub(super) fn keep(&self) -> io::Result<()> {
        let Some(new) = &self.new else { return Ok(()) };
        let mut bytes = vec![0; blake3::OUT_LEN];
        for (key, code) in &*new.lock().unwrap_or_else(PoisonError::into_inner) {
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

/// Where the code of each function lies; none where the bytes are not those
/// that [`Functions::keep`] wrote.
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
        let found = self.known.get(key).map(|range| Cow::Borrowed(&self.bytes[range.clone()]));
        found.or_else(|| {
            let new = self.new.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
            Some(Cow::Owned(new.get(key)?.clone()))
        })
    }

    fn insert(&self, key: &[u8], code: Vec<u8>) -> bool {
        let Some(new) = &self.new else { return false };
        new.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_vec(), code);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("functions");
        let functions = Functions::open(&path);
        for (key, code) in [(&b"a"[..], &b"code of a"[..]), (b"bb", b"")] {
            assert!(functions.insert(key, code.to_vec()));
        }
        assert_eq!(functions.get(b"a").unwrap().as_ref(), b"code of a");
        functions.keep().unwrap();

        let again = Functions::open(&path);
        assert_eq!(again.get(b"a").unwrap().as_ref(), b"code of a");
        assert_eq!(again.get(b"bb").unwrap().as_ref(), b"");
        assert!(again.get(b"c").is_none());
        assert!(!again.insert(b"c", Vec::new()), "the file is whole as it is");

        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(Functions::open(&path).get(b"a").is_none());
    }
}
