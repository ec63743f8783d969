//! Parquet, compressed with zstd, in groups of rows that fit into memory.

use super::table::{Cell, Column, Kind, Rows, finish};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use gavel_data::files::WholeFile;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::io::{self, BufWriter};
use std::sync::Arc;

/// The most rows that are handed on at once.
const BATCH_ROWS: usize = 4096;
/// The most bytes of texts that are handed on at once. A row may have more.
const BATCH_BYTES: usize = 32 << 20;
/// The most bytes of a group of rows.
const GROUP_BYTES: usize = 128 << 20;

pub(super) struct ParquetTable {
    writer: ArrowWriter<BufWriter<WholeFile>>,
    schema: Arc<Schema>,
    kinds: Vec<Kind>,
    /// The rows that are not handed on yet.
    rows: Vec<Vec<Cell>>,
    bytes: usize,
}

impl ParquetTable {
    pub(super) fn create(out: BufWriter<WholeFile>, columns: &[Column]) -> io::Result<Self> {
        let field = |column: &Column| {
            let kind = match column.kind {
                Kind::Count => DataType::UInt64,
                Kind::Number => DataType::Float64,
                Kind::Text => DataType::Utf8,
            };
            Field::new(&column.name, kind, true)
        };
        let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let writer = ArrowWriter::try_new(out, schema.clone(), Some(properties)).map_err(io::Error::other)?;
        let kinds = columns.iter().map(|column| column.kind).collect();
        Ok(Self { writer, schema, kinds, rows: Vec::new(), bytes: 0 })
    }

    /// Hands on the rows.
    fn flush(&mut self) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let columns = self.kinds.iter().enumerate().map(|(number, kind)| column(*kind, number, &mut self.rows));
        let batch = RecordBatch::try_new(self.schema.clone(), columns.collect()).map_err(io::Error::other)?;
        self.writer.write(&batch).map_err(io::Error::other)?;
        if self.writer.in_progress_size() > GROUP_BYTES {
            self.writer.flush().map_err(io::Error::other)?;
        }
        self.rows.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// Takes a column out of rows.
fn column(kind: Kind, number: usize, rows: &mut [Vec<Cell>]) -> ArrayRef {
    let cells = rows
        .iter_mut()
        .map(|row| row.get_mut(number).map_or(Cell::Absent, |cell| std::mem::replace(cell, Cell::Absent)));
    match kind {
        Kind::Count => Arc::new(UInt64Array::from_iter(cells.map(|cell| match cell {
            Cell::Count(count) => Some(count),
            _ => None,
        }))),
        Kind::Number => Arc::new(Float64Array::from_iter(cells.map(|cell| match cell {
            Cell::Number(number) => Some(number),
            _ => None,
        }))),
        Kind::Text => Arc::new(StringArray::from_iter(cells.map(|cell| match cell {
            Cell::Text(text) => Some(text),
            _ => None,
        }))),
    }
}

impl Rows for ParquetTable {
    fn add(&mut self, cells: Vec<Cell>) -> io::Result<()> {
        let length = |cell: &Cell| if let Cell::Text(text) = cell { text.len() } else { 0 };
        self.bytes += cells.iter().map(length).sum::<usize>();
        self.rows.push(cells);
        match self.rows.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush()?;
        finish(self.writer.into_inner().map_err(io::Error::other)?)
    }
}
