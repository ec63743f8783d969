//! The rows of a Parquet file, of which only some are in memory.

use super::batch_rows::BatchRows;
use super::footer;
use super::logical_types;
use super::parquet_file::{PageMemory, Pages};
use super::parquet_rows::{AnyError, ReadRow};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use std::fs::File;
use std::sync::Arc;

/// Reads one row after another.
pub(super) struct ParquetReader {
    batches: ParquetRecordBatchReader,
    memory: Arc<PageMemory>,
    /// The rows to come, by the footer.
    left: usize,
    rows: BatchRows,
    ready: std::vec::IntoIter<ReadRow>,
}

impl ParquetReader {
    /// Opens a file.
    ///
    /// # Errors
    /// Its footer cannot be read.
    pub(super) fn open(file: File) -> parquet::errors::Result<Self> {
        let options = match footer::schema(&file)? {
            Some(schema) => ArrowReaderOptions::new().with_parquet_schema(schema),
            None => ArrowReaderOptions::new(),
        };
        let read = ArrowReaderMetadata::load(&file, options)?;
        let schema = logical_types::with_extensions(read.schema(), read.parquet_schema());
        let fields = schema.fields();
        let levels = parquet_to_arrow_field_levels(read.parquet_schema(), ProjectionMask::all(), Some(fields))?;
        let pages = Pages::new(file, read.metadata().clone())?;
        let batches = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &pages, pages.batch_rows(), None)?;
        let (memory, left) = (pages.memory(), pages.rows());
        Ok(Self { batches, memory, left, rows: BatchRows::default(), ready: Vec::new().into_iter() })
    }

    /// The next row. An error in it is about a row that is too long.
    ///
    /// # Errors
    /// No further row can be read.
    pub(super) fn next(&mut self) -> Result<Option<ReadRow>, AnyError> {
        loop {
            if let Some(row) = self.ready.next() {
                return Ok(Some(row));
            }
            self.ready = self.rows.next_rows()?.into_iter();
            if self.ready.len() == 0 {
                self.memory.start();
                let Some(batch) = self.batches.next() else { return Ok(None) };
                let batch = batch?;
                self.left =
                    self.left.checked_sub(batch.num_rows()).ok_or("its pages have more rows than its footer")?;
                self.rows.start(batch);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::RowReader;
    use arrow_array::builder::{ListBuilder, StringBuilder};
    use arrow_array::{ArrayRef, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::properties::WriterProperties;
    use std::sync::Arc;

    /// What is read of a file with one column: the text of each row, or the error without the file.
    fn read(column: ArrayRef) -> (u64, Vec<Result<crate::Columns, String>>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.parquet");
        let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default())).build();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let rows = RowReader::open(&path).unwrap().map(|row| row.map(|row| row.columns));
        let shown = |error: crate::RowError| error.to_string().split_once("d.parquet, ").unwrap().1.to_owned();
        let rows = rows.map(|row| row.map_err(shown)).collect();
        (path.metadata().unwrap().len(), rows)
    }

    #[test]
    fn rows_with_the_same_long_text_share_it() {
        let texts = ["a", "b"].map(|text| text.repeat(10_000));
        let column: StringArray = (0..3000).map(|row| Some(texts[row % 2].as_str())).collect();
        let (_, rows) = read(Arc::new(column));
        let texts: Vec<&str> = rows.iter().map(|row| row.as_ref().unwrap().get("a").unwrap().as_text()).collect();
        assert_eq!(texts.len(), 3000);
        assert!(texts[0].starts_with("\"aaa") && texts[1].starts_with("\"bbb"));
        assert!((2..3000).all(|row| std::ptr::eq(texts[row], texts[row % 2])));
    }

    #[test]
    fn a_row_that_is_too_long_is_named_and_the_next_one_is_read() {
        let text = "x".repeat(512 << 10);
        let mut lists = ListBuilder::new(StringBuilder::new());
        for times in [1, 130, 2] {
            (0..times).for_each(|_| lists.values().append_value(&text));
            lists.append(true);
        }
        let (bytes, rows) = read(Arc::new(lists.finish()));
        assert!(bytes < 10_000, "{bytes}");
        let lengths: Vec<_> = rows.into_iter().map(|row| row.map(|row| row.bytes())).collect();
        let long = "row 1: the row has more than 67108864 bytes\nhint: remove the row, or shorten its values";
        // A name, brackets, quotes, and a comma.
        assert_eq!(lengths, [Ok((512 << 10) + 5), Err(long.into()), Ok((1 << 20) + 8)]);
    }

    #[test]
    fn a_page_with_a_value_that_is_too_long_is_not_read() {
        let (bytes, rows) = read(Arc::new(StringArray::from(vec!["x".repeat(65 << 20)])));
        assert!(bytes < 100_000, "{bytes}");
        let [Err(error)] = &rows[..] else { panic!("{} rows", rows.len()) };
        assert!(
            error.starts_with("row 0 and after: ") && error.contains("the row has more than 67108864 bytes"),
            "{error}"
        );
    }
}
