//! Whether a project's sources changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Folders of what tools make from the sources.
const MADE: [&str; 4] = ["build", "target", "node_modules", "__pycache__"];

/// The time and the size of every source; equal where nothing changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint(BTreeMap<PathBuf, (Option<SystemTime>, u64)>);

impl Fingerprint {
    /// Of all files below `folder`, save hidden ones and what tools make. A
    /// file that goes away meanwhile is not in it.
    pub fn of(folder: &Path) -> Self {
        let mut found = Self::default();
        found.add(folder);
        found
    }

    fn add(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(about) = entry.metadata() else { continue };
            if name.starts_with('.') || MADE.contains(&&*name) {
                continue;
            }
            if about.is_dir() {
                self.add(&entry.path());
            } else {
                self.0.insert(entry.path(), (about.modified().ok(), about.len()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_count_and_what_is_made_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("src/lib.rs", "a");
        let before = Fingerprint::of(folder.path());
        for made in ["build/a.wasm", "target/a", "node_modules/a/b.js", "src/__pycache__/a.pyc", ".git/HEAD"] {
            write(made, "x");
        }
        assert_eq!(Fingerprint::of(folder.path()), before);
        write("src/lib.rs", "ab");
        let changed = Fingerprint::of(folder.path());
        assert_ne!(changed, before);
        write("src/new.rs", "");
        assert_ne!(Fingerprint::of(folder.path()), changed);
    }
}
