//! Rows of a dataset, with or without a completion.

use crate::error::HarnessError;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{OutcomeKind, Row, RowReader, Sample, Task};
use gavel_scoring::completion;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A row that a plugin can be asked about.
#[derive(Debug, Clone)]
pub struct DataRow {
    /// Where it stands in the file.
    pub place: String,
    /// The row.
    pub task: Arc<Task>,
    /// Its completion, where it has one.
    pub sample: Option<Arc<Sample>>,
    /// What a plugin sees as random: what `gavel score` shows it for this row.
    pub seed: u64,
    /// Its own parameters, where it is a golden case that has some.
    pub params: Option<Map<String, Value>>,
    /// What endpoints reply, where it is a golden case that says so.
    pub replies: BTreeMap<String, Vec<String>>,
    /// Whether it is a golden case that expects no score.
    pub expects_no_score: bool,
}

/// Reads a `.jsonl` or `.parquet` file. Of more than `most` rows, as many are
/// taken, evenly from all of it. A row with a column `expect` is a golden case,
/// whose columns about the case its plugin does not see.
///
/// # Errors
/// The file or a row cannot be read.
pub fn read_rows(path: &Path, most: usize) -> Result<Vec<DataRow>, HarnessError> {
    let mut rows = Vec::new();
    for row in RowReader::open(path)? {
        let row = row?;
        let place = format!("{}, {}", path.strip_prefix(".").unwrap_or(path).display(), row.place);
        let made = DataRow::new(row, &place).map_err(|what| HarnessError::Row { place, what })?;
        // Neighbours with one id are attempts at one task.
        let index = match rows.last() {
            Some(DataRow { task, sample: Some(last), .. }) if task.id == made.task.id => last.index + 1,
            _ => 0,
        };
        let sample = made.sample.map(|sample| Arc::new(Sample { index, ..Arc::unwrap_or_clone(sample) }));
        rows.push(DataRow { sample, ..made });
    }
    if rows.is_empty() {
        return Err(HarnessError::NoRows(path.to_owned()));
    }
    let count = rows.len();
    let taken = |at: usize| count <= most || (at * most / count) != ((at + 1) * most / count);
    Ok(rows.into_iter().enumerate().filter(|(at, _)| taken(*at)).map(|(_, row)| row).collect())
}

impl DataRow {
    fn new(row: Row, place: &str) -> Result<Self, String> {
        let Row { position, place: in_file, mut columns } = row;
        let (mut params, mut replies, mut expects_no_score) = (None, BTreeMap::new(), false);
        if let Some(expect) = columns.shift_remove("expect") {
            columns.shift_remove("case");
            let read = |what: &str, error: serde_json::Error| format!("`{what}`: {error}");
            let given = |value: Option<Value>| value.filter(|value| !value.is_null());
            params = given(columns.shift_remove("params"))
                .map(serde_json::from_value)
                .transpose()
                .map_err(|error| read("params", error))?;
            replies = given(columns.shift_remove("replies"))
                .map(serde_json::from_value)
                .transpose()
                .map_err(|error| read("replies", error))?
                .unwrap_or_default();
            let outcome = expect.get("outcome").and_then(Value::as_str);
            expects_no_score = expect.get("budget").is_some_and(|budget| !budget.is_null())
                || outcome.is_some_and(|outcome| outcome != OutcomeKind::Scored.as_str());
        }
        let seed = derive(0, 0, position as u64, Purpose::Plugin);
        let there = |name: &str| columns.get(name).is_some_and(|value| !value.is_null());
        let (task, sample) = if there("response") || there("messages") {
            let row = Row { position, place: in_file, columns };
            let sample = completion(row, "data").map_err(|error| error.to_string())?;
            (sample.task.clone(), Some(Arc::new(sample)))
        } else {
            (Arc::new(Task::from_row(columns, position, "data").map_err(|error| error.to_string())?), None)
        };
        Ok(Self { place: place.to_owned(), task, sample, seed, params, replies, expects_no_score })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, most: usize) -> Result<Vec<DataRow>, HarnessError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        std::fs::write(&path, text).unwrap();
        read_rows(&path, most)
    }

    #[test]
    fn a_row_may_be_a_question_an_answer_or_a_case() {
        let text = r#"{"prompt": "2 + 2?", "answer": "4", "params": [1]}
{"prompt": "2 + 2?", "answer": "4", "response": "4", "id": "a"}
{"prompt": "2 + 2?", "answer": "4", "response": "5", "id": "a"}
{"case": "x", "response": "5", "params": {"a": 1}, "expect": {"outcome": "fault"}, "replies": {"judge": ["no"]}}
"#;
        let rows = rows(text, 10).unwrap();
        assert!(rows[0].sample.is_none() && rows[0].task.reference.columns.contains_key("params"));
        assert_eq!(rows[1..3].iter().map(|row| row.sample.as_ref().unwrap().index).collect::<Vec<_>>(), [0, 1]);
        let case = &rows[3];
        assert_eq!((case.expects_no_score, case.params.as_ref().unwrap()["a"].as_i64()), (true, Some(1)));
        assert_eq!(case.replies["judge"], ["no"]);
        assert_eq!(case.task.reference.columns.keys().collect::<Vec<_>>(), ["response"]);
    }

    #[test]
    fn many_rows_are_thinned_evenly() {
        let text: String = (0..100).map(|number| format!("{{\"prompt\": \"{number}\"}}\n")).collect();
        let places: Vec<String> = rows(&text, 4).unwrap().iter().map(|row| row.task.prompt[0].text()).collect();
        assert_eq!(places, ["24", "49", "74", "99"]);
        assert_eq!(rows(&text, 100).unwrap().len(), 100);
        assert!(matches!(rows("", 4), Err(HarnessError::NoRows(_))));
    }
}
