//! Reading a file of lines while another process adds to it.

use gavel_data::files::{open_regular, read_line};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The whole lines of a file so far, and then the new ones. A last line without its end is still being written, and is
/// read once it is whole.
pub(crate) struct LineFollower {
    path: PathBuf,
    /// The file that was read last. It is kept open, so that no other file gets its number.
    file: Option<File>,
    /// The end of the lines that were read.
    offset: u64,
    /// The number of them.
    lines: u64,
}

impl LineFollower {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None, offset: 0, lines: 0 }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `each` with the new whole lines and their numbers, from 1. Returns whether the file was
    /// replaced or removed since: all of its lines are then new.
    pub(crate) fn read_new(&mut self, each: impl FnMut(u64, &[u8])) -> io::Result<bool> {
        self.read_at_most(u64::MAX, each)
    }

    /// The same for at most `most` lines. The next call reads the lines after them.
    pub(crate) fn read_at_most(&mut self, most: u64, mut each: impl FnMut(u64, &[u8])) -> io::Result<bool> {
        let file = match open_regular(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(self.restart()),
            Err(error) => return Err(error),
        };
        let now = file.metadata()?;
        let is_same = match &self.file {
            Some(before) => {
                let before = before.metadata()?;
                (before.dev(), before.ino()) == (now.dev(), now.ino()) && now.len() >= self.offset
            }
            None => true,
        };
        let is_replaced = !is_same && self.restart();
        let mut lines = BufReader::new(&file);
        lines.seek(SeekFrom::Start(self.offset))?;
        let (mut line, end) = (Vec::new(), self.lines.saturating_add(most));
        while self.lines < end {
            let read = read_line(&mut lines, &mut line)?;
            if !line.ends_with(b"\n") {
                break;
            }
            (self.offset, self.lines) = (self.offset + read as u64, self.lines + 1);
            each(self.lines, &line);
        }
        self.file = Some(file);
        Ok(is_replaced)
    }

    /// Begins at the start again. Returns whether lines were read before.
    fn restart(&mut self) -> bool {
        (self.file, self.offset) = (None, 0);
        std::mem::take(&mut self.lines) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::files::write_whole;
    use std::fs;
    use std::io::Write;

    #[test]
    fn each_whole_line_is_read_once_until_the_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let mut follower = LineFollower::new(path.clone());
        let mut new = || {
            let mut found = Vec::new();
            let is_replaced = follower.read_new(|number, line| {
                found.push(format!("{number}{}", std::str::from_utf8(line).unwrap().trim_end()));
            });
            (is_replaced.unwrap(), found.join(" "))
        };
        let add = |text: &str| {
            let mut file = fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        assert_eq!(new(), (false, "".into()));
        add("a\nb\nc");
        assert_eq!(new(), (false, "1a 2b".into()));
        assert_eq!(new(), (false, "".into()));
        add("c\n");
        assert_eq!(new(), (false, "3cc".into()));
        // The line that was cut off is removed before the next one is written.
        add("d");
        assert_eq!(new(), (false, "".into()));
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(7).unwrap();
        add("e\n");
        assert_eq!(new(), (false, "4e".into()));
        // Replaced by a longer file, which may get the number of the file before.
        write_whole(&path, b"a\nb\ncc\nf\ng\n").unwrap();
        assert_eq!(new(), (true, "1a 2b 3cc 4f 5g".into()));
        fs::write(&path, "h\n").unwrap();
        assert_eq!(new(), (true, "1h".into()));
        fs::remove_file(&path).unwrap();
        assert_eq!(new(), (true, "".into()));
        assert_eq!(new(), (false, "".into()));
    }
    #[test]
    fn lines_can_be_read_a_few_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        fs::write(&path, "a\nb\nc\nd").unwrap();
        let mut follower = LineFollower::new(path.clone());
        let mut read = |most| {
            let mut found = String::new();
            let is_replaced = follower.read_at_most(most, |number, line| {
                found += &format!("{number}{}", std::str::from_utf8(line).unwrap().trim_end());
            });
            (is_replaced.unwrap(), found)
        };
        assert_eq!(read(2), (false, "1a2b".into()));
        assert_eq!(read(2), (false, "3c".into()));
        assert_eq!(read(2), (false, "".into()));
        write_whole(&path, b"e\nf\ng\n").unwrap();
        assert_eq!(read(2), (true, "1e2f".into()));
        assert_eq!(read(2), (false, "3g".into()));
    }
}
