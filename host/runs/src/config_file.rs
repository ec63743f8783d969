//! A configuration as people write it: a TOML file, with the files that it
//! includes.

use crate::key_line::line_of;
use crate::named_tables::{table_name, table_names};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// A configuration that was read, and the file of each key.
#[derive(Debug)]
pub struct ConfigFile {
    /// All files together, without `include`.
    pub table: Table,
    path: PathBuf,
    /// The last file with each key.
    files: BTreeMap<String, PathBuf>,
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
        let mut read = Self { table: Table::new(), path: path.to_owned(), files: BTreeMap::new() };
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
        let text = std::fs::read_to_string(self.file_of(key)).ok()?;
        line_of(&text, key)
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
        let text = std::fs::read_to_string(path).map_err(|source| ConfigFileError::Read {
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
        Ok(())
    }
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
    let mut seen = Vec::new();
    for item in list {
        let name = item.as_table().and_then(table_name).unwrap_or_default().to_owned();
        let key = format!("{prefix}.{name}");
        let is_first = !seen.contains(&name);
        let old = base.iter_mut().filter_map(Value::as_table_mut).find(|old| table_name(old) == Some(&name));
        match (old, item) {
            (Some(old), Value::Table(new)) if is_first => {
                files.insert(key.clone(), path.to_owned());
                merge(old, new, &key, path, files);
            }
            (_, item) => {
                stands(&key, &item, path, files);
                base.push(item);
            }
        }
        seen.push(name);
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
    files.retain(|known, _| !known.starts_with(&below));
}

#[cfg(test)]
mod tests;
