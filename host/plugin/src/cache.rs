//! Compiled components on disk, so that only the first start compiles them.
//!
//! An entry is two files: `KEY.json` says what is known of a component and
//! names its code by hash; `HASH.cwasm` is that code. `KEY.functions` has the
//! code of a component's functions. To load code is to run it natively, so the
//! folder and each file in it are the user's alone, an entry names its key,
//! and code is loaded only where its hash is the recorded one.

use crate::code::Code;
use crate::trusted;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder};
use std::hash::{Hash, Hasher};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wasmtime::Engine;

/// Changes with anything that makes older entries wrong.
const FORMAT: &str = "gavel-components-2";
/// A Python component with its packages is about 100 MB compiled; this is room
/// for forty of them.
const MAX_BYTES: u64 = 4 << 30;
/// What is known of a component is a line of JSON.
const MAX_ENTRY_BYTES: u64 = 1 << 20;

/// The folder of compiled components; without one, nothing is kept.
pub(crate) struct Cache {
    folder: Option<PathBuf>,
}

/// What an entry was made from.
pub(crate) struct Key(String);

impl Key {
    /// The hash of all `parts` and of the engine's version and settings.
    pub(crate) fn new(engine: &Engine, parts: &[&[u8]]) -> Self {
        let mut hasher = Blake3(blake3::Hasher::new());
        hasher.write(FORMAT.as_bytes());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        for part in parts {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
        Self(hasher.0.finalize().to_hex().to_string())
    }
}

/// The standard library's hashers are neither wide enough nor stable.
struct Blake3(blake3::Hasher);

impl Hasher for Blake3 {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let mut first = [0; 8];
        self.0.finalize_xof().fill(&mut first);
        u64::from_le_bytes(first)
    }
}

/// The contents of `KEY.json`, after its own hash.
#[derive(Serialize, Deserialize)]
struct Entry<T> {
    /// A file under another entry's name is not that entry.
    key: String,
    code: String,
    about: T,
}

impl Cache {
    /// Opens the user's cache: `$GAVEL_CACHE_DIR/components`, else that of
    /// `gavel` in `$XDG_CACHE_HOME` or `~/.cache`.
    pub(crate) fn of_user() -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = variable("GAVEL_CACHE_DIR")
            .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("gavel")))
            .or_else(|| variable("HOME").map(|home| home.join(".cache/gavel")));
        match root {
            Some(root) => Self::open(&root.join("components")),
            None => Self { folder: None },
        }
    }

    /// Opens `folder`, which is made where it is missing. One that cannot be
    /// used, or trusted, gives a warning and a cache that keeps nothing.
    pub(crate) fn open(folder: &Path) -> Self {
        match prepare(folder) {
            Ok(folder) => Self { folder: Some(folder) },
            Err(what) => {
                tracing::warn!("compiled plugins are not kept: {what}");
                Self { folder: None }
            }
        }
    }

    /// What is known of the component of `key`, and its code. An entry that is
    /// not whole, or that another user may have written, counts as absent.
    pub(crate) fn find<T: DeserializeOwned>(&self, key: &Key) -> Option<(T, Code)> {
        let folder = self.folder.as_deref()?;
        let path = folder.join(format!("{}.json", key.0));
        let entry =
            parse::<T>(&trusted::read(&path, MAX_ENTRY_BYTES).inspect_err(|error| refused(&path, error)).ok()?)?;
        if entry.key != key.0 {
            tracing::warn!("{} is the entry of another component and is made again", path.display());
            return None;
        }
        let path = code_path(folder, &entry.code);
        let code = trusted_code(&path, entry.code).inspect_err(|error| refused(&path, error)).ok()?;
        if code.is_none() {
            tracing::warn!("{} is damaged and is made again", path.display());
        }
        Some((entry.about, code?))
    }

    /// Keeps `code` under `key`. The result is the same code, as the file that
    /// all processes share where there is one.
    pub(crate) fn keep<T: Serialize>(&self, key: &Key, about: &T, code: Code) -> Code {
        let Some(folder) = self.folder.as_deref() else { return code };
        match write_entry(folder, key, about, &code) {
            Ok(kept) => kept.unwrap_or(code),
            Err(error) => {
                tracing::warn!("a compiled plugin is not kept in {}: {error}", folder.display());
                code
            }
        }
    }

    /// Where the code of the functions of the component of `key` is kept.
    pub(crate) fn functions(&self, key: &Key) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{}.functions", key.0)))
    }
}

/// Says why a file is not used, unless it is not there.
fn refused(path: &Path, error: &io::Error) {
    if error.kind() != io::ErrorKind::NotFound {
        tracing::warn!("{} is not used and is made again: {error}", path.display());
    }
}

/// The code in a file of the cache; none where it is not whole.
fn trusted_code(path: &Path, hash: String) -> io::Result<Option<Code>> {
    let file = trusted::open(path, MAX_BYTES)?;
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut BufReader::with_capacity(1 << 20, &file), &mut hasher)?;
    if hasher.finalize().to_hex().as_str() != hash {
        return Ok(None);
    }
    // What was used last is removed last; where the time cannot be set, it is only the order that suffers.
    let _ = file.set_modified(SystemTime::now());
    // SAFETY: nobody but this user can have written the file or can write to it, `keep` puts nothing else under such a
    // name, files are replaced and never changed, and the hash shows that this one is whole.
    Ok(Some(unsafe { Code::from_file(file, hash) }))
}

fn code_path(folder: &Path, hash: &str) -> PathBuf {
    folder.join(format!("{hash}.cwasm"))
}

/// A hash in hexadecimal, a line's end, and the JSON that it is the hash of.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Option<Entry<T>> {
    let (hash, json) = bytes.split_at_checked(2 * blake3::OUT_LEN)?;
    let json = json.strip_prefix(b"\n")?;
    if blake3::hash(json).to_hex().as_bytes() != hash {
        return None;
    }
    serde_json::from_slice(json).ok()
}

/// Writes an entry, and gives its code as the file that it is in now, unless
/// it was in one before.
fn write_entry<T: Serialize>(folder: &Path, key: &Key, about: &T, code: &Code) -> io::Result<Option<Code>> {
    let hash = code.hash();
    let mut kept = None;
    if let Some(bytes) = code.bytes() {
        prune(folder, MAX_BYTES.saturating_sub(bytes.len() as u64))?;
        let path = code_path(folder, &hash);
        write(folder, &path, &[bytes])?;
        kept = trusted_code(&path, hash.clone())?;
    }
    let json = serde_json::to_vec(&Entry { key: key.0.clone(), code: hash, about })?;
    let sum = blake3::hash(&json).to_hex();
    write(folder, &folder.join(format!("{}.json", key.0)), &[sum.as_bytes(), b"\n", &json])?;
    Ok(kept)
}

/// Writes a file that is there whole or not at all.
fn write(folder: &Path, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    // Only its owner can read or write it.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.persist(path)?;
    Ok(())
}

/// Removes what was not used for longest until the rest is within `limit`.
/// Code in use stays mapped in the processes that use it.
fn prune(folder: &Path, limit: u64) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Another process may have removed it.
        if let Ok(meta) = entry.metadata() {
            files.push((meta.modified()?, meta.len(), entry.path()));
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    for (_, size, path) in files {
        if total <= limit {
            break;
        }
        let _ = fs::remove_file(path);
        total -= size;
    }
    Ok(())
}

/// Makes the folder and checks that nobody else can put code into it.
fn prepare(folder: &Path) -> Result<PathBuf, String> {
    let failed = |error: io::Error| format!("{} cannot be used: {error}", folder.display());
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let folder = folder.canonicalize().map_err(failed)?;
    let meta = fs::metadata(&folder).map_err(failed)?;
    // SAFETY: it has no preconditions and cannot fail.
    let user = unsafe { libc::geteuid() };
    if meta.uid() != user {
        return Err(format!(
            "{} belongs to another user\nhint: set GAVEL_CACHE_DIR to a folder of yours",
            folder.display()
        ));
    }
    if meta.mode() & 0o022 != 0 {
        // To forbid it now is too late for what they may have put there.
        return Err(format!("others may write to {0}\nhint: remove it: rm -r {0}", folder.display()));
    }
    // Whoever may rename a folder on the way may replace this one, save where the sticky bit forbids it.
    for parent in folder.ancestors().skip(1) {
        let mode = fs::metadata(parent).map_err(failed)?.mode();
        if mode & 0o002 != 0 && mode & 0o1000 == 0 {
            return Err(format!("anybody may write to {0}\nhint: chmod o-w {0}", parent.display()));
        }
    }
    // A folder that cannot be written to is told of once, and now.
    tempfile::NamedTempFile::new_in(&folder).map_err(failed)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, Permissions};
    use std::os::unix::fs::PermissionsExt;

    fn key(part: &[u8]) -> Key {
        Key::new(&Engine::default(), &[part])
    }

    fn code() -> Code {
        Code::from_bytes(Engine::default().precompile_component(b"\0asm\x0d\0\x01\0").unwrap())
    }

    #[test]
    fn what_is_kept_is_found_by_its_key_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("components"));
        assert!(cache.find::<String>(&key(b"a")).is_none());
        let kept = cache.keep(&key(b"a"), &"about a", code());
        assert!(kept.bytes().is_none(), "it is a file");
        kept.load(&Engine::default()).unwrap();
        let (about, found) = cache.find::<String>(&key(b"a")).unwrap();
        assert_eq!(about, "about a");
        found.load(&Engine::default()).unwrap();
        assert!(cache.find::<String>(&key(b"b")).is_none());
    }

    #[test]
    fn the_engine_and_each_part_are_in_the_key() {
        let (plain, metered) = (Engine::default(), Engine::new(wasmtime::Config::new().consume_fuel(true)).unwrap());
        let keys = [
            Key::new(&plain, &[b"ab", b"c"]).0,
            Key::new(&plain, &[b"a", b"bc"]).0,
            Key::new(&plain, &[b"abc"]).0,
            Key::new(&metered, &[b"ab", b"c"]).0,
        ];
        for (i, key) in keys.iter().enumerate() {
            assert!(!keys[..i].contains(key), "{i}");
        }
        assert_eq!(keys[0], Key::new(&Engine::default(), &[b"ab", b"c"]).0);
    }

    #[test]
    fn files_and_folder_are_the_users_alone() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("components");
        Cache::open(&folder).keep(&key(b"a"), &"", code());
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        for entry in fs::read_dir(&folder).unwrap() {
            assert_eq!(mode(&entry.unwrap().path()), 0o600);
        }
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("components");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o770)).unwrap();
        assert!(prepare(&folder).unwrap_err().contains("others may write"));
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(prepare(&folder).unwrap_err().contains("anybody may write"));
        fs::set_permissions(root.path(), Permissions::from_mode(0o1777)).unwrap();
        prepare(&folder).unwrap();
    }

    #[test]
    fn an_entry_that_others_may_have_written_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(&root.path().join("components"));
        cache.keep(&key(b"a"), &"", code());
        let path = |kind: &str| {
            let entries = fs::read_dir(root.path().join("components")).unwrap().map(|entry| entry.unwrap().path());
            entries.into_iter().find(|path| path.extension().unwrap() == kind).unwrap()
        };
        for kind in ["json", "cwasm"] {
            assert!(cache.find::<String>(&key(b"a")).is_some());
            fs::set_permissions(path(kind), Permissions::from_mode(0o622)).unwrap();
            assert!(cache.find::<String>(&key(b"a")).is_none(), "{kind}");
            fs::set_permissions(path(kind), Permissions::from_mode(0o600)).unwrap();
        }
        let (own, elsewhere) = (path("cwasm"), root.path().join("elsewhere"));
        fs::rename(&own, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &own).unwrap();
        assert!(cache.find::<String>(&key(b"a")).is_none(), "it is a link");
    }

    #[test]
    fn an_entry_under_the_name_of_another_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path());
        cache.keep(&key(b"a"), &"", code());
        let of = |part: &[u8]| root.path().join(format!("{}.json", key(part).0));
        fs::copy(of(b"a"), of(b"b")).unwrap();
        assert!(cache.find::<String>(&key(b"b")).is_none());
        assert!(cache.find::<String>(&key(b"a")).is_some());
    }

    #[test]
    fn code_that_is_replaced_after_it_was_checked_is_not_what_is_loaded() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path());
        cache.keep(&key(b"a"), &"", code());
        let (_, found) = cache.find::<String>(&key(b"a")).unwrap();
        for entry in fs::read_dir(root.path()).unwrap() {
            let path = entry.unwrap().path();
            fs::remove_file(&path).unwrap();
            fs::write(&path, "other").unwrap();
        }
        found.load(&Engine::default()).unwrap();
    }

    #[test]
    fn what_was_used_last_is_removed_last() {
        let root = tempfile::tempdir().unwrap();
        for (name, age) in [("old", 30), ("new", 10), ("older", 60)] {
            let path = root.path().join(name);
            fs::write(&path, [0; 100]).unwrap();
            let used = SystemTime::now() - std::time::Duration::from_secs(age);
            File::options().append(true).open(&path).unwrap().set_modified(used).unwrap();
        }
        prune(root.path(), 150).unwrap();
        let left: Vec<_> = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["new"]);
    }
}
