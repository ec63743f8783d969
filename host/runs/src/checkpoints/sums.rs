//! `BLAKE3SUMS`: the hash of every file of a checkpoint, in the form that
//! `b3sum --check` takes.

use super::damage::Damage;
use crate::error::{Result, RunError};
use gavel_data::files::{open_regular, read_regular_text};
use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::Path;

const FILE: &str = "BLAKE3SUMS";
/// The most bytes of it: a checkpoint has some dozens of files.
const MOST_BYTES: u64 = 1 << 20;

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
    let Some(sums) = read(folder)? else { return Ok(false) };
    for (expected, name) in &sums {
        compare(&folder.join(name), expected)?;
    }
    match needed.iter().find(|needed| !sums.iter().any(|(_, name)| name == *needed)) {
        Some(name) => Err(Damage::new(&folder.join(FILE), format!("it has no hash of {name}"))),
        None => Ok(true),
    }
}

/// Compares the files in `folder` that `is_meant` chooses with their hashes, as far as both are there.
pub(super) fn check_some(folder: &Path, is_meant: impl Fn(&str) -> bool) -> std::result::Result<(), Damage> {
    let sums = read(folder)?.unwrap_or_default();
    let meant = sums.iter().filter(|(_, name)| is_meant(name)).map(|(expected, name)| (expected, folder.join(name)));
    meant.filter(|(_, file)| file.exists()).try_for_each(|(expected, file)| compare(&file, expected))
}

/// The hashes in `folder` and the names of their files; `None` if there are none.
fn read(folder: &Path) -> std::result::Result<Option<Vec<(blake3::Hash, String)>>, Damage> {
    let path = folder.join(FILE);
    let text = match read_regular_text(&path, MOST_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Damage::new(&path, error)),
    };
    let sum = |line: &str| {
        let known = line.split_once("  ").and_then(|(hash, name)| Some((blake3::Hash::from_hex(hash).ok()?, name)));
        match known.filter(|(_, name)| !name.contains('/')) {
            Some((hash, name)) => Ok((hash, name.to_owned())),
            None => Err(Damage::new(&path, format!("the line {line:?} is not a hash and a file's name"))),
        }
    };
    text.lines().map(sum).collect::<std::result::Result<_, _>>().map(Some)
}

fn compare(file: &Path, expected: &blake3::Hash) -> std::result::Result<(), Damage> {
    match hash(file) {
        Ok(found) if found == *expected => Ok(()),
        Ok(_) => Err(Damage::new(file, "its content is not what was saved (its hash differs)")),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Damage::new(file, "it is missing")),
        Err(error) => Err(Damage::new(file, error)),
    }
}

fn hash(path: &Path) -> io::Result<blake3::Hash> {
    open_regular(path)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_mmap_rayon(path)?;
    Ok(hasher.finalize())
}
