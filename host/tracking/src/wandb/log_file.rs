//! The framing of a `.wandb` file: seven bytes that name the format, then records as in LevelDB's log
//! (<https://github.com/google/leveldb/blob/main/doc/log_format.md>), but with the CRC-32 of zip files. A record is one
//! chunk or several, and no chunk crosses a block.

use std::io::{Result, Write};

/// The name of the format, its magic number and its version.
const HEADER: &[u8; 7] = b":W&B\xe1\xbe\x00";
const BLOCK: usize = 32 * 1024;
/// The checksum, the length and the type of a chunk.
const CHUNK_HEADER: usize = 7;

const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// Writes records.
pub(super) struct LogFile<W> {
    file: W,
    /// Where the next byte is in its block.
    place: usize,
}

impl<W: Write> LogFile<W> {
    /// A new file.
    pub(super) fn create(mut file: W) -> Result<Self> {
        file.write_all(HEADER)?;
        Ok(Self { file, place: HEADER.len() })
    }

    /// Adds a record.
    pub(super) fn write(&mut self, mut record: &[u8]) -> Result<()> {
        let mut is_first = true;
        loop {
            let left = BLOCK - self.place;
            if left < CHUNK_HEADER {
                self.file.write_all(&[0; CHUNK_HEADER][..left])?;
                self.place = 0;
                continue;
            }
            let (chunk, rest) = record.split_at(record.len().min(left - CHUNK_HEADER));
            let kind = match (is_first, rest.is_empty()) {
                (true, true) => FULL,
                (true, false) => FIRST,
                (false, false) => MIDDLE,
                (false, true) => LAST,
            };
            self.write_chunk(kind, chunk)?;
            if rest.is_empty() {
                return Ok(());
            }
            (record, is_first) = (rest, false);
        }
    }

    fn write_chunk(&mut self, kind: u8, chunk: &[u8]) -> Result<()> {
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&[kind]);
        checksum.update(chunk);
        // A chunk is shorter than a block, so that its length has 16 bits.
        let length = chunk.len() as u16;
        self.file.write_all(&checksum.finalize().to_le_bytes())?;
        self.file.write_all(&length.to_le_bytes())?;
        self.file.write_all(&[kind])?;
        self.file.write_all(chunk)?;
        self.place = (self.place + CHUNK_HEADER + chunk.len()) % BLOCK;
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.file.flush()
    }
}

/// The records of a file, as wandb's reader finds them.
#[cfg(test)]
pub(super) fn read(file: &[u8]) -> Vec<Vec<u8>> {
    assert_eq!(&file[..HEADER.len()], HEADER);
    let (mut records, mut record, mut at) = (Vec::new(), Vec::new(), HEADER.len());
    let mut is_within = false;
    while at < file.len() {
        let left = BLOCK - at % BLOCK;
        if left < CHUNK_HEADER {
            assert!(file[at..].iter().take(left).all(|byte| *byte == 0));
            at += left;
            continue;
        }
        let checksum = u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let length = usize::from(u16::from_le_bytes(file[at + 4..at + 6].try_into().unwrap()));
        assert!(length <= left - CHUNK_HEADER, "a chunk crosses a block");
        let checked = &file[at + 6..at + CHUNK_HEADER + length];
        assert_eq!(crc32fast::hash(checked), checksum);
        let kind = checked[0];
        assert_eq!(is_within, matches!(kind, MIDDLE | LAST), "chunk of kind {kind}");
        record.extend_from_slice(&checked[1..]);
        is_within = matches!(kind, FIRST | MIDDLE);
        if !is_within {
            records.push(std::mem::take(&mut record));
        }
        at += CHUNK_HEADER + length;
    }
    assert!(!is_within, "the last record is not whole");
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_every_length_are_read_again() {
        // Lengths around the end of the first block, and of several blocks.
        let room = BLOCK - HEADER.len() - CHUNK_HEADER;
        for first in (room - 16..room + 16).chain([0, 1, 2 * BLOCK, 3 * BLOCK - 20]) {
            let mut bytes = Vec::new();
            let mut log = LogFile::create(&mut bytes).unwrap();
            let records = [vec![7; first], vec![], vec![8; 3], vec![9; BLOCK]];
            records.iter().for_each(|record| log.write(record).unwrap());
            assert_eq!(read(&bytes), records, "{first}");
        }
    }

    #[test]
    fn a_record_is_framed_as_wandb_frames_it() {
        let mut bytes = Vec::new();
        LogFile::create(&mut bytes).unwrap().write(b"\x08\x01").unwrap();
        // The checksum is zlib.crc32(b"\x01\x08\x01").
        assert_eq!(bytes, b":W&B\xe1\xbe\x00\xbb\x09\x5d\x41\x02\x00\x01\x08\x01");
    }
}
