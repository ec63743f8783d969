//! Parquet files of a few kilobytes that would take the machine or the process with them.
#![allow(clippy::unwrap_used, clippy::panic)]

use arrow_array::{ArrayRef, RecordBatch, StringArray, StructArray};
use arrow_schema::Field;
use gavel_data::{Columns, RowReader};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// What is read of a file: its rows, or its first error without its path.
fn read(path: &Path) -> Result<Vec<Columns>, String> {
    let rows = RowReader::open(path).and_then(|rows| rows.map(|row| Ok(row?.columns)).collect());
    rows.map_err(|error| error.to_string().split_once(".parquet, ").unwrap().1.to_owned())
}

#[test]
fn what_a_file_claims_is_checked_before_it_is_read() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/rows");
    for (name, error) in [
        // A page of 2^30 rows of some bytes.
        ("more-rows-than-the-footer", "row 0 and after: its pages have more rows than its footer"),
        (
            "groups-in-groups",
            "footer: not a readable Parquet file: External: its schema has more than 64 groups within each other",
        ),
        (
            "gzip-beyond-its-claim",
            "row 0 and after: Parquet argument error: External: a page expands to more than the 5 bytes that its header claims",
        ),
    ] {
        assert_eq!(read(&corpus.join(format!("{name}.parquet"))), Err(error.to_owned()), "{name}");
    }
}

/// A file whose only column is in so many groups.
fn within_groups(path: &Path, groups: usize) {
    let mut column: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    for _ in 0..groups {
        let field = Field::new("g", column.data_type().clone(), false);
        column = Arc::new(StructArray::from(vec![(Arc::new(field), column)]));
    }
    let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
    // The schema of Arrow, which may be there too, has fewer levels.
    let options = ArrowWriterOptions::new().with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(File::create(path).unwrap(), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn the_deepest_schema_fits_in_the_stack_of_a_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.parquet");
    let write = || within_groups(&path, 63);
    std::thread::scope(|scope| {
        std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, write).unwrap();
    });
    // A thread of tests has 2 MiB.
    let rows = read(&path).unwrap();
    assert_eq!(rows[0].get("a").unwrap().as_text(), format!("{}\"x\"{}", "{\"g\":".repeat(63), "}".repeat(63)));
}
