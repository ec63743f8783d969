//! The lines of a JSON Lines file, none of which is held in memory beyond its limit.

use super::row_size::too_long;
use std::io::{self, BufRead, ErrorKind, Read};

/// Lines with at most `most` bytes.
pub(super) struct Lines<F> {
    file: F,
    most: usize,
}

impl<F: BufRead> Lines<F> {
    pub(super) fn new(file: F, most: usize) -> Self {
        Self { file, most }
    }

    /// The next line without its line break.
    fn read(&mut self) -> io::Result<Option<String>> {
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
            if !is_whole {
                self.file.skip_until(b'\n')?;
            }
            return Err(io::Error::new(ErrorKind::FileTooLarge, too_long(self.most)));
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
}
