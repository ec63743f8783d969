//! The JSON of types that `arrow-json` writes otherwise, or not at all. No value makes a row unreadable: one that has no
//! such form, such as a date of the year 300,000, is null. A list or a map breaks off where its row is too long.

use super::row_size::MOST_BYTES;
use crate::json::Json;
use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::{as_date, as_datetime, as_duration, as_time};
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayAccessor, ArrowPrimitiveType, FixedSizeBinaryArray, ListLikeArray, MapArray, PrimitiveArray,
};
use arrow_json::writer::{NullableEncoder, make_encoder};
use arrow_json::{Encoder, EncoderOptions};
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, TimeUnit};
use std::fmt::Display;
use std::io::Write;

/// The extension type of texts that are JSON.
pub(super) const JSON: &str = "arrow.json";
/// The extension type of UUIDs.
pub(super) const UUID: &str = "arrow.uuid";

/// The encoder of an array whose type is written otherwise. Other types have the form of `arrow-json`.
pub(super) fn encoder<'a>(
    field: &'a FieldRef,
    array: &'a dyn Array,
    options: &'a EncoderOptions,
) -> Result<Option<NullableEncoder<'a>>, ArrowError> {
    let extension = field.extension_type_name();
    let encoder: Box<dyn Encoder + 'a> = match array.data_type() {
        DataType::Float16 => Box::new(Float(array.as_primitive::<Float16Type>(), |half| shortest(half.to_f32()))),
        DataType::Float32 => Box::new(Float(array.as_primitive::<Float32Type>(), shortest)),
        DataType::Float64 => Box::new(Float(array.as_primitive::<Float64Type>(), |double| double)),
        DataType::Timestamp(unit, zone) => {
            // The instant in UTC, in whichever zone it is shown.
            let end = if zone.is_some() { "Z" } else { "" };
            match unit {
                TimeUnit::Second => timestamp::<TimestampSecondType>(array, end),
                TimeUnit::Millisecond => timestamp::<TimestampMillisecondType>(array, end),
                TimeUnit::Microsecond => timestamp::<TimestampMicrosecondType>(array, end),
                TimeUnit::Nanosecond => timestamp::<TimestampNanosecondType>(array, end),
            }
        }
        DataType::Date32 => text(array.as_primitive::<Date32Type>(), |days| {
            as_date::<Date32Type>(days.into()).map(|date| date.to_string())
        }),
        DataType::Date64 => text(array.as_primitive::<Date64Type>(), |milliseconds| {
            as_date::<Date64Type>(milliseconds).map(|date| date.to_string())
        }),
        DataType::Time32(TimeUnit::Second) => time::<Time32SecondType>(array),
        DataType::Time32(_) => time::<Time32MillisecondType>(array),
        DataType::Time64(TimeUnit::Microsecond) => time::<Time64MicrosecondType>(array),
        DataType::Time64(_) => time::<Time64NanosecondType>(array),
        DataType::Duration(unit) => match unit {
            TimeUnit::Second => duration::<DurationSecondType>(array),
            TimeUnit::Millisecond => duration::<DurationMillisecondType>(array),
            TimeUnit::Microsecond => duration::<DurationMicrosecondType>(array),
            TimeUnit::Nanosecond => duration::<DurationNanosecondType>(array),
        },
        DataType::Utf8 if extension == Some(JSON) => Box::new(Document(array.as_string::<i32>())),
        DataType::LargeUtf8 if extension == Some(JSON) => Box::new(Document(array.as_string::<i64>())),
        DataType::Utf8View if extension == Some(JSON) => Box::new(Document(array.as_string_view())),
        DataType::Utf8 => Box::new(Str(array.as_string::<i32>())),
        DataType::LargeUtf8 => Box::new(Str(array.as_string::<i64>())),
        DataType::Utf8View => Box::new(Str(array.as_string_view())),
        DataType::FixedSizeBinary(16) if extension == Some(UUID) => Box::new(Uuid(array.as_fixed_size_binary())),
        DataType::List(item) => list(item, array.as_list::<i32>(), options)?,
        DataType::LargeList(item) => list(item, array.as_list::<i64>(), options)?,
        DataType::ListView(item) => list(item, array.as_list_view::<i32>(), options)?,
        DataType::LargeListView(item) => list(item, array.as_list_view::<i64>(), options)?,
        DataType::FixedSizeList(item, _) => list(item, array.as_fixed_size_list(), options)?,
        DataType::Map(..) => Box::new(Map::of(array.as_map(), options)?),
        _ => return Ok(None),
    };
    Ok(Some(NullableEncoder::new(encoder, array.nulls().cloned())))
}

/// Writes floats as `serde_json` does, and not as Arrow does (`1.0e10`), so that they match a JSON Lines file that a
/// program wrote.
struct Float<'a, T: ArrowPrimitiveType>(&'a PrimitiveArray<T>, fn(T::Native) -> f64);

impl<T: ArrowPrimitiveType> Encoder for Float<'_, T> {
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        // Cannot fail: a vector takes every byte, and a value that is not finite becomes null.
        let _ = serde_json::to_writer(out, &(self.1)(self.0.value(index)));
    }
}

/// The number with the shortest text that is nearest to `single`: 0.1 for the
/// single that is nearest to 0.1.
fn shortest(single: f32) -> f64 {
    // Rust reads every number that it writes.
    single.to_string().parse().unwrap_or(f64::NAN)
}

/// Values with a text that needs no escapes.
struct Text<'a, T: ArrowPrimitiveType, F>(&'a PrimitiveArray<T>, F);

impl<T: ArrowPrimitiveType, F: Fn(T::Native) -> Option<String>> Encoder for Text<'_, T, F> {
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        // Cannot fail: a vector takes every byte.
        let _ = match (self.1)(self.0.value(index)) {
            Some(text) => write!(out, "\"{text}\""),
            None => write!(out, "null"),
        };
    }
}

fn text<'a, T: ArrowPrimitiveType>(
    array: &'a PrimitiveArray<T>,
    form: impl Fn(T::Native) -> Option<String> + 'a,
) -> Box<dyn Encoder + 'a> {
    Box::new(Text(array, form))
}

fn timestamp<'a, T: ArrowTimestampType>(array: &'a dyn Array, end: &'static str) -> Box<dyn Encoder + 'a> {
    // The date's own text has a space in the place of the `T`.
    text(array.as_primitive::<T>(), move |value| as_datetime::<T>(value).map(|at| format!("{at:?}{end}")))
}

fn time<'a, T: ArrowTemporalType>(array: &'a dyn Array) -> Box<dyn Encoder + 'a>
where
    T::Native: Into<i64>,
{
    text(array.as_primitive::<T>(), |value| as_time::<T>(value.into()).map(shown))
}

fn duration<'a, T: ArrowTemporalType<Native = i64>>(array: &'a dyn Array) -> Box<dyn Encoder + 'a> {
    text(array.as_primitive::<T>(), |value| as_duration::<T>(value).map(shown))
}

fn shown(value: impl Display) -> String {
    value.to_string()
}

/// Texts. Arrow writes the same, and is compiled without optimisations.
struct Str<A>(A);

impl<'a, A: ArrayAccessor<Item = &'a str>> Encoder for Str<A> {
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        // Cannot fail: a vector takes every byte.
        drop(serde_json::to_writer(out, self.0.value(index)));
    }
}

/// Texts that are JSON: the value, or the text where it is not JSON.
struct Document<A>(A);

impl<'a, A: ArrayAccessor<Item = &'a str>> Encoder for Document<A> {
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        let text = self.0.value(index);
        match serde_json::from_str::<Json>(text) {
            Ok(_) => out.extend_from_slice(text.as_bytes()),
            // Cannot fail: a vector takes every byte.
            Err(_) => drop(serde_json::to_writer(out, text)),
        }
    }
}

struct Uuid<'a>(&'a FixedSizeBinaryArray);

impl Encoder for Uuid<'_> {
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        out.push(b'"');
        for (at, byte) in self.0.value(index).iter().enumerate() {
            let hyphen = if [4, 6, 8, 10].contains(&at) { "-" } else { "" };
            // Cannot fail: a vector takes every byte.
            let _ = write!(out, "{hyphen}{byte:02x}");
        }
        out.push(b'"');
    }
}

/// Lists, whose items have the extension type of their own field.
struct List<'a, A> {
    array: &'a A,
    items: NullableEncoder<'a>,
}

fn list<'a, A: ListLikeArray>(
    item: &'a FieldRef,
    array: &'a A,
    options: &'a EncoderOptions,
) -> Result<Box<dyn Encoder + 'a>, ArrowError> {
    Ok(Box::new(List { array, items: make_encoder(item, array.values(), options)? }))
}

impl<A: ListLikeArray> Encoder for List<'_, A> {
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        out.push(b'[');
        for (number, item) in self.array.element_range(index).enumerate() {
            if number > 0 {
                out.push(b',');
            }
            write_value(&mut self.items, item, out);
            if out.len() > MOST_BYTES {
                break;
            }
        }
        out.push(b']');
    }
}

/// Maps as objects. A key that is not a text is the text of its JSON.
struct Map<'a> {
    array: &'a MapArray,
    keys: NullableEncoder<'a>,
    values: NullableEncoder<'a>,
    /// The JSON of a key.
    key: Vec<u8>,
}

impl<'a> Map<'a> {
    fn of(array: &'a MapArray, options: &'a EncoderOptions) -> Result<Self, ArrowError> {
        let [key, value] = &array.entries().fields()[..] else {
            return Err(ArrowError::JsonError("the entries of a map are not a key and a value".into()));
        };
        let keys = make_encoder(key, array.keys(), options)?;
        let values = make_encoder(value, array.values(), options)?;
        Ok(Self { array, keys, values, key: Vec::new() })
    }
}

impl Encoder for Map<'_> {
    fn encode(&mut self, index: usize, out: &mut Vec<u8>) {
        let offsets = self.array.value_offsets();
        let mut separator = b'{';
        for entry in offsets[index] as usize..offsets[index + 1] as usize {
            out.push(separator);
            separator = b',';
            self.key.clear();
            write_value(&mut self.keys, entry, &mut self.key);
            match self.key.first() {
                Some(b'"') => out.extend_from_slice(&self.key),
                // Cannot fail: a vector takes every byte.
                _ => drop(serde_json::to_writer(&mut *out, &String::from_utf8_lossy(&self.key))),
            }
            out.push(b':');
            write_value(&mut self.values, entry, out);
            if out.len() > MOST_BYTES {
                break;
            }
        }
        if separator == b'{' {
            out.push(separator);
        }
        out.push(b'}');
    }
}

/// Writes a value or `null`.
pub(super) fn write_value(encoder: &mut NullableEncoder<'_>, index: usize, out: &mut Vec<u8>) {
    match encoder.is_null(index) {
        true => out.extend_from_slice(b"null"),
        false => encoder.encode(index, out),
    }
}

/// The field with an extension type, unless it has one.
pub(super) fn with_extension(field: &Field, name: &str) -> Field {
    if field.extension_type_name().is_some() {
        return field.clone();
    }
    field.clone().with_metadata(field.metadata().clone().with(EXTENSION_TYPE_NAME_KEY, name))
}

#[cfg(test)]
mod tests {
    use crate::RowReader;
    use std::path::Path;

    #[test]
    fn files_of_other_programs_have_the_rows_that_pyarrow_reads() {
        // Written by tests/parity/parquet_files.py.
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/parquet");
        for program in ["pyarrow", "pandas", "polars", "datasets", "duckdb"] {
            let rows = |kind: &str| -> Vec<_> {
                let rows = RowReader::open(&folder.join(format!("{program}.{kind}"))).unwrap();
                rows.map(|row| row.unwrap().columns).collect()
            };
            let (found, expected) = (rows("parquet"), rows("jsonl"));
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.names().collect::<Vec<_>>(), expected.names().collect::<Vec<_>>());
                for name in expected.names() {
                    assert_eq!(found.get(name), expected.get(name), "{program}: {name}");
                }
            }
        }
    }
}
