//! The rows of a Parquet file as JSON.

use super::filled_nulls::{self, Nulls};
use super::parquet_values;
use crate::json::Columns;
use arrow_array::{Array, RecordBatch};
use arrow_json::writer::{LineDelimited, NullableEncoder};
use arrow_json::{EncoderFactory, EncoderOptions, WriterBuilder};
use arrow_schema::{ArrowError, FieldRef};
use std::sync::{Arc, LazyLock};

/// The rows of a batch, with nulls kept but for those that [`filled_nulls`] leaves out. Decimals have all their digits.
pub(super) fn read(batch: &RecordBatch) -> Result<Vec<Columns>, String> {
    let mut text = Vec::new();
    let mut writer = WriterBuilder::new()
        .with_explicit_nulls(true)
        .with_encoder_factory(Arc::new(Forms))
        .build::<_, LineDelimited>(&mut text);
    writer.write(batch).and_then(|()| writer.finish()).map_err(|error| error.to_string())?;
    drop(writer);
    serde_json::Deserializer::from_slice(&text)
        .into_iter()
        .collect::<Result<_, _>>()
        .map_err(|error: serde_json::Error| error.to_string())
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
