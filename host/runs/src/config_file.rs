//! A configuration as people write it: a TOML file, with the files that it
//! includes.

use crate::key_line::line_of;
use crate::named_tables::{table_name, table_names};
use gavel_data::files::read_regular_text;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The most bytes of all files, each as often as it is included.
const MOST_BYTES: u64 = 4 << 20;
/// The most files, each as often as it is included.
const MOST_FILES: usize = 1024;

/// A configuration that was read, and the file of each key.
#[derive(Debug)]
pub struct ConfigFile {
    /// All files together, without `include`.
    pub table: Table,
    path: PathBuf,
    /// The last file with each key.
    files: BTreeMap<String, PathBuf>,
    /// The text of each file; a pipe has it only once.
    texts: HashMap<PathBuf, String>,
    /// How many files were included.
    included: usize,
    /// The bytes of all files.
    bytes: u64,
}

/// Why a configuration cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ConfigFileError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}{}", path.display(), chain(includers))]
    Read {
        path: PathBuf,
        /// The files that lead to it: each includes the next one.
        includers: Vec<PathBuf>,
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{}: {what}", path.display())]
    Syntax {
        path: PathBuf,
        /// The parser's message.
        what: String,
    },
    /// Its `include` is not a list of files.
    #[error("{}: include: expected a path or a list of paths, found {found}", path.display())]
    NotPaths {
        path: PathBuf,
        /// The value found there.
        found: String,
    },
    /// Files include others too often.
    #[error(
        "{}: include: the files of the configuration include more than {MOST_FILES} in all, each as often as it is included\nhint: include a file once", path.display()
    )]
    TooMany {
        /// The file that includes one more.
        path: PathBuf,
    },
    /// Files include each other.
    #[error("{}: include: the files include each other: {}\nhint: move what they share to a separate file", path.display(), arrows(files))]
    Circle {
        /// The file that closes the circle.
        path: PathBuf,
        /// Each file includes the next one.
        files: Vec<PathBuf>,
    },
}

fn arrows(files: &[PathBuf]) -> String {
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    names.join(" -> ")
}

fn chain(includers: &[PathBuf]) -> String {
    if includers.is_empty() { String::new() } else { format!("; it is included by {}", arrows(includers)) }
}

impl ConfigFile {
    /// Reads `path` and the files that it includes. A file overrides the keys of the files that it includes. A later
    /// included file overrides the keys of an earlier one. Tables are merged key by key, lists of tables with names by
    /// their names.
    ///
    /// # Errors
    /// A file cannot be read, is not TOML, or includes itself.
    pub fn read(path: &Path) -> Result<Self, ConfigFileError> {
        let (files, texts) = (BTreeMap::new(), HashMap::new());
        let mut read = Self { table: Table::new(), path: path.to_owned(), files, texts, included: 0, bytes: 0 };
        read.add(path, &mut Vec::new())?;
        Ok(read)
    }

    /// The file that has `key`, such as `reward.format.weight`. If no file has it, the file of the table that would
    /// contain it.
    pub fn file_of(&self, key: &str) -> &Path {
        let mut key = key;
        loop {
            if let Some(file) = self.files.get(key) {
                return file;
            }
            match key.rfind(['.', '[']) {
                Some(end) => key = &key[..end],
                None => return &self.path,
            }
        }
    }

    /// The line of `key` in its file, from 1; `None` if no file has the key.
    pub fn line_of(&self, key: &str) -> Option<usize> {
        line_of(self.texts.get(self.file_of(key))?, key)
    }

    /// Adds the file `path`, which the last of `includers` includes.
    fn add(&mut self, path: &Path, includers: &mut Vec<PathBuf>) -> Result<(), ConfigFileError> {
        let same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
            (Ok(a), Ok(b)) => a == b,
            _ => a == b,
        };
        if let Some(first) = includers.iter().position(|includer| same(includer, path)) {
            let files = includers.drain(first..).chain([path.to_owned()]).collect::<Vec<_>>();
            return Err(ConfigFileError::Circle { path: files[files.len() - 2].clone(), files });
        }
        if let Some(includer) = includers.last() {
            self.included += 1;
            if self.included > MOST_FILES {
                return Err(ConfigFileError::TooMany { path: includer.clone() });
            }
        }
        let read = match (self.texts.get(path), includers.is_empty()) {
            (Some(text), _) => Ok(text.clone()),
            (None, true) => read_named(path),
            (None, false) => read_regular_text(path, MOST_BYTES),
        };
        let read = read.and_then(|text| {
            self.bytes += text.len() as u64;
            match self.bytes {
                0..=MOST_BYTES => Ok(text),
                _ => Err(too_large(format!("the configuration has more than {MOST_BYTES} bytes with it"))),
            }
        });
        let text = read.map_err(|source| ConfigFileError::Read {
            path: path.to_owned(),
            includers: includers.clone(),
            source,
        })?;
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| ConfigFileError::Syntax {
            path: path.to_owned(),
            what: error.to_string(),
        })?;
        let included = table.remove("include").map_or(Ok(Vec::new()), |value| paths(path, value))?;
        includers.push(path.to_owned());
        let folder = path.parent().unwrap_or(Path::new(""));
        for file in included {
            self.add(&folder.join(file), includers)?;
        }
        includers.pop();
        merge(&mut self.table, table, "", path, &mut self.files);
        self.texts.insert(path.to_owned(), text);
        Ok(())
    }
}

/// The text of the file that the user names, which may be a pipe: `-c <(…)`.
fn read_named(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    match text.len() as u64 {
        0..=MOST_BYTES => Ok(text),
        _ => Err(too_large(format!("it has more than {MOST_BYTES} bytes"))),
    }
}

fn too_large(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, what)
}

/// The paths that the `include` of the file `path` names.
fn paths(path: &Path, include: Value) -> Result<Vec<String>, ConfigFileError> {
    let values = match include {
        Value::Array(values) => values,
        value => vec![value],
    };
    let path_of = |value: Value| match value {
        Value::String(file) => Ok(file),
        other => Err(ConfigFileError::NotPaths { path: path.to_owned(), found: other.to_string() }),
    };
    values.into_iter().map(path_of).collect()
}

/// Merges `table`, of the file `path`, over `base`; both are below the key `prefix`.
fn merge(base: &mut Table, table: Table, prefix: &str, path: &Path, files: &mut BTreeMap<String, PathBuf>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match (base.get_mut(&name), value) {
            (Some(Value::Table(old)), Value::Table(new)) => {
                files.insert(key.clone(), path.to_owned());
                merge(old, new, &key, path, files);
            }
            (Some(Value::Array(old)), Value::Array(new))
                if table_names(old).is_some() && table_names(&new).is_some() =>
            {
                files.insert(key.clone(), path.to_owned());
                merge_named(old, new, &key, path, files);
            }
            (_, value) => {
                forget(&key, files);
                stands(&key, &value, path, files);
                base.insert(name, value);
            }
        }
    }
}

/// Merges two lists of tables with names: the tables of `base` come first.
fn merge_named(
    base: &mut Vec<Value>,
    list: Vec<Value>,
    prefix: &str,
    path: &Path,
    files: &mut BTreeMap<String, PathBuf>,
) {
    // A name that a file has twice is kept twice, so that the check of the configuration reports it.
    let mut seen = HashSet::new();
    let mut places = HashMap::new();
    for (at, name) in base.iter().filter_map(Value::as_table).filter_map(table_name).enumerate() {
        places.entry(name.to_owned()).or_insert(at);
    }
    for item in list {
        let name = item.as_table().and_then(table_name).unwrap_or_default().to_owned();
        let key = format!("{prefix}.{name}");
        let old = places.get(&name).and_then(|at| base.get_mut(*at)).and_then(Value::as_table_mut);
        match (old, item) {
            (Some(old), Value::Table(new)) if !seen.contains(&name) => {
                files.insert(key.clone(), path.to_owned());
                merge(old, new, &key, path, files);
            }
            (_, item) => {
                stands(&key, &item, path, files);
                places.entry(name.clone()).or_insert(base.len());
                base.push(item);
            }
        }
        seen.insert(name);
    }
}

/// Notes that `value`, at `key`, comes from the file `path`.
fn stands(key: &str, value: &Value, path: &Path, files: &mut BTreeMap<String, PathBuf>) {
    files.insert(key.to_owned(), path.to_owned());
    match value {
        Value::Table(table) => {
            table.iter().for_each(|(name, value)| stands(&format!("{key}.{name}"), value, path, files))
        }
        Value::Array(list) => {
            for (name, item) in table_names(list).into_iter().flatten().zip(list) {
                stands(&format!("{key}.{name}"), item, path, files);
            }
        }
        _ => {}
    }
}

/// Forgets the files of the keys below `key`.
fn forget(key: &str, files: &mut BTreeMap<String, PathBuf>) {
    let below = format!("{key}.");
    // They follow each other.
    let range = (Bound::Included(below.as_str()), Bound::Unbounded);
    let known = files.range::<str, _>(range).map(|(known, _)| known);
    let known: Vec<String> = known.take_while(|known| known.starts_with(&below)).cloned().collect();
    known.iter().for_each(|known| _ = files.remove(known));
}

#[cfg(test)]
mod tests;
