//! A dataset's file: its rows, their tasks and completions, and the records of
//! these.

use gavel_data::{Message, Role, RowReader, Sample, SampleRecord, Task, Trajectory};
use gavel_scoring::completion;
use std::sync::Arc;

/// A column of one value takes few bytes for any number of rows.
const MOST_ROWS: usize = 4096;

/// The input is Parquet if it begins like a Parquet file, else JSON Lines.
pub(crate) fn read(input: &[u8]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let kind = if input.starts_with(b"PAR1") { "parquet" } else { "jsonl" };
    let path = folder.path().join("rows").with_extension(kind);
    std::fs::write(&path, input).unwrap();
    let Ok(rows) = RowReader::open(&path).inspect_err(|error| drop(error.to_string())) else { return false };
    let mut tasks = 0;
    for row in rows.take(MOST_ROWS) {
        let Ok(row) = row.inspect_err(|error| drop(error.to_string())) else { continue };
        match Task::from_row(row.columns.clone(), row.position, "train") {
            Ok(task) => {
                check_task(task);
                tasks += 1;
            }
            Err(error) => drop(error.to_string()),
        }
        match completion(row, "data") {
            Ok(sample) => assert_comes_back(&sample),
            Err(error) => drop(error.to_string()),
        }
    }
    tasks > 0
}

fn check_task(task: Task) {
    if let Err(error) = task.reference.tools() {
        drop(error.to_string());
    }
    let text = serde_json::to_string(&task).unwrap();
    assert_eq!(serde_json::from_str::<Task>(&text).unwrap(), task, "{text}");
    let messages = vec![Message::new(Role::Assistant, "42")];
    let trajectory = Trajectory::of(messages);
    assert_comes_back(&Sample::new(Arc::new(task), 0, vec![trajectory]));
}

/// The record of a sample is the same input for a plugin.
fn assert_comes_back(sample: &Sample) {
    let text = serde_json::to_string(&sample.record()).unwrap();
    let back = Sample::from(serde_json::from_str::<SampleRecord<'_>>(&text).unwrap());
    assert_eq!((back.record(), back.hash()), (sample.record(), sample.hash()), "{text}");
}
