//! Rows of a dataset, with or without a completion.

use crate::about::About;
use crate::error::HarnessError;
use crate::expectation::Expectation;
use crate::golden::{Case, CaseFile, Question, is_attempt, is_batch, is_request, is_session};
use crate::plugin::LoadedPlugin;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{DatasetReader, DatasetRow, OutcomeKind, PriorVerdicts, Row, RowError, Sample, SampleInput, Task};
use gavel_scoring::{Attempts, completion, has_completion};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A row that a plugin can be called with.
#[derive(Debug, Clone)]
pub struct DataRow {
    /// Its place in the file.
    pub place: String,
    /// The row.
    pub task: Arc<Task>,
    /// Its completion, if it has one.
    pub sample: Option<Arc<Sample>>,
    /// The seed of a plugin's random numbers, as in `gavel score` for this row.
    pub seed: u64,
    /// Its own parameters, for a golden case that has some.
    pub params: Option<Map<String, Value>>,
    /// The replies of endpoints, for a golden case that has some.
    pub replies: BTreeMap<String, Vec<String>>,
    /// The verdicts of other rewards on the completion, for a golden case that has some.
    pub verdicts: Arc<PriorVerdicts>,
    /// Whether it is a golden case that expects no score.
    pub expects_no_score: bool,
}

/// The input of a plugin: the contents of a file.
#[derive(Debug, Clone)]
pub enum PluginData {
    /// Rows, for a plugin that scores them.
    Rows(Vec<DataRow>),
    /// Golden cases that are sessions, for a tool.
    Sessions(Vec<Case>),
    /// Golden cases of groups, for an advantage.
    Batches(Vec<Case>),
    /// Golden cases of requests, for a sampler.
    Requests(Vec<Case>),
}

impl PluginData {
    /// Reads the golden cases of a tool, an advantage or a sampler, which are one file, or rows as [`read_rows`] does.
    /// About `most` are taken.
    ///
    /// # Errors
    /// The file or a row cannot be read, or it has cases of an agent.
    pub fn read(path: &Path, most: usize) -> Result<Self, HarnessError> {
        let mut of_cases: Option<fn(Vec<Case>) -> Self> = None;
        for row in DatasetReader::open(path)? {
            let columns = row?.row.columns;
            if is_attempt(&columns) {
                return Err(HarnessError::Attempts(path.to_owned()));
            }
            // Cases that expect refused parameters may come first.
            of_cases = match &columns {
                columns if is_session(columns) => Some(Self::Sessions),
                columns if is_batch(columns) => Some(Self::Batches),
                columns if is_request(columns) => Some(Self::Requests),
                _ => None,
            };
            if of_cases.is_some() || columns.get("expect").is_none() {
                break;
            }
        }
        let Some(of_cases) = of_cases else { return Ok(Self::Rows(read_rows(path, most)?)) };
        let is_called =
            |case: &Case| matches!(case.question, Question::Session(_) | Question::Batch(_) | Question::Draw(_));
        Ok(of_cases(CaseFile::read(path)?.into_cases().filter(is_called).take(most).collect()))
    }

    /// Refuses data that the plugin has no function for.
    pub(crate) fn check(&self, plugin: &LoadedPlugin) -> Result<(), HarnessError> {
        let name = || plugin.name().to_owned();
        match self {
            Self::Batches(_) if plugin.is_advantage() => Ok(()),
            Self::Batches(_) => Err(HarnessError::NotAnAdvantage(name())),
            Self::Requests(_) if plugin.is_sampler() => Ok(()),
            Self::Requests(_) => Err(HarnessError::NotASampler(name())),
            _ if plugin.is_advantage() && !plugin.scores() => Err(HarnessError::NoGroups(name())),
            _ if plugin.is_sampler() && !plugin.scores() => Err(HarnessError::NoRequests(name())),
            Self::Sessions(_) if plugin.tool().is_some() => Ok(()),
            Self::Sessions(_) => Err(HarnessError::NotATool(name())),
            Self::Rows(_) if plugin.tool().is_some() => Err(HarnessError::NoSessions(name())),
            Self::Rows(_) if plugin.scores() => Ok(()),
            Self::Rows(_) => Err(HarnessError::ScoresNothing(name())),
        }
    }
}

/// Reads a `.jsonl` or `.parquet` file, a folder of them, or a pattern. Of more than `most` rows, about `most`
/// are taken, spread evenly over all of them. Whole groups are taken: neighbours
/// with the same id. A row with a column `expect` is a golden case; its plugin
/// does not see the columns that describe the case. Cases that expect refused
/// parameters are left out, because they do not call the plugin.
///
/// # Errors
/// The file or a row cannot be read.
pub fn read_rows(path: &Path, most: usize) -> Result<Vec<DataRow>, HarnessError> {
    // Reads twice, so that only the taken rows are in memory.
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

/// The rows of a dataset, each with the number of its group.
fn numbered(path: &Path) -> Result<impl Iterator<Item = Result<(usize, DataRow), HarnessError>>, HarnessError> {
    let mut attempts = Attempts::default();
    let mut groups = 0;
    let mut next = move |row: Result<DatasetRow, RowError>| {
        let DatasetRow { path, row } = row?;
        let place = format!("{}, {}", path.strip_prefix(".").unwrap_or(&path).display(), row.place);
        let made = DataRow::new(row, &place, &mut attempts).map_err(|what| HarnessError::Row { place, what })?;
        let Some(made) = made else { return Ok(None) };
        let begins = made.sample.as_ref().is_none_or(|sample| sample.index == 0);
        groups += usize::from(begins);
        Ok(Some((groups - 1, made)))
    };
    Ok(DatasetReader::open(path)?.filter_map(move |row| next(row).transpose()))
}

impl DataRow {
    /// The input of a call with its completion, if it has one.
    pub(crate) fn input(&self) -> Option<SampleInput> {
        Some(SampleInput { sample: self.sample.clone()?, verdicts: self.verdicts.clone() })
    }

    /// `None` for a golden case that does not call the plugin.
    fn new(row: Row, place: &str, attempts: &mut Attempts) -> Result<Option<Self>, String> {
        let Row { position, place: in_file, mut columns } = row;
        let mut about = if columns.get("expect").is_some() { About::take(&mut columns)? } else { About::default() };
        if about.expected.as_ref().is_some_and(|expected| expected.refused.is_some()) {
            return Ok(None);
        }
        let expects_no_score =
            about.expected.as_ref().and_then(Expectation::kind).is_some_and(|kind| kind != OutcomeKind::Scored);
        let seed = derive(0, 0, position as u64, Purpose::Plugin);
        let (task, sample) = if has_completion(&columns) {
            let row = Row { position, place: in_file, columns };
            let sample = attempts.number(completion(row, "data").map_err(|error| error.to_string())?);
            let sample = about.complete(sample);
            (sample.task.clone(), Some(Arc::new(sample)))
        } else {
            (Arc::new(Task::from_row(columns, position, "data").map_err(|error| error.to_string())?), None)
        };
        let About { params, replies, verdicts, .. } = about;
        Ok(Some(Self {
            place: place.to_owned(),
            task,
            sample,
            seed,
            params,
            replies,
            verdicts: verdicts.into(),
            expects_no_score,
        }))
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
{"case": "no", "params": {"a": 0}, "expect": {"refused": "a must be"}}
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
