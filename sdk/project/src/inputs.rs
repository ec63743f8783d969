//! The inputs of a build: everything that may change the component when it
//! changes.

use crate::embedded;
use crate::error::Error;
use crate::manifest::Project;
use crate::sources;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Inputs by name, each with its version, its text or the hash of its content.
/// Two builds with equal inputs are the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inputs(BTreeMap<String, String>);

/// The prefix of an input that is a hash.
const HASH: &str = "blake3:";

/// The code of gavel that builds.
const ITSELF: &str = "gavel itself";

impl Inputs {
    /// The inputs of every language: [`of_manifest`](Self::of_manifest), and
    /// the project's own files.
    pub(crate) fn of(project: &Project) -> Result<Self, Error> {
        let mut inputs = Self::of_manifest(project);
        for path in sources::built_from(&project.folder, Some(&project.manifest)) {
            inputs.file(&project.folder, &path)?;
        }
        Ok(inputs)
    }

    /// The manifest's keys for the build, the contract, and the code of gavel
    /// that builds.
    pub(crate) fn of_manifest(project: &Project) -> Self {
        let manifest = &project.manifest;
        let mut inputs = Self::default();
        let exports: Vec<_> = manifest.exports.iter().map(|export| export.as_str()).collect();
        let imports: Vec<_> = manifest.imports.iter().map(|import| import.as_str()).collect();
        inputs.set("`name` of plugin.toml", &manifest.name);
        inputs.set("`language` of plugin.toml", manifest.language.as_str());
        inputs.set("`exports` of plugin.toml", exports.join(", "));
        inputs.set("`imports` of plugin.toml", imports.join(", "));
        inputs.set("`no-deps` of plugin.toml", manifest.python.no_deps.to_string());
        inputs.set("the variable SOURCE_DATE_EPOCH", std::env::var("SOURCE_DATE_EPOCH").unwrap_or_default());
        inputs.set(ITSELF, hashed(embedded::builder()));
        inputs
    }

    /// Adds an input, such as a tool, with its version.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Adds the file `path` by its path from `folder`.
    ///
    /// # Errors
    /// The file cannot be read.
    fn file(&mut self, folder: &Path, path: &Path) -> Result<(), Error> {
        let name = path.strip_prefix(folder).unwrap_or(path).display().to_string();
        self.set(name, hashed(hash(path)?));
        Ok(())
    }

    /// Adds all files below `folder` that a build may read, by their paths from
    /// there. Hidden files, files that tools make, tests and a README.md are
    /// left out.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn files(&mut self, folder: &Path) -> Result<(), Error> {
        sources::built_from(folder, None).iter().try_for_each(|path| self.file(folder, path))
    }

    /// Adds all files below the folder `path`, or the file `path`, as one
    /// input.
    pub(crate) fn tree(&mut self, name: impl Into<String>, path: &Path) -> Result<(), Error> {
        let mut all = blake3::Hasher::new();
        for file in sources::installed(path) {
            let place = file.strip_prefix(path).unwrap_or(&file);
            all.update(place.as_os_str().as_encoded_bytes()).update(&[0]).update(hash(&file)?.as_bytes());
        }
        self.set(name, hashed(all.finalize()));
        Ok(())
    }

    /// The inputs of the plugin itself: its files and the keys of its manifest, without tools, packages and variables.
    pub(crate) fn sources(&self) -> Self {
        let mut sources = self.clone();
        sources.0.retain(|name, _| name != ITSELF && !name.starts_with("the "));
        sources
    }

    /// Whether the file of this name is among them.
    pub(crate) fn has(&self, name: &Path) -> bool {
        name.to_str().is_some_and(|name| self.0.contains_key(name))
    }

    /// The changes from `self` to `now`, with files first.
    pub(crate) fn changes(&self, now: &Self) -> Vec<Change> {
        let gone = self.0.iter().filter(|(name, _)| !now.0.contains_key(*name));
        let mut changes: Vec<Change> = gone.map(|(name, _)| Change::Gone(name.clone())).collect();
        for (name, value) in &now.0 {
            match self.0.get(name) {
                Some(before) if before == value => {}
                Some(before) if before.starts_with(HASH) => changes.push(Change::Changed(name.clone())),
                Some(before) => changes.push(Change::Became(name.clone(), before.clone(), value.clone())),
                None => changes.push(Change::New(name.clone())),
            }
        }
        changes.sort();
        changes
    }
}

/// A change of an input.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// A file, or another input with a hash.
    Changed(String),
    New(String),
    Gone(String),
    /// An input with a version: its name, the old version and the new one.
    Became(String, String, String),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &str| if value.is_empty() { "nothing".to_owned() } else { value.to_owned() };
        match self {
            Self::Changed(name) => write!(f, "{name} changed"),
            Self::New(name) => write!(f, "{name} is new"),
            Self::Gone(name) => write!(f, "{name} is gone"),
            Self::Became(name, before, now) => write!(f, "{name} was {}, now {}", value(before), value(now)),
        }
    }
}

/// The files `read` that are not among `inputs`, by their paths from `folder`:
/// those that a build read elsewhere.
pub(crate) fn elsewhere(folder: &Path, read: &[PathBuf], inputs: &Inputs) -> Result<Inputs, Error> {
    let mut found = Inputs::default();
    // A tool may name paths that are not files.
    for path in read.iter().filter(|path| !inputs.has(path) && folder.join(path).is_file()) {
        found.set(path.display().to_string(), hashed(hash(&folder.join(path))?));
    }
    Ok(found)
}

/// The same files with their present content; files that cannot be read are
/// left out.
pub(crate) fn again(folder: &Path, files: &Inputs) -> Inputs {
    let now = files.0.keys().filter_map(|name| Some((name.clone(), hashed(hash(&folder.join(name)).ok()?))));
    Inputs(now.collect())
}

fn hash(path: &Path) -> Result<blake3::Hash, Error> {
    let mut hasher = blake3::Hasher::new();
    let read = File::open(path).and_then(|file| hasher.update_reader(file).map(|_| ()));
    read.map_err(Error::file("read", path))?;
    Ok(hasher.finalize())
}

fn hashed(hash: blake3::Hash) -> String {
    format!("{HASH}{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn changes_are_named_with_files_first() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| fs::write(folder.path().join(path), text).unwrap();
        let now = |tool: &str| {
            let mut inputs = Inputs::default();
            inputs.set("the tool componentize-py", tool);
            inputs.files(folder.path()).unwrap();
            inputs
        };
        write("main.py", "a");
        write("old.py", "a");
        let before = now("0.25.0");
        assert_eq!(before.changes(&now("0.25.0")), []);
        write("main.py", "b");
        write("new.py", "a");
        fs::remove_file(folder.path().join("old.py")).unwrap();
        let changes: Vec<_> = before.changes(&now("0.25.1")).iter().map(Change::to_string).collect();
        assert_eq!(
            changes,
            ["main.py changed", "new.py is new", "old.py is gone", "the tool componentize-py was 0.25.0, now 0.25.1"]
        );
    }

    #[test]
    fn a_package_that_was_installed_over_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let now = || {
            let mut inputs = Inputs::default();
            inputs.tree("the package six", folder.path()).unwrap();
            inputs
        };
        fs::write(folder.path().join("six.py"), "1.16").unwrap();
        let before = now();
        fs::create_dir(folder.path().join("__pycache__")).unwrap();
        fs::write(folder.path().join("__pycache__/six.pyc"), "1.16").unwrap();
        assert_eq!(now(), before);
        fs::write(folder.path().join("six.py"), "1.17").unwrap();
        assert_eq!(before.changes(&now()), [Change::Changed("the package six".into())]);
    }

    #[test]
    fn what_a_build_read_elsewhere_is_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("plugin");
        fs::create_dir(&project).unwrap();
        fs::write(folder.path().join("shared.js"), "1").unwrap();
        fs::write(project.join("main.js"), "1").unwrap();
        let mut inputs = Inputs::default();
        inputs.files(&project).unwrap();
        let found = elsewhere(&project, &["main.js".into(), "../shared.js".into()], &inputs).unwrap();
        assert_eq!(found.0.keys().collect::<Vec<_>>(), ["../shared.js"]);
        assert_eq!(again(&project, &found), found);
        fs::write(folder.path().join("shared.js"), "2").unwrap();
        assert_eq!(found.changes(&again(&project, &found)), [Change::Changed("../shared.js".into())]);
        fs::remove_file(folder.path().join("shared.js")).unwrap();
        assert_eq!(found.changes(&again(&project, &found)), [Change::Gone("../shared.js".into())]);
    }
}
