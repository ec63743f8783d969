//! Compiled components on disk, so that only the first start compiles them.
//!
//! An entry is two files: `KEY.json` describes a component and names its code by
//! hash; `HASH.cwasm` is the code. If modules are split off, it names their code
//! too, which has entries of its own. `functions` has the code of the functions of
//! all components. Loaded code runs natively. So the folder and each file in it
//! belong to the user alone, an entry names its key, and code is loaded only if
//! it has the recorded hash.

mod folder;
mod key;

pub(crate) use key::Key;

use crate::compile::code::{Code, Stored};
use crate::compile::trusted;
use folder::{prepare, prune, write};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A Python component with its packages is about 100 MB compiled; this is room
/// for forty of them.
const MAX_BYTES: u64 = 4 << 30;
/// The description of a component is a line of JSON.
const MAX_ENTRY_BYTES: u64 = 1 << 20;

/// The cache of compiled components; without a folder, nothing is kept.
#[derive(Default)]
pub(crate) struct Cache {
    folder: Option<PathBuf>,
}

/// The contents of `KEY.json`, after its own hash.
#[derive(Serialize, Deserialize)]
struct Entry<T> {
    /// The key, so that a file under another entry's name is not used.
    key: String,
    code: String,
    /// The code that it imports.
    modules: Vec<String>,
    about: T,
}

/// The user's folder of compiled components, where commands keep the code of plugins. Creates it if it is missing.
///
/// # Errors
/// Why the folder cannot be used.
pub fn component_cache() -> Result<PathBuf, String> {
    let folder = of_user().ok_or("neither HOME nor GAVEL_CACHE_DIR names a folder")?;
    let folder = prepare(&folder)?;
    let probe = folder.join(format!(".probe-{}", std::process::id()));
    let written = std::fs::write(&probe, "").and_then(|()| std::fs::remove_file(&probe));
    written.map_err(|error| format!("{} cannot be written to: {error}", folder.display()))?;
    Ok(folder)
}

fn of_user() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = variable("GAVEL_CACHE_DIR")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("gavel")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/gavel")))?;
    Some(root.join("components"))
}

impl Cache {
    /// Opens the user's cache: `$GAVEL_CACHE_DIR/components`, else
    /// `gavel/components` in `$XDG_CACHE_HOME` or `~/.cache`.
    pub(crate) fn of_user() -> Self {
        match of_user() {
            Some(folder) => Self::open(&folder),
            None => Self::default(),
        }
    }

    /// Opens `folder`, and creates it if it is missing. If it cannot be used or
    /// trusted, a warning is logged, and the cache keeps nothing.
    pub(crate) fn open(folder: &Path) -> Self {
        match prepare(folder) {
            Ok(folder) => Self { folder: Some(folder) },
            Err(what) => {
                tracing::warn!("compiled plugins are not cached: {what}");
                Self::default()
            }
        }
    }

    /// The description of the component of `key`, and its code. An entry that is
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
        let component = stored(folder, entry.code)?;
        let modules = entry.modules.into_iter().map(|module| stored(folder, module)).collect::<Option<_>>()?;
        Some((entry.about, Code { component, modules }))
    }

    /// Keeps `code` under `key`, and returns it. If it is in a file now, all
    /// processes share that file.
    pub(crate) fn keep<T: Serialize>(&self, key: &Key, about: &T, mut code: Code) -> Code {
        let Some(folder) = self.folder.as_deref() else { return code };
        match write_entry(folder, key, about, &mut code) {
            Ok(()) => code,
            Err(error) => {
                tracing::warn!("a compiled plugin is not cached in {}: {error}", folder.display());
                code
            }
        }
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The file with the code of the functions of all components.
    pub(crate) fn functions(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join("functions"))
    }
}

/// Logs why a file is not used, unless it is missing.
fn refused(path: &Path, error: &io::Error) {
    if error.kind() != io::ErrorKind::NotFound {
        tracing::warn!("{} is not used and is made again: {error}", path.display());
    }
}

/// The code with this hash; `None` if it is missing or not whole, which is logged.
fn stored(folder: &Path, hash: String) -> Option<Stored> {
    let path = code_path(folder, &hash);
    let code = trusted_code(&path, hash).inspect_err(|error| refused(&path, error)).ok()?;
    if code.is_none() {
        tracing::warn!("{} is damaged and is made again", path.display());
    }
    code
}

/// The code in a file of the cache; `None` if it is not whole.
fn trusted_code(path: &Path, hash: String) -> io::Result<Option<Stored>> {
    let file = trusted::open(path, MAX_BYTES)?;
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut BufReader::with_capacity(1 << 20, &file), &mut hasher)?;
    if hasher.finalize().to_hex().as_str() != hash {
        return Ok(None);
    }
    // The file that was used last is removed last. If the time cannot be set, only this order is wrong.
    let _ = file.set_modified(SystemTime::now());
    // SAFETY: nobody but this user can have written the file or can write to it, `keep` puts nothing else under such a
    // name, files are replaced and never changed, and the hash shows that this one is whole.
    Ok(Some(unsafe { Stored::from_file(file, hash) }))
}

fn code_path(folder: &Path, hash: &str) -> PathBuf {
    folder.join(format!("{hash}.cwasm"))
}

/// Parses an entry: a hash in hexadecimal, a line break, and the JSON with this hash.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Option<Entry<T>> {
    let (hash, json) = bytes.split_at_checked(2 * blake3::OUT_LEN)?;
    let json = json.strip_prefix(b"\n")?;
    if blake3::hash(json).to_hex().as_bytes() != hash {
        return None;
    }
    serde_json::from_slice(json).ok()
}

/// Writes an entry; code that was in memory is in files then.
fn write_entry<T: Serialize>(folder: &Path, key: &Key, about: &T, code: &mut Code) -> io::Result<()> {
    for stored in [&mut code.component].into_iter().chain(&mut code.modules) {
        if let Some(kept) = write_code(folder, stored)? {
            *stored = kept;
        }
    }
    let (modules, code) = (code.modules.iter().map(Stored::hash).collect(), code.component.hash());
    let json = serde_json::to_vec(&Entry { key: key.0.clone(), code, modules, about })?;
    let sum = blake3::hash(&json).to_hex();
    write(folder, &folder.join(format!("{}.json", key.0)), &[sum.as_bytes(), b"\n", &json])
}

/// Writes code, and returns it as the new file, unless it was in a file before.
fn write_code(folder: &Path, code: &Stored) -> io::Result<Option<Stored>> {
    let Some(bytes) = code.bytes() else { return Ok(None) };
    prune(folder, MAX_BYTES.saturating_sub(bytes.len() as u64))?;
    let hash = code.hash();
    let path = code_path(folder, &hash);
    write(folder, &path, &[bytes])?;
    trusted_code(&path, hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use wasmtime::Engine;

    fn key(part: &[u8]) -> Key {
        Key::new(&Engine::default(), &[part])
    }

    fn code() -> Code {
        Code::alone(Engine::default().precompile_component(b"\0asm\x0d\0\x01\0").unwrap())
    }

    #[test]
    fn what_is_kept_is_found_by_its_key_alone() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(&folder.path().join("components"));
        assert!(cache.find::<String>(&key(b"a")).is_none());
        let kept = cache.keep(&key(b"a"), &"about a", code());
        assert!(kept.component.bytes().is_none(), "it is a file");
        kept.load(&Engine::default()).unwrap();
        let (about, found) = cache.find::<String>(&key(b"a")).unwrap();
        assert_eq!(about, "about a");
        found.load(&Engine::default()).unwrap();
        assert!(cache.find::<String>(&key(b"b")).is_none());
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
}
