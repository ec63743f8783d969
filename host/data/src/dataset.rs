//! Rows from JSON Lines and Parquet files. All contents (numpy types, nested
//! structs, nulls, decimals) are read as plain JSON, column by column, with
//! every number as it is written.

mod batch_rows;
mod caught;
mod expansion;
mod files;
mod filled_nulls;
mod footer;
mod lines;
mod logical_types;
mod page_header;
mod parquet_file;
mod parquet_reader;
mod parquet_rows;
mod parquet_values;
mod pattern;
mod row_size;
mod shared_values;
mod thrift;
mod writing;

pub use batch_rows::BatchRows;
pub use files::{DatasetReader, DatasetRow};
pub use writing::{check_writable, write_rows};

use crate::files::{open_regular, without_bom};
use crate::json::Columns;
use crate::task::TaskError;
use caught::caught;
use lines::Lines;
use parquet_reader::ParquetReader;
use std::fs::File;
use std::io::BufReader;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// One row and its place in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The number of the row, from 0.
    pub position: usize,
    /// Its place in the file, for messages: `line 7` or `row 7`.
    pub place: String,
    /// Its columns.
    pub columns: Columns,
}

/// A file or a row that cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RowError {
    /// The file cannot be opened.
    #[error("cannot open dataset {}: {source}", path.display())]
    Open { path: PathBuf, source: std::io::Error },
    /// A folder or a pattern without a dataset file.
    #[error("dataset {} has no file whose name ends in .jsonl or .parquet", .0.display())]
    NoFiles(PathBuf),
    /// A pattern with a syntax error.
    #[error("dataset {} is not a pattern: {what}", path.display())]
    BadPattern { path: PathBuf, what: String },
    /// Rows cannot be written.
    #[error("cannot write {}: {what}", path.display())]
    Write { path: PathBuf, what: String },
    /// A file whose name ends neither in `.jsonl` nor in `.parquet`.
    #[error("dataset {} has an unknown kind: its name must end in .jsonl or .parquet", .0.display())]
    UnknownKind(PathBuf),
    /// A file has other contents than when it was opened.
    #[error("dataset {} changed while it was read\nhint: start again once nothing writes to it", .0.display())]
    Changed(PathBuf),
    /// A row is broken, or the file from that row on.
    #[error("{}, {place}: {what}", path.display())]
    Broken { path: PathBuf, place: String, what: String },
    /// A row is not a task.
    #[error("{}, {place}: {source}", path.display())]
    NoTask { path: PathBuf, place: String, source: TaskError },
}

/// Reads the rows of a file one after another. After a broken line of JSON or a
/// row that is too long, the next call returns the row after it; a broken
/// Parquet file ends.
pub struct RowReader {
    path: PathBuf,
    position: usize,
    source: Source,
}

enum Source {
    Jsonl { lines: Lines<BufReader<File>>, line: usize },
    Parquet { reader: Box<ParquetReader>, is_over: bool },
}

impl RowReader {
    /// Opens `path`, whose name ends in `.jsonl` or `.parquet`.
    pub fn open(path: &Path) -> Result<Self, RowError> {
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        if !matches!(kind, "jsonl" | "parquet") {
            return Err(RowError::UnknownKind(path.to_owned()));
        }
        let open = |source| RowError::Open { path: path.to_owned(), source };
        let file = open_regular(path).map_err(open)?;
        let source = if kind == "jsonl" {
            Source::Jsonl { lines: Lines::new(BufReader::new(file), row_size::MOST_BYTES), line: 0 }
        } else {
            let reader = caught(|| ParquetReader::open(file)).map_err(|error| RowError::Broken {
                path: path.to_owned(),
                place: "footer".into(),
                what: format!("not a readable Parquet file: {error}"),
            })?;
            Source::Parquet { reader: Box::new(reader), is_over: false }
        };
        Ok(Self { path: path.to_owned(), position: 0, source })
    }

    /// Reads JSON Lines from standard input, which `path` names in messages.
    fn stdin(path: &Path) -> Result<Self, RowError> {
        let input = std::io::stdin().as_fd().try_clone_to_owned();
        let file = File::from(input.map_err(|source| RowError::Open { path: path.to_owned(), source })?);
        let source = Source::Jsonl { lines: Lines::new(BufReader::new(file), row_size::MOST_BYTES), line: 0 };
        Ok(Self { path: path.to_owned(), position: 0, source })
    }

    /// The file that is read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Rows that were read so far, broken ones included.
    fn rows_read(&self) -> usize {
        self.position
    }

    fn row(&mut self, place: String, columns: Columns) -> Row {
        let position = self.position;
        self.position += 1;
        Row { position, place, columns }
    }
}

impl Iterator for RowReader {
    type Item = Result<Row, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let broken = |path: &Path, place: &str, what: String| {
            Some(Err(RowError::Broken { path: path.to_owned(), place: place.to_owned(), what }))
        };
        match &mut self.source {
            Source::Jsonl { lines, line } => loop {
                let text = match lines.next()? {
                    Ok(text) => text,
                    Err(error) => {
                        *line += 1;
                        let place = format!("line {line}");
                        self.position += 1;
                        return broken(&self.path, &place, error.to_string());
                    }
                };
                *line += 1;
                let text = if *line == 1 { without_bom(&text) } else { &text };
                if text.trim().is_empty() {
                    continue;
                }
                let place = format!("line {line}");
                return match serde_json::from_str(text) {
                    Ok(columns) => Some(Ok(self.row(place, columns))),
                    Err(error) => {
                        self.position += 1;
                        broken(&self.path, &place, format!("not a JSON object: {error}"))
                    }
                };
            },
            Source::Parquet { is_over: true, .. } => None,
            Source::Parquet { reader, is_over } => {
                let place = format!("row {}", self.position);
                match caught(|| reader.next()) {
                    Ok(Some(Ok(columns))) => Some(Ok(self.row(place, columns))),
                    Ok(Some(Err(what))) => {
                        self.position += 1;
                        broken(&self.path, &place, what)
                    }
                    Ok(None) => None,
                    Err(what) => {
                        *is_over = true;
                        broken(&self.path, &format!("{place} and after"), what)
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Json;
    use std::sync::Arc;

    fn write_parquet(path: &Path, rows: &str) {
        let cursor = std::io::Cursor::new(rows);
        let (schema, _) = arrow_json::reader::infer_json_schema(cursor.clone(), None).unwrap();
        let schema = Arc::new(schema);
        let batches = arrow_json::ReaderBuilder::new(schema.clone()).build(cursor).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(File::create(path).unwrap(), schema, None).unwrap();
        for batch in batches {
            writer.write(&batch.unwrap()).unwrap();
        }
        writer.close().unwrap();
    }

    #[test]
    fn parquet_arrives_as_the_json_that_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.parquet");
        let first = r#"{"prompt":[{"role":"user","content":"q"}],"reward_model":{"ground_truth":"4","style":"rule"},"extra_info":{"index":1,"deep":[1.5,null]}}"#;
        let second = r#"{"prompt":[],"reward_model":null,"extra_info":{"index":null,"deep":null}}"#;
        write_parquet(&path, &format!("{first}\n{second}\n"));
        let rows: Vec<_> = RowReader::open(&path).unwrap().map(|row| Json::from(row.unwrap().columns)).collect();
        assert_eq!(rows.iter().map(Json::as_text).collect::<Vec<_>>(), [first, second]);
    }

    #[test]
    fn a_pipe_or_a_device_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.jsonl", "a.parquet"] {
            let path = folder.path().join(name);
            std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            let error = RowReader::open(&path).map(drop).unwrap_err().to_string();
            assert_eq!(error, format!("cannot open dataset {}: it is not a regular file", path.display()));
        }
        let status = std::process::Command::new("mkfifo").arg(folder.path().join("b.jsonl")).status().unwrap();
        assert!(status.success());
        assert!(RowReader::open(&folder.path().join("b.jsonl")).is_err());
    }

    #[test]
    fn a_broken_line_is_named_and_the_rest_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.jsonl");
        std::fs::write(&path, "{\"a\":1}\n\n[1]\n{\"a\":2}\n").unwrap();
        let rows: Vec<_> = RowReader::open(&path).unwrap().collect();
        assert_eq!(rows.len(), 3);
        assert!(rows[1].as_ref().unwrap_err().to_string().contains("d.jsonl, line 3: not a JSON object"));
        let last = rows[2].as_ref().unwrap();
        assert_eq!((last.position, last.place.as_str()), (2, "line 4"));
    }

    #[test]
    fn a_row_that_is_too_long_is_named_and_the_rest_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.jsonl");
        // Both are JSON.
        let row = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - r#"{"a":""}"#.len()));
        let [longest, too_long] = [0, 1].map(|more| row(row_size::MOST_BYTES + more));
        std::fs::write(&path, [&*longest, &*too_long, r#"{"a":2}"#].join("\n")).unwrap();
        let rows: Vec<_> = RowReader::open(&path).unwrap().collect();
        let [longest, too_long, last] = &rows[..] else { panic!("{} rows", rows.len()) };
        assert_eq!(longest.as_ref().unwrap().place, "line 1");
        let says = "the row has more than 67108864 bytes\nhint: remove the row, or shorten its values";
        assert_eq!(too_long.as_ref().unwrap_err().to_string(), format!("{}, line 2: {says}", path.display()));
        assert_eq!(last.as_ref().unwrap().place, "line 3");
    }

    #[test]
    fn a_byte_order_mark_is_not_a_part_of_the_first_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.jsonl");
        let rows = |text: &str| {
            std::fs::write(&path, text).unwrap();
            RowReader::open(&path).unwrap().collect::<Vec<_>>()
        };
        let read = rows("\u{feff}{\"a\":1}\r\n{\"a\":2}\n");
        let places = read.iter().map(|row| row.as_ref().unwrap().place.as_str());
        assert_eq!(places.collect::<Vec<_>>(), ["line 1", "line 2"]);
        assert_eq!(rows("\u{feff}\n{\"a\":1}\n").len(), 1);
        // Anywhere else it is a character like any other.
        assert!(rows("{\"a\":1}\n\u{feff}{\"a\":2}\n")[1].is_err());
    }

    #[test]
    fn files_that_cannot_be_read_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = |name: &str| RowReader::open(&folder.path().join(name)).err().unwrap().to_string();
        assert!(error("none.jsonl").contains("cannot open dataset"));
        assert!(error("d.csv").contains("must end in .jsonl or .parquet"));
        std::fs::write(folder.path().join("x.parquet"), "nonsense").unwrap();
        assert!(error("x.parquet").contains("not a readable Parquet file"));
    }

    #[test]
    fn a_file_over_which_the_reader_panics_is_an_error() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/rows");
        let rows = |name: &str| -> Result<Vec<Row>, RowError> { RowReader::open(&corpus.join(name))?.collect() };
        let error = rows("bits-out-of-bounds.parquet").unwrap_err().to_string();
        assert!(error.contains("the file is damaged: its reader panicked: "), "{error}");
        // This one would let it panic.
        let error = rows("negative-column-start.parquet").unwrap_err().to_string();
        assert!(error.ends_with(" of row group 0 has a place or a size below 0"), "{error}");
    }

    #[test]
    fn a_page_header_that_claims_more_than_the_file_has_is_an_error() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/rows");
        // A list of two thousand million numbers, in a file of 483 bytes.
        let mut rows = RowReader::open(&corpus.join("list-that-never-ends.parquet")).unwrap();
        let error = rows.next().unwrap().unwrap_err().to_string();
        assert!(error.ends_with("the file ends within a page"), "{error}");
        assert!(rows.next().is_none());
    }
}
