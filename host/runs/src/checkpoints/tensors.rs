//! Whether files of tensors are whole, for checkpoints without hashes.

use super::damage::Damage;
use gavel_data::files::open_regular;
use memmap2::Mmap;
use safetensors::SafeTensors;
use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

/// Checks that each safetensors file in a checkpoint has a valid header and all
/// the bytes that the header lists.
pub(super) fn check(checkpoint: &Path) -> Result<(), Damage> {
    let files = fs::read_dir(checkpoint).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let files = files.map_err(|error| Damage::new(checkpoint, error))?;
    for file in files.iter().map(DirEntry::path) {
        if file.extension().is_some_and(|extension| extension == "safetensors") {
            check_file(&file)?;
        }
    }
    Ok(())
}

fn check_file(path: &Path) -> Result<(), Damage> {
    let read = |error: io::Error| Damage::new(path, format!("cannot read {}: {error}", path.display()));
    let file = open_regular(path).map_err(read)?;
    // SAFETY: the map is private and lives as long as this value only; a checkpoint that another process truncates
    // meanwhile would raise SIGBUS, as with every reader of safetensors.
    let map = unsafe { Mmap::map(&file) }.map_err(read)?;
    match SafeTensors::deserialize(&map) {
        Ok(_) => Ok(()),
        Err(error) => Err(Damage::new(path, format!("not a safetensors file: {error}"))),
    }
}
