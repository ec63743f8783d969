//! Reading the end of a file of lines.

use gavel_data::files::open_regular;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are read at once.
const CHUNK: u64 = 64 * 1024;

/// Calls `each` with the whole lines of a file from the last to the first, without their ends, until it returns `false` or
/// `most` bytes are read.
pub(crate) fn last_lines(path: &Path, most: u64, mut each: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    let floor = length.saturating_sub(most);
    // What was read of the line that begins before `end`, from its end to its start in pieces.
    let (mut end, mut pieces): (u64, Vec<Vec<u8>>) = (length, Vec::new());
    // What is behind the last line break is a line that is being written.
    let mut is_cut_off = true;
    while end > floor {
        let start = end.saturating_sub(CHUNK).max(floor);
        let mut chunk = vec![0; (end - start) as usize];
        file.read_exact_at(&mut chunk, start)?;
        while let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            pieces.push(chunk.split_off(at + 1));
            chunk.pop();
            let line = joined(&mut pieces);
            if !std::mem::take(&mut is_cut_off) && !each(&line) {
                return Ok(());
            }
        }
        pieces.push(chunk);
        end = start;
    }
    if end == 0 && !is_cut_off {
        each(&joined(&mut pieces));
    }
    Ok(())
}

/// The bytes of pieces in reverse order.
fn joined(pieces: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut line = Vec::with_capacity(pieces.iter().map(Vec::len).sum());
    pieces.drain(..).rev().for_each(|piece| line.extend(piece));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_from_the_last_to_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let long = "x".repeat(3 * CHUNK as usize + 5);
        for (text, expected) in [
            ("", vec![]),
            ("a", vec![]),
            ("a\n", vec!["a"]),
            ("a\n\nb\nc", vec!["b", "", "a"]),
            (&format!("{long}\nb\n"), vec!["b", &long]),
            (&format!("a\n{long}\n{long}"), vec![&long, "a"]),
        ] {
            std::fs::write(&path, text).unwrap();
            let mut found = Vec::new();
            let mut add = |line: &[u8]| {
                found.push(String::from_utf8(line.to_vec()).unwrap());
                true
            };
            last_lines(&path, u64::MAX, &mut add).unwrap();
            assert!(found == expected, "{} lines of {}", found.len(), text.len());
        }
        std::fs::write(&path, "first\nsecond\nthird\n").unwrap();
        let found = |most: u64, count: usize| {
            let mut found = Vec::new();
            last_lines(&path, most, |line| {
                found.push(String::from_utf8(line.to_vec()).unwrap());
                found.len() < count
            })
            .unwrap();
            found
        };
        assert_eq!(found(13, 9), ["third"], "the first line of the end may not be whole");
        assert_eq!(found(14, 9), ["third", "second"]);
        assert_eq!(found(99, 2), ["third", "second"]);
    }
}
