//! Files that a process may be killed over: nobody ever finds half of one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes looked at together for the end of the last whole line.
const CHUNK: u64 = 64 * 1024;

/// Opens a file of lines to add to, and makes it where there is none. What
/// follows its last line break was cut off in the middle, and goes.
pub fn append_to_lines(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    let length = file.seek(SeekFrom::End(0))?;
    let whole = end_of_whole_lines(&mut file, length)?;
    if whole < length {
        file.set_len(whole)?;
    }
    Ok(file)
}

fn end_of_whole_lines(file: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut chunk = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(start))?;
        chunk.clear();
        file.by_ref().take(end - start).read_to_end(&mut chunk)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Writes a file that has its name only once it is whole.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = partial(path);
    fs::write(&partial, bytes)?;
    fs::rename(&partial, path)
}

/// The name that a file has until it is whole.
pub fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

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
}
