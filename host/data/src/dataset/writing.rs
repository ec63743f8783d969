//! Writes rows to a file, JSON Lines or Parquet.

use super::shared_values::SharedValues;
use super::{RowError, parquet_rows};
use crate::disk;
use crate::files::WholeFile;
use crate::json::{Columns, Json};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_json::ReaderBuilder;
use arrow_json::reader::infer_json_schema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use indexmap::IndexSet;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use std::io::{self, BufWriter, Cursor, IntoInnerError, Write};
use std::path::Path;
use std::sync::Arc;

/// Columns that must keep their type, so that the file can be read again.
const READ_AGAIN: [&str; 3] = ["prompt", "response", "messages"];

/// Refuses a path that rows cannot be written to: by its name, or because its folder is not there. What is there and is no
/// file, such as a pipe, may have any name.
///
/// # Errors
/// What is wrong with it.
pub fn check_writable(path: &Path) -> Result<(), RowError> {
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(());
    }
    if path.extension().is_none_or(|kind| kind != "jsonl" && kind != "parquet") {
        return Err(RowError::UnknownKind(path.to_owned()));
    }
    match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        Some(folder) => {
            Err(RowError::Write { path: path.to_owned(), what: format!("{} is not a folder", folder.display()) })
        }
        None => Ok(()),
    }
}

/// Writes rows to a file whose name ends in `.jsonl` or `.parquet`; the file has its name once it is whole. What is no
/// file, such as a pipe, is written to and left in place, as JSON Lines unless its name ends in `.parquet`. A column of
/// Parquet has one type. Where the values differ in type, have a type that Parquet lacks, or have a number whose text
/// would change, such as `4.50`, their JSON is written as text.
///
/// # Errors
/// The file cannot be written, or has a prompt or a response of several types in Parquet.
pub fn write_rows(path: &Path, rows: &[Columns]) -> Result<(), RowError> {
    check_writable(path)?;
    let failed = |what: String| RowError::Write { path: path.to_owned(), what };
    let unwritten = |error: io::Error| failed(format!("{error}{}", disk::hint(&error)));
    let file = WholeFile::create_or_open(path).map_err(unwritten)?;
    let mut out = BufWriter::new(file);
    if path.extension().is_some_and(|kind| kind == "parquet") {
        write_parquet(&mut out, rows).map_err(failed)?;
    } else {
        write_lines(&mut out, rows).map_err(unwritten)?;
    }
    let file = out.into_inner().map_err(IntoInnerError::into_error).map_err(unwritten)?;
    file.finish().map_err(unwritten)
}

fn write_lines(out: &mut impl Write, rows: &[Columns]) -> io::Result<()> {
    for row in rows {
        serde_json::to_writer(&mut *out, row)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn write_parquet(out: &mut (impl Write + Send), rows: &[Columns]) -> Result<(), String> {
    let names: IndexSet<&str> = rows.iter().flat_map(Columns::names).collect();
    let mut columns = Vec::new();
    for name in names {
        let values: Vec<Option<&Json>> = rows.iter().map(|row| row.present(name)).collect();
        let array = match typed(&values) {
            Ok(array) => array,
            Err(error) if READ_AGAIN.contains(&name) => {
                return Err(format!("Parquet cannot hold the column `{name}`: {error}"));
            }
            Err(_) => Arc::new(values.iter().map(|value| value.map(Json::plain_text)).collect::<StringArray>()),
        };
        columns.push((Field::new(name, array.data_type().clone(), true), array));
    }
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), arrays).map_err(|error| error.to_string())?;
    let mut writer = ArrowWriter::try_new(out, schema, None).map_err(parquet_error)?;
    writer.write(&batch).and_then(|()| writer.close()).map_err(parquet_error)?;
    Ok(())
}

fn parquet_error(error: ParquetError) -> String {
    let ParquetError::External(cause) = &error else { return error.to_string() };
    match cause.downcast_ref::<io::Error>() {
        Some(cause) => format!("{cause}{}", disk::hint(cause)),
        None => error.to_string(),
    }
}

/// The values as a column of the one type that they have.
fn typed(values: &[Option<&Json>]) -> Result<ArrayRef, ArrowError> {
    let text = |value: &Option<&Json>| format!("{{\"v\":{}}}\n", value.map_or("null", Json::as_text));
    let lines: String = values.iter().map(text).collect();
    let (schema, _) = infer_json_schema(Cursor::new(&lines), None)?;
    let is_storable = schema.fields().first().is_some_and(|field| is_storable(field.data_type()));
    if !is_storable {
        return Err(ArrowError::SchemaError("its values are empty".into()));
    }
    let mut reader =
        ReaderBuilder::new(Arc::new(schema)).with_batch_size(values.len().max(1)).build(Cursor::new(&lines))?;
    let Some(batch) = reader.next().transpose()? else {
        return Err(ArrowError::SchemaError("it has no values".into()));
    };
    if !keeps_numbers(&batch, values) {
        return Err(ArrowError::SchemaError("a number in it would change".into()));
    }
    Ok(batch.column(0).clone())
}

/// Whether the rows of the column are read with the numbers as they are written in `values`.
fn keeps_numbers(column: &RecordBatch, values: &[Option<&Json>]) -> bool {
    // The order of fields may change.
    let sorted = |text: &str| {
        let mut found: Vec<String> = numbers(text).map(str::to_owned).collect();
        found.sort_unstable();
        found
    };
    let (mut rows, mut shared) = (Vec::new(), SharedValues::default());
    while rows.len() < column.num_rows() {
        match parquet_rows::read(column, rows.len(), &mut shared) {
            Ok(more) => rows.extend(more),
            Err(_) => return false,
        }
    }
    rows.len() == values.len()
        && rows.iter().zip(values).all(|(row, value)| {
            let Ok(row) = row else { return false };
            let [read, written] = [row.present("v"), *value].map(|json| json.map_or("", Json::as_text));
            sorted(read) == sorted(written)
        })
}

/// The numbers in a JSON text, as they are written.
fn numbers(json: &str) -> impl Iterator<Item = &str> {
    let mut is_string = false;
    let mut is_escaped = false;
    let outside = json.split(move |c: char| {
        let was_string = is_string;
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_string => is_escaped = true,
            '"' => is_string = !is_string,
            _ => {}
        }
        was_string || !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E'))
    });
    // The `e` of `true` and `false` is not part of a number.
    outside.filter(|part| part.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Whether Parquet can hold the type: it has no null type, and no group without fields.
fn is_storable(kind: &DataType) -> bool {
    match kind {
        DataType::Null => false,
        DataType::Struct(fields) => !fields.is_empty() && fields.iter().all(|field| is_storable(field.data_type())),
        DataType::List(item) => is_storable(item.data_type()),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RowReader;
    use serde_json::{Value, json};
    use std::os::unix::fs::FileTypeExt;

    fn rows(lines: &[&str]) -> Vec<Columns> {
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn written(name: &str, rows: &[Columns]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        write_rows(&path, rows).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a partial file is left");
        let read = RowReader::open(&path).unwrap();
        read.map(|row| Json::from(row.unwrap().columns).as_text().to_owned()).collect()
    }

    /// The rows as a Parquet file returns them, with the fields of objects in any order.
    fn as_parquet(lines: &[&str]) -> Vec<Value> {
        written("d.parquet", &rows(lines)).iter().map(|row| serde_json::from_str(row).unwrap()).collect()
    }

    #[test]
    fn lines_are_the_rows_as_they_are() {
        let lines = [r#"{"a":4.50,"b":{"c":[1,"x"]}}"#, r#"{"b":null,"z":123456789012345678901234567890}"#];
        assert_eq!(written("d.jsonl", &rows(&lines)), lines);
    }

    #[test]
    fn parquet_has_a_column_of_each_name_with_its_type() {
        let found = as_parquet(&[
            r#"{"prompt":[{"role":"user","content":"q"}],"n":1,"x":0.5,"deep":{"a":[1]}}"#,
            r#"{"prompt":[{"role":"user","content":"r"},{"role":"tool","content":"s"}],"n":2,"late":true}"#,
        ]);
        let (q, r) = (json!({"role": "user", "content": "q"}), json!({"role": "user", "content": "r"}));
        let s = json!({"role": "tool", "content": "s"});
        assert_eq!(found[0], json!({"prompt": [q], "n": 1, "x": 0.5, "deep": {"a": [1]}, "late": null}));
        assert_eq!(found[1], json!({"prompt": [r, s], "n": 2, "x": null, "deep": null, "late": true}));
    }

    #[test]
    fn what_parquet_cannot_hold_is_text() {
        let found = as_parquet(&[
            r#"{"empty":{},"none":null,"mixed":"x","big":123456789012345678901234567890,"list":[]}"#,
            r#"{"empty":{},"none":null,"mixed":{"a":1},"big":1,"list":[]}"#,
        ]);
        let big = "123456789012345678901234567890";
        assert_eq!(found[0], json!({"empty": "{}", "none": null, "mixed": "x", "big": big, "list": "[]"}));
        assert_eq!(found[1], json!({"empty": "{}", "none": null, "mixed": "{\"a\":1}", "big": "1", "list": "[]"}));
    }

    #[test]
    fn a_number_is_a_number_where_its_text_stays() {
        let found = numbers(r#"{"a1":[-1.50e+3,true],"b":"7 \" 8","c":null,"d":false,"e":9}"#);
        assert_eq!(found.collect::<Vec<_>>(), ["-1.50e+3", "9"]);
        let read = |numbers: &[&str]| {
            let lines: Vec<String> =
                numbers.iter().map(|number| format!(r#"{{"v":{{"b":"x","a":{number}}}}}"#)).collect();
            let values = as_parquet(&lines.iter().map(String::as_str).collect::<Vec<_>>());
            values.iter().map(|row| row["v"].as_object().map(|fields| fields["a"].to_string())).collect::<Vec<_>>()
        };
        for kept in [&["9223372036854775807", "-1"][..], &["0.30000000000000004", "1e-290"], &["4.5", "3.0"]] {
            assert_eq!(read(kept), kept.iter().map(|number| Some((*number).to_owned())).collect::<Vec<_>>());
        }
        for text in [
            &["4.50"][..],
            &["4.5", "3"],
            &["1E5"],
            &["-0"],
            &["9223372036854775808"],
            &["9223372036854775807", "0.5"],
            &["0.1234567890123456789"],
            &["1e400"],
        ] {
            assert_eq!(read(text), vec![None; text.len()], "{text:?}");
        }
        // Each field of an object has its own type.
        assert_eq!(as_parquet(&[r#"{"v":{"n":1,"x":0.5}}"#])[0], json!({"v": {"n": 1, "x": 0.5}}));
        assert_eq!(as_parquet(&[r#"{"answer":4.50}"#, r#"{"answer":3}"#])[0], json!({"answer": "4.50"}));
    }

    #[test]
    fn what_is_no_file_gets_the_rows_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let rows = rows(&[r#"{"a":4.50}"#, r#"{"a":null}"#]);
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read_to_string(pipe).unwrap()
        });
        write_rows(&pipe, &rows).unwrap();
        assert_eq!(reader.join().unwrap(), "{\"a\":4.50}\n{\"a\":null}\n");
        assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());

        check_writable(Path::new("/dev/null")).unwrap();
        write_rows(Path::new("/dev/null"), &rows).unwrap();
        for name in ["d.jsonl", "d.parquet"] {
            let path = folder.path().join(name);
            std::os::unix::fs::symlink("/dev/full", &path).unwrap();
            let error = write_rows(&path, &rows).unwrap_err().to_string();
            assert!(error.starts_with(&format!("cannot write {}: ", path.display())), "{error}");
            assert!(error.contains("No space left on device") && error.contains("\nhint: the disk is full"), "{error}");
            assert!(path.is_symlink(), "{name}");
        }
        for device in ["/dev/null", "/dev/full"] {
            assert!(std::fs::symlink_metadata(device).unwrap().file_type().is_char_device(), "{device}");
        }
    }

    #[test]
    fn a_prompt_is_never_made_a_text_that_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.parquet");
        let mixed = rows(&[r#"{"prompt":"q"}"#, r#"{"prompt":[{"role":"user","content":"q"}]}"#]);
        let error = write_rows(&path, &mixed).unwrap_err().to_string();
        assert!(error.contains("d.parquet: Parquet cannot hold the column `prompt`"), "{error}");
        assert!(!path.exists());
        for (name, says) in [("d.csv", "must end in .jsonl or .parquet"), ("none/d.jsonl", "none is not a folder")] {
            let error = check_writable(&folder.path().join(name)).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
