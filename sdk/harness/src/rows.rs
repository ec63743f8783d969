//! Rows of a dataset, with or without a completion.

use crate::about::About;
use crate::error::HarnessError;
use crate::expectation::Expectation;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{OutcomeKind, PriorVerdicts, Row, RowReader, Sample, SampleInput, Task};
use gavel_scoring::{Attempts, completion, has_completion};
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
    /// What other rewards said of the completion, where it is a golden case that says so.
    pub verdicts: Arc<PriorVerdicts>,
    /// Whether it is a golden case that expects no score.
    pub expects_no_score: bool,
}

/// Reads a `.jsonl` or `.parquet` file. Of more than `most` rows, about as many
/// are taken, evenly from all of it, and whole groups of them: neighbours with
/// one id. A row with a column `expect` is a golden case, whose columns about
/// the case its plugin does not see.
///
/// # Errors
/// The file or a row cannot be read.
pub fn read_rows(path: &Path, most: usize) -> Result<Vec<DataRow>, HarnessError> {
    // Twice, so that only what is taken is kept in memory.
    let (mut rows, mut groups) = (0, 0);
    for numbered in numbered(path)? {
        (rows, groups) = (rows + 1, numbered?.0 + 1);
    }
    if rows == 0 {
        return Err(HarnessError::NoRows(path.to_owned()));
    }
    let wanted = if rows <= most { groups } else { (groups * most / rows).max(1) };
    let taken = |group: usize| group * wanted / groups != (group + 1) * wanted / groups;
    let kept = |numbered: &Result<(usize, DataRow), _>| numbered.as_ref().map_or(true, |(group, _)| taken(*group));
    numbered(path)?.filter(kept).map(|numbered| Ok(numbered?.1)).collect()
}

/// The rows of a file, each with the number of its group.
fn numbered(path: &Path) -> Result<impl Iterator<Item = Result<(usize, DataRow), HarnessError>>, HarnessError> {
    let shown = path.strip_prefix(".").unwrap_or(path).display();
    let mut attempts = Attempts::default();
    let mut groups = 0;
    Ok(RowReader::open(path)?.map(move |row| {
        let row = row?;
        let place = format!("{shown}, {}", row.place);
        let made = DataRow::new(row, &place, &mut attempts).map_err(|what| HarnessError::Row { place, what })?;
        let begins = made.sample.as_ref().is_none_or(|sample| sample.index == 0);
        groups += usize::from(begins);
        Ok((groups - 1, made))
    }))
}

impl DataRow {
    /// What a call is given of its completion, where it has one.
    pub(crate) fn input(&self) -> Option<SampleInput> {
        Some(SampleInput { sample: self.sample.clone()?, verdicts: self.verdicts.clone() })
    }

    fn new(row: Row, place: &str, attempts: &mut Attempts) -> Result<Self, String> {
        let Row { position, place: in_file, mut columns } = row;
        let about = if columns.get("expect").is_some() { About::take(&mut columns)? } else { About::default() };
        let expects_no_score =
            about.expected.as_ref().and_then(Expectation::kind).is_some_and(|kind| kind != OutcomeKind::Scored);
        let seed = derive(0, 0, position as u64, Purpose::Plugin);
        let (task, sample) = if has_completion(&columns) {
            let row = Row { position, place: in_file, columns };
            let sample = attempts.number(completion(row, "data").map_err(|error| error.to_string())?);
            (sample.task.clone(), Some(Arc::new(sample)))
        } else {
            (Arc::new(Task::from_row(columns, position, "data").map_err(|error| error.to_string())?), None)
        };
        let About { params, replies, verdicts, .. } = about;
        Ok(Self {
            place: place.to_owned(),
            task,
            sample,
            seed,
            params,
            replies,
            verdicts: verdicts.into(),
            expects_no_score,
        })
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
        assert!(rows[0].sample.is_none() && rows[0].task.reference.columns.get("params").is_some());
        assert_eq!(rows[1..3].iter().map(|row| row.sample.as_ref().unwrap().index).collect::<Vec<_>>(), [0, 1]);
        let case = &rows[3];
        assert_eq!((case.expects_no_score, case.params.as_ref().unwrap()["a"].as_i64()), (true, Some(1)));
        assert_eq!(case.replies["judge"], ["no"]);
        assert_eq!(case.task.reference.columns.names().collect::<Vec<_>>(), ["response"]);
    }

    #[test]
    fn many_rows_are_thinned_evenly() {
        let text: String = (0..100).map(|number| format!("{{\"prompt\": \"{number}\"}}\n")).collect();
        let places: Vec<String> = rows(&text, 4).unwrap().iter().map(|row| row.task.prompt[0].text()).collect();
        assert_eq!(places, ["24", "49", "74", "99"]);
        assert_eq!(rows(&text, 100).unwrap().len(), 100);
        assert!(matches!(rows("", 4), Err(HarnessError::NoRows(_))));
    }

    #[test]
    fn groups_are_taken_whole() {
        let row = |number: usize| format!("{{\"id\": \"{}\", \"response\": \"x\"}}\n", number / 4);
        let rows = rows(&(0..400).map(row).collect::<String>(), 40).unwrap();
        assert_eq!(rows.len(), 40);
        for group in rows.chunks(4) {
            let places = group.iter().map(|row| (&row.task.id, row.sample.as_ref().unwrap().index));
            assert!(places.eq((0..4).map(|index| (&group[0].task.id, index))), "{group:?}");
        }
    }

    #[test]
    fn a_misspelt_expectation_is_no_expectation() {
        let error = rows("{\"response\": \"x\", \"expect\": {\"outcome\": \"falt\"}}\n", 4).unwrap_err().to_string();
        assert!(error.contains("line 1: `expect.outcome` must be one of"), "{error}");
    }
}
