//! The disk operations whose order decides what survives a power cut.
//!
//! A file keeps the content that it had when it was last synced, and a folder
//! keeps its names. Later changes may survive in part. So a replacement is
//! written, synced and renamed, and then its folder is synced. Everything that
//! must survive a power cut goes through this module, where tests [`watch`] it.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// An operation that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// A file's content is on the disk.
    Sync(PathBuf),
    /// A folder's names are on the disk.
    SyncFolder(PathBuf),
    /// A file or folder has another name.
    Rename(PathBuf, PathBuf),
    /// A file, or a folder with its contents, is gone.
    Remove(PathBuf),
}

type Seen = Box<dyn FnMut(&Operation)>;

thread_local! {
    static WATCH: RefCell<Option<Seen>> = const { RefCell::new(None) };
}

/// Calls `seen` after each operation of this thread while `work` runs. Tests
/// record the order, and try what a power cut would leave.
pub fn watch<T>(seen: impl FnMut(&Operation) + 'static, work: impl FnOnce() -> T) -> T {
    WATCH.set(Some(Box::new(seen)));
    let result = work();
    WATCH.take();
    result
}

fn done(operation: Operation) {
    // Taken out for the call, since the watcher's own operations come through here too.
    if let Some(mut seen) = WATCH.take() {
        seen(&operation);
        WATCH.set(Some(seen));
    }
}

/// Syncs the content of the open file at `path`.
pub fn sync(file: &File, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    done(Operation::Sync(path.to_owned()));
    Ok(())
}

/// Syncs the content of the file at `path`, whichever process wrote it.
pub fn sync_file(path: &Path) -> io::Result<()> {
    sync(&File::open(path)?, path)
}

/// Syncs the names in a folder.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some network file systems sync names by themselves and refuse the call.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => {}
        synced => synced?,
    }
    done(Operation::SyncFolder(folder.to_owned()));
    Ok(())
}

/// Syncs everything in a folder, and its names.
pub fn sync_tree(folder: &Path) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        match entry.file_type()?.is_dir() {
            true => sync_tree(&path)?,
            false => sync_file(&path)?,
        }
    }
    sync_folder(folder)
}

/// Gives a file or a folder another name.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    done(Operation::Rename(from.to_owned(), to.to_owned()));
    Ok(())
}

/// Removes a folder with its contents.
pub fn remove_tree(folder: &Path) -> io::Result<()> {
    fs::remove_dir_all(folder)?;
    done(Operation::Remove(folder.to_owned()));
    Ok(())
}

/// Removes a file.
pub fn remove_file(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    done(Operation::Remove(path.to_owned()));
    Ok(())
}

/// What to do where a file cannot be written for a cause that has nothing to do with it: a line break and a hint, to be
/// put at the end of the message. Nothing where the cause is another.
pub fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull => "\nhint: the disk is full: make room on it, or name a folder on another disk",
        ErrorKind::QuotaExceeded => "\nhint: the quota is used up: remove files, or name a folder on another disk",
        ErrorKind::ReadOnlyFilesystem => "\nhint: the disk is read-only: name a folder on another disk",
        // Without a number of the system, it is a file that is too long to be read.
        ErrorKind::FileTooLarge if error.raw_os_error().is_some() => {
            "\nhint: files here have a largest size: raise `ulimit -f`, or name a folder on another disk"
        }
        _ => "",
    }
}

/// The folder that a name is in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_disk_that_takes_nothing_has_a_hint() {
        for (number, says) in [
            (libc::ENOSPC, "\nhint: the disk is full"),
            (libc::EDQUOT, "\nhint: the quota is used up"),
            (libc::EROFS, "\nhint: the disk is read-only"),
            (libc::EFBIG, "\nhint: files here have a largest size"),
        ] {
            assert!(hint(&io::Error::from_raw_os_error(number)).starts_with(says), "{number}");
        }
        assert_eq!(hint(&io::Error::from_raw_os_error(libc::ENOENT)), "");
        assert_eq!(hint(&io::Error::new(ErrorKind::FileTooLarge, "it has more than 4 bytes")), "");
        // What writes JSON gives the cause on.
        let written = serde_json::to_writer(File::create("/dev/full").unwrap(), "text");
        assert!(hint(&io::Error::from(written.unwrap_err())).contains("the disk is full"));
        let written = File::create("/dev/full").unwrap().write_all(b"text");
        assert!(hint(&written.unwrap_err()).contains("the disk is full"));
    }
}
