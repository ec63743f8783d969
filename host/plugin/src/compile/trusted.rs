//! Reads files that are run, or that decide what is run, only if nobody but this
//! user can have written them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

/// Opens a regular file of this user with at most `max_bytes`, which others cannot
/// write to. The open descriptor is checked, and not the path.
pub(crate) fn open(path: &Path, max_bytes: u64) -> io::Result<File> {
    // Does not block on a pipe in its place.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let meta = file.metadata()?;
    let refused = |what: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, what.to_owned()));
    // SAFETY: it has no preconditions and cannot fail.
    let user = unsafe { libc::geteuid() };
    if !meta.is_file() {
        return refused("it is not a regular file");
    }
    if meta.uid() != user {
        return refused("it belongs to another user");
    }
    if meta.mode() & 0o022 != 0 {
        return refused("others may write to it");
    }
    if meta.len() > max_bytes {
        return refused("it is larger than any file that Gavel writes there");
    }
    Ok(file)
}

/// The contents of such a file.
pub(crate) fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open(path, max_bytes)?;
    // The cache removes last what was used last. If the time cannot be set, only this order is wrong.
    let _ = file.set_modified(SystemTime::now());
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_others_could_have_written_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("own"), "12345").unwrap();
        fs::set_permissions(at("own"), Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&at("own"), 5).unwrap(), b"12345");
        assert!(open(&at("own"), 4).unwrap_err().to_string().contains("larger"));
        symlink(at("own"), at("link")).unwrap();
        assert!(open(&at("link"), 5).is_err());
        assert!(open(folder.path(), 5).unwrap_err().to_string().contains("not a regular file"));
        fs::set_permissions(at("own"), Permissions::from_mode(0o620)).unwrap();
        assert!(open(&at("own"), 5).unwrap_err().to_string().contains("others may write"));
    }
}
