//! The bytes of a Parquet file.

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, BufReader, Read};

/// A file that reports an error when it is read past its end. To skip an unknown field of a page's header, `parquet`
/// reads as many items as the field claims, and would not stop at the end of the file.
pub(super) struct ParquetFile(pub(super) File);

impl Length for ParquetFile {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for ParquetFile {
    type T = UntilEnd;

    fn get_read(&self, start: u64) -> Result<UntilEnd> {
        Ok(UntilEnd { file: self.0.get_read(start)?, is_over: false })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// Reports the end of the file at the first read past it, and an error at each later one.
pub(super) struct UntilEnd {
    file: BufReader<File>,
    is_over: bool,
}

impl Read for UntilEnd {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        if read == 0 && !into.is_empty() && std::mem::replace(&mut self.is_over, true) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends within a page"));
        }
        Ok(read)
    }
}
