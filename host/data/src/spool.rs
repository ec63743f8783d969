//! Records of bytes that may be too many for memory. Then they are in a file that has no name: it is gone with the
//! process, however that ends.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Bytes that are written to the file at once.
const WRITE_BYTES: usize = 1 << 20;

/// Records by their numbers: in memory while they have few bytes, and otherwise in a file without a name.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    most_in_memory: usize,
    /// Where each record ends.
    ends: Vec<u64>,
    file: Option<File>,
    /// The bytes in the file.
    written: u64,
    /// The bytes after them.
    rest: Vec<u8>,
}

/// Records that cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SpoolError {
    /// There is no file.
    #[error("cannot make a file for the rows of large datasets in {}: {source}\n{HINT}", folder.display())]
    Create { folder: PathBuf, source: io::Error },
    /// The disk is full, say.
    #[error(
        "cannot keep the rows of large datasets in a file in {}, which has {written} bytes: {source}\n{HINT}",
        folder.display()
    )]
    Write { folder: PathBuf, written: u64, source: io::Error },
    /// The disk fails.
    #[error("cannot read the rows that are kept in a file in {}: {source}", folder.display())]
    Read { folder: PathBuf, source: io::Error },
}

const HINT: &str =
    "hint: set the variable TMPDIR to a folder on a disk with twice as much room as the datasets take as JSON Lines";

impl Spool {
    /// Records in memory up to `most_in_memory` bytes, and then in a file in the folder for temporary files.
    pub fn new(most_in_memory: usize) -> Self {
        Self::in_folder(std::env::temp_dir(), most_in_memory)
    }

    fn in_folder(folder: PathBuf, most_in_memory: usize) -> Self {
        Self { folder, most_in_memory, ends: Vec::new(), file: None, written: 0, rest: Vec::new() }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// It has no room.
    pub fn push(&mut self, record: &[u8]) -> Result<(), SpoolError> {
        self.rest.extend_from_slice(record);
        self.ends.push(self.written + self.rest.len() as u64);
        let most = if self.is_in_memory() { self.most_in_memory } else { WRITE_BYTES };
        if self.rest.len() > most { self.flush() } else { Ok(()) }
    }

    /// Moves the records to the file.
    ///
    /// # Errors
    /// They have no room.
    pub fn flush(&mut self) -> Result<(), SpoolError> {
        let Self { folder, file, written, .. } = self;
        let file = match file {
            Some(file) => file,
            None => {
                let made = tempfile::tempfile_in(&*folder);
                file.insert(made.map_err(|source| SpoolError::Create { folder: folder.clone(), source })?)
            }
        };
        let full = |source| SpoolError::Write { folder: folder.clone(), written: *written, source };
        file.write_all_at(&self.rest, *written).map_err(full)?;
        self.written += self.rest.len() as u64;
        // Its memory may be as large as all that was in memory before.
        self.rest = Vec::new();
        Ok(())
    }

    /// Whether there is no file.
    pub fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Reads the record `number` into `record`.
    ///
    /// # Errors
    /// There is no such record, or the file cannot be read.
    pub fn read(&self, number: usize, record: &mut Vec<u8>) -> Result<(), SpoolError> {
        let failed = |source| SpoolError::Read { folder: self.folder.clone(), source };
        let none = || failed(io::Error::other(format!("there is no row {number}")));
        let end = self.ends.get(number).copied().ok_or_else(none)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        let length = (end - start) as usize;
        record.clear();
        match (&self.file, start.checked_sub(self.written)) {
            // A record is written whole.
            (_, Some(start)) => record.extend_from_slice(&self.rest[start as usize..][..length]),
            (Some(file), None) => {
                record.resize(length, 0);
                file.read_exact_at(record, start).map_err(failed)?;
            }
            (None, None) => return Err(none()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: usize) -> Vec<u8> {
        (0..number * 37 % 100).map(|at| (number + at) as u8).collect()
    }

    #[test]
    fn every_record_is_read_again_from_memory_and_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        for (most, is_in_memory) in [(1 << 20, true), (1000, false), (0, false)] {
            let mut spool = Spool::in_folder(folder.path().to_owned(), most);
            assert!(spool.is_empty());
            (0..500).for_each(|number| spool.push(&record(number)).unwrap());
            assert_eq!((spool.len(), spool.is_in_memory()), (500, is_in_memory));
            let mut found = vec![7; 3];
            for number in (0..500).rev() {
                spool.read(number, &mut found).unwrap();
                assert_eq!(found, record(number));
            }
            let error = spool.read(500, &mut found).unwrap_err().to_string();
            assert!(error.ends_with("there is no row 500"), "{error}");
            // The file has no name, so that nothing is left of it.
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn records_around_the_size_of_a_write_are_whole() {
        let mut spool = Spool::new(10);
        let records: Vec<Vec<u8>> =
            [WRITE_BYTES - 1, 1, WRITE_BYTES, 0, WRITE_BYTES + 1, 5].map(|size| vec![size as u8; size]).into();
        records.iter().for_each(|record| spool.push(record).unwrap());
        let mut found = Vec::new();
        for (number, record) in records.iter().enumerate() {
            spool.read(number, &mut found).unwrap();
            assert!(found == *record, "{number}");
        }
    }

    #[test]
    fn what_has_no_room_is_an_error_with_a_hint() {
        let hint = "hint: set the variable TMPDIR to a folder on a disk with twice as much room as the datasets take as JSON Lines";
        let folder = tempfile::tempdir().unwrap();
        let mut nowhere = Spool::in_folder(folder.path().join("none"), 3);
        nowhere.push(b"abc").unwrap();
        let error = nowhere.push(b"d").unwrap_err().to_string();
        let start = format!("cannot make a file for the rows of large datasets in {}", folder.path().display());
        assert!(error.starts_with(&start) && error.ends_with(hint), "{error}");

        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut spool = Spool { file: Some(full), ..Spool::in_folder("/somewhere".into(), 0) };
        let error = spool.push(&vec![0; WRITE_BYTES + 1]).unwrap_err().to_string();
        let start = "cannot keep the rows of large datasets in a file in /somewhere, which has 0 bytes: No space left on device";
        assert!(error.starts_with(start) && error.ends_with(hint), "{error}");
    }
}
