//! The lines of a JSON Lines file, none of which is held in memory beyond its limit.

use super::row_size::too_long;
use std::io::{self, BufRead, ErrorKind, Read};

/// Lines with at most `most` bytes.
pub(super) struct Lines<F> {
    file: F,
    most: usize,
    is_over: bool,
}

/// How many times as long as allowed a line may be that is passed over. A file may have one line without end.
const PASSED_OVER: u64 = 64;

impl<F: BufRead> Lines<F> {
    pub(super) fn new(file: F, most: usize) -> Self {
        Self { file, most, is_over: false }
    }

    /// The next line without its line break.
    fn read(&mut self) -> io::Result<Option<String>> {
        if self.is_over {
            return Ok(None);
        }
        let mut line = Vec::new();
        // The line, `\r`, and `\n`.
        let limit = self.most as u64 + 2;
        if Read::by_ref(&mut self.file).take(limit).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let is_whole = line.pop_if(|last| *last == b'\n').is_some();
        if is_whole {
            line.pop_if(|last| *last == b'\r');
        }
        if line.len() > self.most {
            let passed_over = PASSED_OVER * self.most as u64;
            if !is_whole {
                // One byte more shows whether the line ends where the limit is.
                let mut rest = Read::by_ref(&mut self.file).take(passed_over + 1);
                self.is_over = rest.skip_until(b'\n')? as u64 > passed_over;
            }
            let what = match self.is_over {
                true => format!("the line has more than {passed_over} bytes, and nothing after it is read"),
                false => too_long(self.most),
            };
            return Err(io::Error::new(ErrorKind::FileTooLarge, what));
        }
        let text = String::from_utf8(line);
        text.map(Some).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
    }
}

impl<F: BufRead> Iterator for Lines<F> {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_an_error_and_the_next_one_is_read() {
        let long = "x".repeat(40);
        let text = format!("12345678\n\n12345678\r\n123456789\n{long}\nab\r\n\r\n{long}");
        let read: Vec<_> = Lines::new(text.as_bytes(), 8).map(|line| line.map_err(|error| error.kind())).collect();
        let long = || Err(ErrorKind::FileTooLarge);
        let line = |text: &str| Ok(text.to_owned());
        assert_eq!(read, [line("12345678"), line(""), line("12345678"), long(), long(), line("ab"), line(""), long()]);
    }

    #[test]
    fn a_line_without_end_ends_the_file() {
        let mut lines = Lines::new(std::io::BufReader::with_capacity(16, std::io::repeat(b'x')), 8);
        let error = lines.next().unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the line has more than 512 bytes, and nothing after it is read");
        assert!(lines.next().is_none());
    }

    #[test]
    fn the_longest_line_that_is_passed_over_does_not_end_the_file() {
        // The 10 bytes that are read first, then 512 with the line break.
        for (bytes, after) in [(10 + 510, Some("ab")), (10 + 511, Some("ab")), (10 + 512, None)] {
            let text = format!("{}\nab\n", "x".repeat(bytes));
            let mut lines = Lines::new(text.as_bytes(), 8);
            assert_eq!(lines.next().unwrap().unwrap_err().kind(), ErrorKind::FileTooLarge);
            assert_eq!(lines.next().transpose().unwrap().as_deref(), after, "{bytes}");
        }
        let mut last = Lines::new(&[b'x'; 10 + 512][..], 8);
        assert_eq!(last.next().unwrap().unwrap_err().to_string(), too_long(8));
        assert!(last.next().is_none());
    }
}
