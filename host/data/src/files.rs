//! Files that are never found half written, even if the process is killed or
//! the machine loses power. And files that other programs wrote.

use crate::disk;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes that are read at once to find the end of the last whole line.
const CHUNK: u64 = 64 * 1024;
/// The most bytes of a line. A group of samples, with all their tokens, is the longest line that Gavel writes.
const LINE_BYTES: u64 = 1 << 30;

/// Opens a regular file, which may be a link to one. Anything else in its place is an error: opening a pipe could wait
/// for ever, and a device may have no end.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

/// The content of a regular file with at most `most` bytes.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(length.min(most) as usize);
    if length <= most {
        file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    if length > most || bytes.len() as u64 > most {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// The text of a regular file with at most `most` bytes.
pub fn read_regular_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read_regular(path, most)?)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

/// Reads the next line and its line break into `line`. Returns its number of bytes, which is 0 at the end.
///
/// # Errors
/// The line is longer than any line that Gavel writes.
pub fn read_line(file: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    read_line_of(file, line, LINE_BYTES)
}

fn read_line_of(file: &mut impl BufRead, line: &mut Vec<u8>, most: u64) -> io::Result<usize> {
    line.clear();
    let read = file.by_ref().take(most).read_until(b'\n', line)?;
    match line.last() {
        Some(b'\n') | None => Ok(read),
        _ if (read as u64) < most => Ok(read),
        _ => Err(io::Error::new(ErrorKind::InvalidData, format!("a line has more than {most} bytes"))),
    }
}

/// Opens a file of lines for appending, and creates it where there is none. Text
/// after its last line break is a line that was cut off, and is removed. A link is
/// an error: a folder from somebody else could have one to any file.
pub fn append_to_lines(path: &Path) -> io::Result<File> {
    let mut file = open_unlinked(path, OpenOptions::new().create(true).read(true).append(true))?;
    let length = file.seek(SeekFrom::End(0))?;
    let whole = end_of_whole_lines(&mut file, length)?;
    if whole < length {
        file.set_len(whole)?;
    }
    Ok(file)
}

/// Opens a file for writing, but not through a link.
pub fn open_unlinked(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("it is a link, and nothing is written through links"),
        _ => error,
    })
}

fn end_of_whole_lines(file: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut chunk = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(start))?;
        chunk.clear();
        Read::by_ref(file).take(end - start).read_to_end(&mut chunk)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// A file that has its name only once it is whole, also after a power cut.
/// Dropped before [`finish`](Self::finish), it leaves nothing.
pub struct WholeFile {
    file: File,
    path: PathBuf,
    /// Its name until it is whole; `None` for what is no file, which keeps its name.
    partial: Option<PathBuf>,
}

impl WholeFile {
    /// Starts a file that will have the name `path`, and replace a file that is
    /// there.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_as(path, partial(path))
    }

    /// The same as [`create`](Self::create), with the name `partial` until it is
    /// whole: for files that several threads may write at once.
    pub fn create_as(path: &Path, partial: PathBuf) -> io::Result<Self> {
        let file = open_unlinked(&partial, OpenOptions::new().write(true).create(true).truncate(true))?;
        Ok(Self { file, path: path.to_owned(), partial: Some(partial) })
    }

    /// The same as [`create`](Self::create) for a path that a user names. What is there and is no file, such as a pipe or
    /// `/dev/null`, is opened, written to and left in place: a file in its place would be the end of the device. So is a
    /// standard stream by its name, such as `/dev/stdout`, which may be a file too.
    ///
    /// # Errors
    /// The path is a folder, or cannot be written.
    pub fn create_or_open(path: &Path) -> io::Result<Self> {
        let file = match standard_stream(path) {
            Some(stream) => stream?,
            None if path.metadata().is_ok_and(|found| !found.is_file()) => OpenOptions::new().write(true).open(path)?,
            None => return Self::create(path),
        };
        Ok(Self { file, path: path.to_owned(), partial: None })
    }

    /// Gives the file its name, once its content is on the disk.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(partial) = &self.partial else { return Ok(()) };
        disk::sync(&self.file, partial)?;
        self.rename()?;
        disk::sync_folder(disk::folder_of(&self.path))
    }

    /// Gives the file its name; a power cut may still take its content.
    pub fn finish_unsynced(mut self) -> io::Result<()> {
        self.rename()
    }

    fn rename(&mut self) -> io::Result<()> {
        if let Some(partial) = &self.partial {
            disk::rename(partial, &self.path)?;
            self.partial = None;
        }
        Ok(())
    }
}

/// The stream that a name of one stands for. A second file that is opened by this name would begin at its start.
#[expect(clippy::disallowed_methods, reason = "a user names it as the file that is written to")]
fn standard_stream(path: &Path) -> Option<io::Result<File>> {
    let stream = match path.to_str()? {
        "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => io::stdout().as_fd().try_clone_to_owned(),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => io::stderr().as_fd().try_clone_to_owned(),
        _ => return None,
    };
    Some(stream.map(File::from))
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // An error here is ignored: the caller reports the earlier error.
            let _ = fs::remove_file(partial);
        }
    }
}

/// Writes a file that has its name only once it is whole, also after a power
/// cut. It replaces what is there.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = WholeFile::create(path)?;
    file.write_all(bytes)?;
    file.finish()
}

/// Gives the folder `partial` the name `path`, which nothing has, once
/// everything in it is on the disk.
pub fn finish_folder(partial: &Path, path: &Path) -> io::Result<()> {
    disk::sync_tree(partial)?;
    disk::rename(partial, path)?;
    disk::sync_folder(disk::folder_of(path))
}

/// Removes a folder, so that it is never found half removed under its name.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    let partial = partial(path);
    if partial.exists() {
        disk::remove_tree(&partial)?;
    }
    disk::rename(path, &partial)?;
    disk::sync_folder(disk::folder_of(path))?;
    disk::remove_tree(&partial)
}

/// Creates a folder and its missing parents. Their names survive a power cut.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = disk::folder_of(path);
    if above != path {
        make_folder(above)?;
    }
    match fs::create_dir(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists || !path.is_dir() => Err(error),
        _ => disk::sync_folder(above),
    }
}

/// A file's text without the byte-order mark that some editors put before it.
pub fn without_bom(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The name that a file or a folder has until it is whole.
pub fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Operation;
    use std::cell::RefCell;
    use std::os::unix::fs::FileTypeExt;
    use std::rc::Rc;

    #[test]
    fn a_line_that_was_cut_off_goes_before_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let long = "x".repeat(3 * CHUNK as usize);
        for (found, kept) in [
            (String::new(), String::new()),
            ("a\nb\n".into(), "a\nb\n".into()),
            ("a\nb".into(), "a\n".into()),
            ("no line at all".into(), String::new()),
            (format!("a\n{long}"), "a\n".into()),
            (format!("{long}\n{long}"), format!("{long}\n")),
        ] {
            fs::write(&path, found).unwrap();
            append_to_lines(&path).unwrap().write_all(b"new\n").unwrap();
            assert!(fs::read_to_string(&path).unwrap() == format!("{kept}new\n"));
        }
    }

    #[test]
    fn a_line_without_an_end_is_not_read() {
        let mut file: &[u8] = b"12345\n\n1234567\n12345678";
        let mut line = Vec::new();
        let mut next = || read_line_of(&mut file, &mut line, 8).map(|read| (read, line.clone()));
        assert_eq!(next().unwrap(), (6, b"12345\n".to_vec()));
        assert_eq!(next().unwrap(), (1, b"\n".to_vec()));
        assert_eq!(next().unwrap(), (8, b"1234567\n".to_vec()));
        assert_eq!(next().unwrap_err().to_string(), "a line has more than 8 bytes");
        let mut cut_off: &[u8] = b"1234";
        let mut next = || read_line_of(&mut cut_off, &mut line, 8);
        assert_eq!((next().unwrap(), next().unwrap()), (4, 0));
    }

    #[test]
    fn a_file_is_read_up_to_the_most_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_regular_text(&path, 5).unwrap(), "12345");
        assert_eq!(read_regular(&path, 4).unwrap_err().to_string(), "it has more than 4 bytes");
        // Its length is 0, and it has content.
        assert_eq!(
            read_regular(Path::new("/proc/self/status"), 9).unwrap_err().to_string(),
            "it has more than 9 bytes"
        );
        assert_eq!(open_regular(Path::new("/dev/zero")).unwrap_err().to_string(), "it is not a regular file");
    }

    /// The operations of `work` in `folder`, with the names there.
    fn operations(folder: &Path, work: impl FnOnce() -> io::Result<()>) -> Vec<String> {
        let found = Rc::new(RefCell::new(Vec::new()));
        let (seen, root) = (found.clone(), folder.to_owned());
        let short = move |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
        disk::watch(
            move |operation| {
                seen.borrow_mut().push(match operation {
                    Operation::Sync(path) => format!("sync {}", short(path)),
                    Operation::SyncFolder(path) => format!("sync folder {}", short(path)),
                    Operation::Rename(from, to) => format!("rename {} {}", short(from), short(to)),
                    Operation::Remove(path) => format!("remove {}", short(path)),
                });
            },
            work,
        )
        .unwrap();
        found.take()
    }

    #[test]
    fn content_is_on_the_disk_before_its_name_is() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let file = operations(root.path(), || write_whole(&path("a"), b"new"));
        assert_eq!(file, ["sync a.partial", "rename a.partial a", "sync folder "]);
        assert_eq!(fs::read(path("a")).unwrap(), b"new");

        let made = operations(root.path(), || make_folder(&path("b.partial/c")));
        assert_eq!(made, ["sync folder ", "sync folder b.partial"]);
        for name in ["b.partial/y", "b.partial/x", "b.partial/c/z"] {
            fs::write(path(name), name).unwrap();
        }
        let folder = operations(root.path(), || finish_folder(&path("b.partial"), &path("b")));
        let expected = [
            "sync b.partial/c/z",
            "sync folder b.partial/c",
            "sync b.partial/x",
            "sync b.partial/y",
            "sync folder b.partial",
            "rename b.partial b",
            "sync folder ",
        ];
        assert_eq!(folder, expected);

        let removed = operations(root.path(), || remove_folder(&path("b")));
        assert_eq!(removed, ["rename b b.partial", "sync folder ", "remove b.partial"]);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_file_is_written_to_and_left_in_place() {
        let root = tempfile::tempdir().unwrap();
        let pipe = root.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe).unwrap()
        });
        let mut file = WholeFile::create_or_open(&pipe).unwrap();
        file.write_all(b"new").unwrap();
        file.finish().unwrap();
        assert_eq!(reader.join().unwrap(), "new");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);

        WholeFile::create_or_open(Path::new("/dev/null")).unwrap().finish_unsynced().unwrap();
        let full = WholeFile::create_or_open(Path::new("/dev/full")).unwrap().write_all(b"new").unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        for device in ["/dev/null", "/dev/full"] {
            assert!(fs::symlink_metadata(device).unwrap().file_type().is_char_device(), "{device}");
        }
        assert!(standard_stream(Path::new("/dev/stdout")).unwrap().is_ok());
        assert!(WholeFile::create_or_open(root.path()).is_err(), "a folder");

        // A file is replaced once it is whole.
        let path = root.path().join("a");
        for content in ["old", "new"] {
            let mut file = WholeFile::create_or_open(&path).unwrap();
            file.write_all(content.as_bytes()).unwrap();
            assert!(!fs::read(&path).is_ok_and(|found| found == content.as_bytes()));
            file.finish().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
    }

    #[test]
    fn what_was_not_finished_leaves_the_old_file() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a");
        fs::write(&path, "old").unwrap();
        WholeFile::create(&path).unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "a partial file is left");
    }
}
