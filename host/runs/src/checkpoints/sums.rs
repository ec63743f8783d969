//! `BLAKE3SUMS`: the hash of every file of a checkpoint, in the form that
//! `b3sum --check` takes.

use super::damage::Damage;
use crate::error::{Result, RunError};
use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::Path;

const FILE: &str = "BLAKE3SUMS";

/// Writes the hashes of the files in `folder`.
pub(super) fn write(folder: &Path) -> Result<()> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut names: Vec<_> = entries.map_err(RunError::io("read", folder))?.iter().map(DirEntry::file_name).collect();
    names.sort_unstable();
    let mut text = String::new();
    for name in names {
        let path = folder.join(&name);
        let hash = hash(&path).map_err(RunError::io("hash", &path))?;
        text += &format!("{hash}  {}\n", name.display());
    }
    let path = folder.join(FILE);
    fs::write(&path, text).map_err(RunError::io("write", &path))
}

/// Compares the files in `folder` with their hashes. Returns whether there are
/// hashes: older checkpoints have none.
pub(super) fn check(folder: &Path, needed: &[&str]) -> std::result::Result<bool, Damage> {
    let path = folder.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(Damage::new(&path, error)),
    };
    let mut named = Vec::new();
    for line in text.lines() {
        let known = line.split_once("  ").and_then(|(hash, name)| Some((blake3::Hash::from_hex(hash).ok()?, name)));
        let Some((expected, name)) = known.filter(|(_, name)| !name.contains('/')) else {
            return Err(Damage::new(&path, format!("the line {line:?} is not a hash and a file's name")));
        };
        let file = folder.join(name);
        match hash(&file) {
            Ok(found) if found == expected => named.push(name),
            Ok(_) => return Err(Damage::new(&file, "its content is not what was saved (its hash differs)")),
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(Damage::new(&file, "it is missing")),
            Err(error) => return Err(Damage::new(&file, error)),
        }
    }
    match needed.iter().find(|name| !named.contains(name)) {
        Some(name) => Err(Damage::new(&path, format!("it has no hash of {name}"))),
        None => Ok(true),
    }
}

fn hash(path: &Path) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_mmap_rayon(path)?;
    Ok(hasher.finalize())
}
