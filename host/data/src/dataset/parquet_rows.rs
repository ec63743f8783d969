//! The rows of a Parquet file as JSON.

use super::filled_nulls::{self, Nulls};
use super::shared_values::SharedValues;
use super::{parquet_values, row_size};
use crate::json::Columns;
use arrow_array::{Array, RecordBatch};
use arrow_json::writer::{NullableEncoder, make_encoder};
use arrow_json::{EncoderFactory, EncoderOptions};
use arrow_schema::{ArrowError, FieldRef};
use std::sync::{Arc, LazyLock};

/// Rows are read until they have this many bytes, so that long ones are not in memory together.
const CHUNK_BYTES: usize = 1 << 20;

pub(super) type AnyError = Box<dyn std::error::Error>;

/// The columns of a row, or the message that it is too long.
pub(super) type ReadRow = Result<Columns, String>;

/// Some rows of a batch, at least one, from the row `first` on. Nulls are kept but for those that [`filled_nulls`] leaves
/// out. Decimals have all their digits.
pub(super) fn read(batch: &RecordBatch, first: usize, shared: &mut SharedValues) -> Result<Vec<ReadRow>, AnyError> {
    let schema = batch.schema();
    let mut columns = Vec::new();
    for (field, array) in schema.fields().iter().zip(batch.columns()) {
        columns.push((serde_json::to_string(field.name())?, make_encoder(field, array, NULLS.kept())?));
    }
    let (mut rows, mut read, mut text) = (Vec::new(), 0, Vec::new());
    for row in first..batch.num_rows() {
        match write_row(&mut columns, row, &mut text) {
            true => rows.push(Ok(serde_json::from_slice::<Columns>(&text)?.map(|value| shared.share(value)))),
            false => rows.push(Err(row_size::too_long(row_size::MOST_BYTES))),
        }
        read += text.len();
        if read >= CHUNK_BYTES {
            break;
        }
    }
    Ok(rows)
}

/// Writes a row as JSON in the place of `text`; false if it is too long.
fn write_row(columns: &mut [(String, NullableEncoder<'_>)], row: usize, text: &mut Vec<u8>) -> bool {
    text.clear();
    text.push(b'{');
    for (index, (name, encoder)) in columns.iter_mut().enumerate() {
        text.extend_from_slice(if index == 0 { b"" } else { b"," });
        text.extend_from_slice(name.as_bytes());
        text.push(b':');
        parquet_values::write_value(encoder, row, text);
        if text.len() > row_size::MOST_BYTES {
            return false;
        }
    }
    text.push(b'}');
    true
}

static NULLS: LazyLock<Nulls> = LazyLock::new(|| Nulls::new(&(Arc::new(Forms) as Arc<dyn EncoderFactory>)));

/// Chooses the form of each value.
#[derive(Debug)]
struct Forms;

impl EncoderFactory for Forms {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        options: &'a EncoderOptions,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        match filled_nulls::encoder(field, array, options, &NULLS)? {
            Some(encoder) => Ok(Some(encoder)),
            None => parquet_values::encoder(field, array, options),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use arrow_array::{Array, ArrayRef, Decimal128Array, Float32Array, Float64Array, UInt64Array};
    use arrow_schema::{Field, Schema};

    fn rows(columns: Vec<ArrayRef>) -> Vec<String> {
        let fields = columns.iter().zip('a'..).map(|(column, name)| Field::new(name, column.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
        // Through a file, as a dataset is read.
        let mut file = Vec::new();
        let mut writer = parquet::arrow::ArrowWriter::try_new(&mut file, schema, None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.parquet");
        std::fs::write(&path, file).unwrap();
        let rows = crate::RowReader::open(&path).unwrap();
        rows.map(|row| Json::from(row.unwrap().columns).as_text().to_owned()).collect()
    }

    #[test]
    fn decimals_have_all_their_digits() {
        let money = Decimal128Array::from(vec![Some(450), Some(-5), None]).with_precision_and_scale(10, 2).unwrap();
        let long = Decimal128Array::from(vec![Some(123_456_789_012_345_678_901_234_567_890), Some(0), None])
            .with_precision_and_scale(38, 0)
            .unwrap();
        let whole = UInt64Array::from(vec![Some(u64::MAX), Some(0), None]);
        let rows = rows(vec![Arc::new(money), Arc::new(long), Arc::new(whole)]);
        assert_eq!(
            rows,
            [
                r#"{"a":4.50,"b":123456789012345678901234567890,"c":18446744073709551615}"#,
                r#"{"a":-0.05,"b":0,"c":0}"#,
                r#"{"a":null,"b":null,"c":null}"#,
            ]
        );
    }

    #[test]
    fn binary_numbers_are_as_serde_json_writes_them() {
        let doubles = Float64Array::from(vec![0.1, 1.0, 1e10, 1e300, 5e-324, f64::NAN, 123_456_789_012_345_680.0]);
        let texts = ["0.1", "1.0", "10000000000.0", "1e+300", "5e-324", "null", "1.2345678901234568e+17"];
        let expected = texts.map(|text| format!("{{\"a\":{text}}}"));
        assert_eq!(rows(vec![Arc::new(doubles)]), expected);
        let singles = Float32Array::from(vec![0.1, 1.0, 1e10, 3.4e38, f32::INFINITY]);
        let expected = ["0.1", "1.0", "10000000000.0", "3.4e+38", "null"].map(|text| format!("{{\"a\":{text}}}"));
        assert_eq!(rows(vec![Arc::new(singles)]), expected);
    }
}
