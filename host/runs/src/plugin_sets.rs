//! `plugins/`: which plugins scored, since which step, and their components.
//! The reader and the writer choose the type of a set of plugins; any JSON
//! works.

use crate::error::{Result, RunError};
use crate::layout;
use gavel_data::files::{open_regular, read_regular, write_whole};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The most bytes of the sets: each has the parameters of its plugins.
const MOST_BYTES: u64 = 256 << 20;
/// The most bytes of a component. The sandbox has a lower limit, `resources.loading.size`.
const COMPONENT_BYTES: u64 = 4 << 30;

/// The sets of plugins of `run`, from the first; empty if none was written.
///
/// # Errors
/// They cannot be read or parsed.
pub fn read_plugin_sets<T: DeserializeOwned>(run: &Path) -> Result<Vec<T>> {
    let path = layout::plugin_sets(run);
    match read_regular(&path, MOST_BYTES) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| RunError::damaged(&path, error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(RunError::io("read", &path)(error)),
    }
}

/// Writes the sets of plugins of `run`, replacing those that it has.
pub fn write_plugin_sets<T: Serialize>(run: &Path, sets: &[T]) -> Result<()> {
    let (folder, path) = (layout::plugins(run), layout::plugin_sets(run));
    fs::create_dir_all(&folder).map_err(RunError::io("make the folder", &folder))?;
    serde_json::to_vec_pretty(sets)
        .map_err(io::Error::from)
        .and_then(|text| write_whole(&path, &text))
        .map_err(RunError::io("write", &path))
}

/// Keeps a copy of the component at `path`, of the plugin or program `name`,
/// which has the hash `expected`. It is not a link: the file may be
/// overwritten, and a link would then be another component.
///
/// # Errors
/// The component has another hash now, or cannot be copied.
pub fn keep_component(run: &Path, name: &str, path: &Path, expected: &str) -> Result<()> {
    let (folder, kept) = (layout::plugins(run), layout::component(run, expected));
    if kept.exists() {
        return Ok(());
    }
    fs::create_dir_all(&folder).map_err(RunError::io("make the folder", &folder))?;
    let bytes = fs::read(path).map_err(RunError::io("read", path))?;
    let found = blake3::hash(&bytes).to_hex().to_string();
    if found != expected {
        let (plugin, path, expected) = (name.to_owned(), path.to_owned(), expected.to_owned());
        return Err(RunError::Swapped { plugin, path, found, expected });
    }
    write_whole(&kept, &bytes).map_err(RunError::io("write", &kept))
}

/// The copy of the component with this hash.
///
/// # Errors
/// The copy cannot be read, or has another hash.
pub fn find_component(run: &Path, hash: &str) -> Result<PathBuf> {
    let path = layout::component(run, hash);
    let found = hash_of(&path).map_err(RunError::io("read", &path))?;
    if found == hash { Ok(path) } else { Err(RunError::OtherComponent { path, found }) }
}

/// Whether the file at `path` is the component with this hash.
pub fn is_component(path: &Path, hash: &str) -> bool {
    hash_of(path).is_ok_and(|found| found == hash)
}

fn hash_of(path: &Path) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let file = open_regular(path)?;
    if file.metadata()?.len() > COMPONENT_BYTES {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {COMPONENT_BYTES} bytes")));
    }
    hasher.update_reader(file)?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_is_written_is_read_again_as_any_json() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(read_plugin_sets::<Value>(run.path()).unwrap(), Vec::<Value>::new());
        let sets = [json!({"from_step": 1, "plugins": [{"name": "a", "weight": 0.1}]}), json!({"from_step": 7})];
        write_plugin_sets(run.path(), &sets).unwrap();
        assert_eq!(read_plugin_sets::<Value>(run.path()).unwrap(), sets);
    }

    #[test]
    fn a_copy_has_the_hash_that_it_is_named_by() {
        let run = tempfile::tempdir().unwrap();
        let component = run.path().join("a.wasm");
        fs::write(&component, "component").unwrap();
        let hash = blake3::hash(b"component").to_hex().to_string();
        let other = blake3::hash(b"other").to_hex().to_string();
        let error = keep_component(run.path(), "a", &component, &other).unwrap_err();
        assert!(matches!(&error, RunError::Swapped { found, .. } if *found == hash), "{error}");
        keep_component(run.path(), "a", &component, &hash).unwrap();
        let kept = find_component(run.path(), &hash).unwrap();
        assert_eq!(fs::read(&kept).unwrap(), b"component");
        let absent = run.path().join("absent.wasm");
        let is = |path: &Path, hash: &str| is_component(path, hash);
        assert_eq!((is(&component, &hash), is(&component, &other), is(&absent, &hash)), (true, false, false));
        fs::write(&kept, "other").unwrap();
        let error = find_component(run.path(), &hash).unwrap_err();
        assert!(matches!(&error, RunError::OtherComponent { found, .. } if *found == other), "{error}");
    }
}
