//! The pages of a Parquet file, within a budget of memory.

use super::expansion;
use super::page_header::{self, Claim};
use super::row_size::{MOST_BYTES, too_long};
use crate::shown::Shown;
use bytes::Bytes;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{PageIterator, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The most memory of the pages that are opened for one batch of rows.
const BATCH_BYTES: u64 = 1 << 30;
/// The most rows of a batch.
const BATCH_ROWS: u64 = 1024;
/// The most rows of a batch with values that begin as the values before them: each may be as long as its page.
const PREFIXED_ROWS: u64 = 32;
/// The memory of a value beside its bytes: its place, and its levels of nesting.
const VALUE_BYTES: u64 = 20;

/// The pages of a file.
pub(super) struct Pages {
    file: Arc<File>,
    metadata: Arc<ParquetMetaData>,
    memory: Arc<PageMemory>,
    batch_rows: u64,
}

impl Pages {
    /// The pages of a file with this footer.
    ///
    /// # Errors
    /// A column is at a place, or has a size, below 0.
    pub(super) fn new(file: File, metadata: Arc<ParquetMetaData>) -> Result<Self> {
        for (number, group) in metadata.row_groups().iter().enumerate() {
            let is_below_0 = |chunk: &&ColumnChunkMetaData| {
                let places = [chunk.data_page_offset(), chunk.dictionary_page_offset().unwrap_or_default()];
                places.into_iter().chain([chunk.compressed_size(), chunk.num_values()]).any(|number| number < 0)
            };
            if let Some(chunk) = group.columns().iter().find(is_below_0) {
                let name = Shown(chunk.column_path().string()).to_string();
                let what = format!("the column `{name}` of row group {number} has a place or a size below 0");
                return Err(ParquetError::General(what));
            }
        }
        let batch_rows = batch_rows(&metadata);
        Ok(Self { file: Arc::new(file), metadata, memory: Arc::default(), batch_rows })
    }

    /// The rows to read at once.
    pub(super) fn batch_rows(&self) -> usize {
        self.batch_rows as usize
    }

    /// The rows that the file claims.
    pub(super) fn rows(&self) -> usize {
        self.num_rows()
    }

    /// The budget, which starts anew with each batch.
    pub(super) fn memory(&self) -> Arc<PageMemory> {
        self.memory.clone()
    }
}

/// As many rows as have the bytes of one long row, by what the file says of its rows.
fn batch_rows(metadata: &ParquetMetaData) -> u64 {
    let size = |number: i64| u64::try_from(number).unwrap_or_default();
    let average = |group: &RowGroupMetaData| size(group.total_byte_size()) / size(group.num_rows()).max(1);
    let average = metadata.row_groups().iter().map(average).max().unwrap_or_default();
    let columns = metadata.file_metadata().schema_descr().columns();
    let fixed = columns.iter().map(|column| value_bytes(column.physical_type(), column.type_length())).sum();
    let mut chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let is_prefixed = chunks.any(|chunk| chunk.encodings().any(|encoding| encoding == Encoding::DELTA_BYTE_ARRAY));
    let most = if is_prefixed { PREFIXED_ROWS } else { BATCH_ROWS };
    (MOST_BYTES as u64 / average.max(fixed).max(1)).clamp(1, most)
}

/// The memory of a value, without the bytes that its page has of it.
fn value_bytes(kind: Type, length: i32) -> u64 {
    match kind {
        Type::FIXED_LEN_BYTE_ARRAY => VALUE_BYTES.saturating_add(u64::try_from(length).unwrap_or_default()),
        _ => VALUE_BYTES,
    }
}

impl RowGroups for Pages {
    fn num_rows(&self) -> usize {
        self.row_groups().map(|group| usize::try_from(group.num_rows()).unwrap_or_default()).sum()
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let description = self.metadata.file_metadata().schema_descr().column(column);
        let pages = ColumnPages {
            file: self.file.clone(),
            memory: self.memory.clone(),
            value_bytes: value_bytes(description.physical_type(), description.type_length()),
            batch_rows: self.batch_rows,
            is_list: description.max_rep_level() > 0,
            compression: Compression::UNCOMPRESSED,
            claims: Arc::default(),
        };
        Ok(Box::new(Chunks { pages, metadata: self.metadata.clone(), column, group: 0 }))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(self.metadata.row_groups().iter())
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The chunks of a column: one a row group.
struct Chunks {
    pages: ColumnPages,
    metadata: Arc<ParquetMetaData>,
    column: usize,
    group: usize,
}

impl Iterator for Chunks {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let group = self.metadata.row_groups().get(self.group)?;
        self.group += 1;
        let rows = usize::try_from(group.num_rows()).unwrap_or_default();
        let chunk = group.column(self.column);
        let pages = ColumnPages { compression: chunk.compression(), claims: Arc::default(), ..self.pages.clone() };
        let pages = SerializedPageReader::new(Arc::new(pages), chunk, rows, None);
        Some(pages.map(|pages| Box::new(pages) as _))
    }
}

impl PageIterator for Chunks {}

/// What is left of the memory for pages.
pub(super) struct PageMemory(AtomicU64);

impl Default for PageMemory {
    fn default() -> Self {
        Self(AtomicU64::new(BATCH_BYTES))
    }
}

impl PageMemory {
    /// Starts a batch.
    pub(super) fn start(&self) {
        self.0.store(BATCH_BYTES, Ordering::Relaxed);
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| {
            too_large(format!(
                "its pages need more than {BATCH_BYTES} bytes at once\nhint: write the file with fewer rows in a row group, and lists of texts without the encoding DELTA_BYTE_ARRAY"
            ))
        })
    }
}

fn too_large(what: String) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, what)
}

/// The bytes of a column. Reading past the end of the file is an error: to skip an unknown field of a page's header,
/// `parquet` reads as many items as the field claims, and would not stop there.
#[derive(Clone)]
struct ColumnPages {
    file: Arc<File>,
    memory: Arc<PageMemory>,
    /// The memory of a value, without the bytes that its page has of it.
    value_bytes: u64,
    batch_rows: u64,
    /// Whether a row may have several values.
    is_list: bool,
    compression: Compression,
    /// What the pages claim whose content is not read yet, by where that is.
    claims: Arc<Mutex<HashMap<u64, Claim>>>,
}

impl ColumnPages {
    /// Takes the memory of a page.
    fn take(&self, claim: &Claim) -> io::Result<()> {
        if claim.bytes / claim.values.max(1) > MOST_BYTES as u64 {
            return Err(too_large(too_long(MOST_BYTES)));
        }
        let decoded = if self.is_list { claim.values } else { claim.values.min(self.batch_rows) };
        let prefixed = if claim.is_prefixed { claim.bytes.saturating_mul(decoded) } else { 0 };
        let values = decoded.saturating_mul(self.value_bytes);
        self.memory.take(claim.bytes.saturating_add(values).saturating_add(prefixed))
    }
}

impl Length for ColumnPages {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for ColumnPages {
    type T = PageHeader;

    fn get_read(&self, start: u64) -> Result<PageHeader> {
        Ok(PageHeader { file: self.file.get_read(start)?, start, pages: Some(self.clone()), is_over: false })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let content = self.file.get_bytes(start, length)?;
        let claim = self.claims.lock().unwrap_or_else(PoisonError::into_inner).remove(&start);
        expansion::check(self.compression, &content, &claim.unwrap_or_default())?;
        Ok(content)
    }
}

/// The header of a page, which is read only if there is memory for the page. Reports the end of the file at the first
/// read past it, and an error at each later one.
struct PageHeader {
    file: BufReader<File>,
    start: u64,
    /// Until the header has been checked.
    pages: Option<ColumnPages>,
    is_over: bool,
}

impl PageHeader {
    fn check(&mut self, pages: &ColumnPages) -> io::Result<()> {
        let claim = page_header::claim(&mut self.file).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => ends_early(),
            _ => error,
        })?;
        pages.take(&claim)?;
        let content = self.file.stream_position()?;
        pages.claims.lock().unwrap_or_else(PoisonError::into_inner).insert(content, claim);
        self.file.seek(SeekFrom::Start(self.start)).map(drop)
    }
}

impl Read for PageHeader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(pages) = self.pages.take() {
            self.check(&pages)?;
        }
        let read = self.file.read(into)?;
        if read == 0 && !into.is_empty() && std::mem::replace(&mut self.is_over, true) {
            return Err(ends_early());
        }
        Ok(read)
    }
}

fn ends_early() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the file ends within a page")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_takes_the_memory_of_its_content_and_of_its_values() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let memory = Arc::new(PageMemory::default());
        let pages = |is_list| ColumnPages {
            file: file.clone(),
            memory: memory.clone(),
            value_bytes: VALUE_BYTES,
            batch_rows: 10,
            is_list,
            compression: Compression::UNCOMPRESSED,
            claims: Arc::default(),
        };
        let taken = |is_list: bool, bytes: u64, values: u64, is_prefixed: bool| {
            memory.start();
            pages(is_list)
                .take(&Claim { bytes, values, is_prefixed, ..Claim::default() })
                .map_err(|error| error.to_string())?;
            Ok::<_, String>(BATCH_BYTES - memory.0.load(Ordering::Relaxed))
        };
        // A batch has ten rows, and a list any number of values.
        assert_eq!(taken(false, 1000, 7, false), Ok(1000 + 7 * 20));
        assert_eq!(taken(false, 1000, 1 << 31, false), Ok(1000 + 10 * 20));
        assert_eq!(taken(true, 1000, 5000, false), Ok(1000 + 5000 * 20));
        assert_eq!(taken(false, 1000, 7, true), Ok(1000 + 7 * 20 + 7 * 1000));
        let too_much = "its pages need more than 1073741824 bytes at once\nhint: write the file with fewer rows in a row group, and lists of texts without the encoding DELTA_BYTE_ARRAY";
        assert_eq!(taken(true, 1000, 1 << 30, false), Err(too_much.into()));
        assert_eq!(taken(false, 64 << 20, 1, false), Ok((64 << 20) + 20));
        assert_eq!(taken(false, (64 << 20) + 1, 1, false), Err(too_long(MOST_BYTES)));
        // All pages of a batch are in memory together.
        memory.start();
        let page = Claim { bytes: 300 << 20, values: 100, ..Claim::default() };
        assert!((0..3).all(|_| pages(false).take(&page).is_ok()) && pages(false).take(&page).is_err());
    }
}
