//! The folder in the user's cache into which set-up installs.

use crate::failure::{Failure, Result};
use crate::setup::cannot;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// `gavel/` in the user's cache folder.
pub fn folder() -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".cache")))
        .map(|cache| cache.join("gavel"))
        .ok_or_else(|| {
            Failure::new("cannot find the user's cache folder").hint("set HOME or XDG_CACHE_HOME to a folder")
        })
}

/// Allows one installation of `what` at a time; the lock ends with the process
/// that holds it.
pub fn lock(what: &str) -> Result<File> {
    let cache = folder()?;
    fs::create_dir_all(&cache).map_err(|error| cannot("make", &cache, &error))?;
    let path = cache.join(format!("{what}.lock"));
    let file = File::create(&path).map_err(|error| cannot("write", &path, &error))?;
    file.lock().map_err(|error| cannot("lock", &path, &error))?;
    Ok(file)
}

/// Removes a folder if it exists.
pub fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(cannot("remove", folder, &error)),
        _ => Ok(()),
    }
}
