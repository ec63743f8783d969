//! The rows of record batches.

use super::caught::caught;
use super::parquet_rows::{self, AnyError, ReadRow};
use super::shared_values::SharedValues;
use crate::json::Columns;
use arrow_array::RecordBatch;

/// Reads the rows of one record batch after another, as those of a Parquet file.
#[derive(Default)]
pub struct BatchRows {
    /// The batch that is read, and its rows that were read.
    batch: Option<(RecordBatch, usize)>,
    shared: SharedValues,
}

impl BatchRows {
    /// Reads this batch from now on.
    pub fn start(&mut self, batch: RecordBatch) {
        self.batch = Some((batch, 0));
    }

    /// The columns of the next rows of the batch: as many as have 1 MiB together, and none at its end. A row that is too
    /// long is a message.
    ///
    /// # Errors
    /// The batch cannot be read: a column has a type that JSON cannot have.
    pub fn read(&mut self) -> Result<Vec<Result<Columns, String>>, String> {
        caught(|| self.next_rows())
    }

    pub(super) fn next_rows(&mut self) -> Result<Vec<ReadRow>, AnyError> {
        let Some((batch, read)) = self.batch.take().filter(|(batch, read)| *read < batch.num_rows()) else {
            return Ok(Vec::new());
        };
        let rows = parquet_rows::read(&batch, read, &mut self.shared)?;
        self.batch = Some((batch, read + rows.len()));
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, BinaryArray, StringArray};
    use std::sync::Arc;

    fn batch(column: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter([("a", column)]).unwrap()
    }

    #[test]
    fn rows_of_several_batches_come_in_pieces() {
        let mut rows = BatchRows::default();
        for (text, count) in [("x".repeat(1000), 5000), ("y".to_owned(), 3)] {
            rows.start(batch(Arc::new(StringArray::from(vec![text.as_str(); count]))));
            let pieces: Vec<_> =
                std::iter::repeat_with(|| rows.read().unwrap()).take_while(|piece| !piece.is_empty()).collect();
            assert_eq!(pieces.len() > 1, count > 3);
            let read: Vec<Columns> = pieces.into_iter().flatten().map(Result::unwrap).collect();
            assert_eq!(read.len(), count);
            assert!(read.iter().all(|row| row.get("a").unwrap().string().as_deref() == Some(&*text)));
        }
        assert!(rows.read().unwrap().is_empty());
    }

    #[test]
    fn an_empty_batch_has_no_rows() {
        let mut rows = BatchRows::default();
        assert!(rows.read().unwrap().is_empty());
        rows.start(batch(Arc::new(BinaryArray::from_vec(Vec::new()))));
        assert!(rows.read().unwrap().is_empty());
    }
}
