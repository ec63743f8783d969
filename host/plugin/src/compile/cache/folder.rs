//! The cache's folder. It belongs to this user alone, its files are written
//! whole, and its size is limited.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Writes a file that exists whole or not at all.
pub(super) fn write(folder: &Path, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    // Only its owner can read or write it.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.persist(path)?;
    Ok(())
}

/// Removes the least recently used files until the rest is within `limit`.
/// Code in use stays mapped in the processes that use it.
pub(super) fn prune(folder: &Path, limit: u64) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Another process may have removed it.
        if let Ok(meta) = entry.metadata() {
            files.push((meta.modified()?, meta.len(), entry.path()));
        }
    }
    files.sort();
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    for (_, size, path) in files {
        if total <= limit {
            break;
        }
        let _ = fs::remove_file(path);
        total -= size;
    }
    Ok(())
}

/// Creates the folder and checks that nobody else can put code into it.
pub(super) fn prepare(folder: &Path) -> Result<PathBuf, String> {
    let failed = |error: io::Error| format!("{} cannot be used: {error}", folder.display());
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let folder = folder.canonicalize().map_err(failed)?;
    let meta = fs::metadata(&folder).map_err(failed)?;
    // SAFETY: it has no preconditions and cannot fail.
    let user = unsafe { libc::geteuid() };
    if meta.uid() != user {
        return Err(format!(
            "{} belongs to another user\nhint: set GAVEL_CACHE_DIR to a folder of yours",
            folder.display()
        ));
    }
    if meta.mode() & 0o022 != 0 {
        // A change of the permissions now would be too late for files that others have put there.
        return Err(format!("others may write to {0}\nhint: remove it: rm -r {0}", folder.display()));
    }
    // A user who may rename a parent folder may replace this one, unless the sticky bit forbids it.
    for parent in folder.ancestors().skip(1) {
        let mode = fs::metadata(parent).map_err(failed)?.mode();
        if mode & 0o002 != 0 && mode & 0o1000 == 0 {
            return Err(format!("anybody may write to {0}\nhint: chmod o-w {0}", parent.display()));
        }
    }
    // Fails here, and only once, if the folder cannot be written to.
    tempfile::NamedTempFile::new_in(&folder).map_err(failed)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::time::SystemTime;

    #[test]
    fn a_folder_that_others_may_write_to_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("components");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o770)).unwrap();
        assert!(prepare(&folder).unwrap_err().contains("others may write"));
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o777)).unwrap();
        assert!(prepare(&folder).unwrap_err().contains("anybody may write"));
        fs::set_permissions(root.path(), Permissions::from_mode(0o1777)).unwrap();
        prepare(&folder).unwrap();
    }

    #[test]
    fn what_was_used_last_is_removed_last() {
        let root = tempfile::tempdir().unwrap();
        for (name, age) in [("old", 30), ("new", 10), ("older", 60)] {
            let path = root.path().join(name);
            fs::write(&path, [0; 100]).unwrap();
            let used = SystemTime::now() - std::time::Duration::from_secs(age);
            File::options().append(true).open(&path).unwrap().set_modified(used).unwrap();
        }
        prune(root.path(), 150).unwrap();
        let left: Vec<_> = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["new"]);
    }
}
