//! Nulls that Parquet fills in. Every struct of a column has the fields of all rows, so that a call of one tool gets the
//! arguments of all others, as nulls. A chat template would show them. So structs whose fields are names that a row
//! chose itself are read without their nulls: the arguments of tool calls, wherever they are, and the variables of a
//! chat template.
//!
//! In such a struct, a null that a program wrote cannot be told from one that was filled in. It can be in a map, a list
//! or JSON text: there it stays.

use arrow_array::cast::AsArray;
use arrow_array::{Array, StructArray};
use arrow_json::writer::{NullableEncoder, make_encoder};
use arrow_json::{Encoder, EncoderFactory, EncoderOptions};
use arrow_schema::{ArrowError, DataType, FieldRef};
use std::sync::Arc;

/// The options of values with and without nulls.
pub(super) struct Nulls {
    kept: EncoderOptions,
    left_out: EncoderOptions,
}

impl Nulls {
    /// `forms` chooses the form of each value.
    pub(super) fn new(forms: &Arc<dyn EncoderFactory>) -> Self {
        let options = |kept| EncoderOptions::default().with_explicit_nulls(kept).with_encoder_factory(forms.clone());
        Self { kept: options(true), left_out: options(false) }
    }

    /// The options of values with nulls.
    pub(super) fn kept(&self) -> &EncoderOptions {
        &self.kept
    }
}

/// The encoder of an array that has such structs, if it has.
pub(super) fn encoder<'a>(
    field: &'a FieldRef,
    array: &'a dyn Array,
    options: &'a EncoderOptions,
    nulls: &'a Nulls,
) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
    match (array.data_type(), options.explicit_nulls()) {
        (DataType::Struct(_), true) if field.name() == "chat_template_kwargs" => {
            make_encoder(field, array, &nulls.left_out).map(Some)
        }
        (DataType::Struct(_), true) if field.name() == "function" => Call::encoder(array.as_struct(), options, nulls),
        // No key of a map is filled in.
        (DataType::Map(..), false) => make_encoder(field, array, &nulls.kept).map(Some),
        _ => Ok(None),
    }
}

/// The function of a tool call: its name, its arguments, and what else a row has there.
struct Call<'a>(Vec<(String, NullableEncoder<'a>)>);

impl<'a> Call<'a> {
    /// The encoder of a call; `None` if the struct is not a call.
    fn encoder(
        array: &'a StructArray,
        options: &'a EncoderOptions,
        nulls: &'a Nulls,
    ) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
        let of_struct = |name: &str| array.column_by_name(name).is_some_and(|column| column.data_type().is_nested());
        if array.column_by_name("name").is_none() || !of_struct("arguments") {
            return Ok(None);
        }
        let encoders = array.fields().iter().zip(array.columns()).map(|(field, column)| {
            let options = if field.name() == "arguments" { &nulls.left_out } else { options };
            Ok((field.name().clone(), make_encoder(field, column, options)?))
        });
        let call = Self(encoders.collect::<Result<_, ArrowError>>()?);
        Ok(Some(NullableEncoder::new(Box::new(call), array.nulls().cloned())))
    }
}

impl Encoder for Call<'_> {
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        let mut separator = b'{';
        for (name, encoder) in &mut self.0 {
            out.push(separator);
            // Cannot fail: a name has a JSON text, and a vector takes every byte.
            let _ = serde_json::to_writer(&mut *out, name);
            out.push(b':');
            match encoder.is_null(index) {
                true => out.extend_from_slice(b"null"),
                false => encoder.encode(index, out),
            }
            separator = b',';
        }
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use crate::json::Json;
    use serde_json::{Value, json};

    /// The rows, written to a Parquet file and read again. The file has one schema for all of them.
    fn through_parquet(rows: &[Value]) -> Vec<Value> {
        let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let (schema, _) = arrow_json::reader::infer_json_schema(text.as_bytes(), None).unwrap();
        let schema = std::sync::Arc::new(schema);
        let mut batches = arrow_json::ReaderBuilder::new(schema.clone()).build(text.as_bytes()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.parquet");
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(file, schema, None).unwrap();
        batches.try_for_each(|batch| writer.write(&batch.unwrap())).unwrap();
        writer.close().unwrap();
        let rows = crate::RowReader::open(&path).unwrap();
        rows.map(|row| Json::from(row.unwrap().columns).parse().unwrap()).collect()
    }

    fn call(name: &str, arguments: Value) -> Value {
        json!([{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": name, "arguments": arguments}}]}])
    }

    fn arguments<'r>(row: &'r Value, column: &str) -> &'r Value {
        &row[column][0]["tool_calls"][0]["function"]["arguments"]
    }

    #[test]
    fn arguments_of_calls_are_those_that_they_had() {
        let place = json!({"at": {"lat": 1.5, "names": [null, "a"]}, "near": [{"km": 2}, {"mile": 1}]});
        let rows = through_parquet(&[
            json!({"prompt": call("weather", json!({"city": "Oslo"})), "mine": {"a": 1}}),
            json!({"prompt": call("time", json!({"zone": "UTC", "on": false})), "mine": {"b": call("f", json!({"x": 1}))}}),
            json!({"prompt": call("place", place.clone()), "mine": {"b": call("f", json!({"y": 1}))}}),
            json!({"prompt": call("now", json!({}))}),
        ]);
        let expected = [json!({"city": "Oslo"}), json!({"zone": "UTC", "on": false}), place, json!({})];
        assert!(rows.iter().map(|row| arguments(row, "prompt")).eq(&expected), "{rows:?}");
        // Whatever the column is called; and all other columns are as they are in the file.
        assert_eq!(rows[0]["mine"], json!({"a": 1, "b": null}));
        assert_eq!(arguments(&rows[2]["mine"], "b"), &json!({"y": 1}));
        assert_eq!(rows[3]["mine"], Value::Null);
    }

    #[test]
    fn variables_of_the_template_are_those_of_the_row() {
        let rows = through_parquet(&[
            json!({"chat_template_kwargs": {"enable_thinking": false}, "function": {"arguments": {"a": 1}}}),
            json!({"chat_template_kwargs": {"effort": "low"}, "function": {"arguments": {"b": 1}}}),
            json!({"chat_template_kwargs": null, "function": null}),
        ]);
        assert_eq!(rows[0]["chat_template_kwargs"], json!({"enable_thinking": false}));
        assert_eq!(rows[1]["chat_template_kwargs"], json!({"effort": "low"}));
        assert_eq!(rows[2]["chat_template_kwargs"], Value::Null);
        // A function without a name is not a call.
        assert_eq!(rows[0]["function"], json!({"arguments": {"a": 1, "b": null}}));
    }

    #[test]
    fn a_null_in_a_map_stays() {
        use arrow_array::builder::{MapBuilder, StringBuilder};
        use arrow_array::{ArrayRef, RecordBatch, StructArray};
        let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        map.keys().append_value("a");
        map.values().append_null();
        map.append(true).unwrap();
        let names: ArrayRef = std::sync::Arc::new(arrow_array::StringArray::from(vec!["f"]));
        let arguments: ArrayRef = std::sync::Arc::new(map.finish());
        let function = StructArray::try_from(vec![("name", names), ("arguments", arguments)]).unwrap();
        let batch = RecordBatch::try_from_iter([("function", std::sync::Arc::new(function) as ArrayRef)]).unwrap();
        let rows = super::super::parquet_rows::read(&batch, 0, &mut Default::default()).unwrap();
        assert_eq!(
            Json::from(rows[0].clone().unwrap()).as_text(),
            r#"{"function":{"name":"f","arguments":{"a":null}}}"#
        );
    }
}
