//! Reading a file of cases.

use super::attempt::{AttemptCase, is_attempt};
use super::session::SessionCase;
use crate::about::About;
use crate::batch::{batch, state_bytes};
use crate::error::CaseError;
use crate::expectation::Expectation;
use crate::request::request;
use gavel_data::files::without_bom;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{Columns, Row, SampleInput, Shown};
use gavel_plugin::advantage::Batch;
use gavel_plugin::sampler::Request;
use gavel_scoring::{Attempts, completion, has_completion};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One case.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its column `case`, else `line N`.
    pub name: String,
    /// Its line in the file, from 1.
    pub line: NonZeroUsize,
    /// The question to the plugin.
    pub question: Question,
    /// The seed of the plugin's random numbers, as in `gavel score` for this
    /// row, or the seed of a taskset's row.
    pub seed: u64,
    /// Its own parameters, in place of the plugin's.
    pub params: Option<Map<String, Value>>,
    /// The replies of endpoints in it, in place of the common replies.
    pub replies: BTreeMap<String, Vec<String>>,
    /// The name of a column that is probably a misspelt `expect`.
    pub misspelt: Option<String>,
    /// The expected result. It is absent until `--update` has written it, and for a session and an attempt, which have
    /// other kinds.
    pub expected: Option<Expectation>,
}

/// The question to the plugin in a case.
#[derive(Debug, Clone)]
pub enum Question {
    /// To score a sample: the row without the columns that describe the case, and the verdicts of other rewards on it.
    Sample(SampleInput),
    /// For the row of a taskset at this index.
    Row(u64),
    /// To answer the calls of a session.
    Session(SessionCase),
    /// To attempt a task.
    Attempt(Box<AttemptCase>),
    /// For the advantages of groups.
    Batch(Arc<Batch>),
    /// For the next tasks of a run.
    Draw(Arc<Request>),
    /// Nothing: the plugin must refuse its parameters.
    Nothing,
}

/// A file of cases.
#[derive(Debug)]
pub struct CaseFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) cases: Vec<Case>,
}

impl CaseFile {
    /// Reads a file of JSON Lines.
    ///
    /// # Errors
    /// The file cannot be read or has no case, or a line is not a case. The
    /// message names the line and the field.
    pub fn read(path: &Path) -> Result<Self, CaseError> {
        let text = std::fs::read_to_string(path).map_err(|source| CaseError::Read { path: path.to_owned(), source })?;
        let mut cases: Vec<Case> = Vec::new();
        let mut attempts = Attempts::default();
        for (line, text) in (1..).filter_map(NonZeroUsize::new).zip(without_bom(&text).lines()) {
            if text.trim().is_empty() {
                continue;
            }
            let case = Case::parse(text, cases.len(), line, &mut attempts);
            cases.push(case.map_err(|what| CaseError::Line { path: path.to_owned(), line, what })?);
        }
        if cases.is_empty() {
            return Err(CaseError::Empty(path.to_owned()));
        }
        Ok(Self { path: path.to_owned(), text, cases })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its cases, in order.
    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    /// The number of possible expectations: one for each case, or one for each call of a session and its state.
    pub fn expectations(&self) -> usize {
        let of_case = |case: &Case| match &case.question {
            Question::Session(session) => session.calls.len() + usize::from(session.state.is_some()),
            _ => 1,
        };
        self.cases.iter().map(of_case).sum()
    }

    /// Its cases, in order.
    pub(crate) fn into_cases(self) -> impl Iterator<Item = Case> {
        self.cases.into_iter()
    }
}

/// Cases, with the attempts at one task in one group.
pub(super) fn groups(cases: &[Case]) -> impl Iterator<Item = &[Case]> {
    cases.chunk_by(|one, next| match (&one.question, &next.question) {
        (Question::Sample(one), Question::Sample(next)) => one.sample.task.id == next.sample.task.id,
        _ => false,
    })
}

impl Case {
    /// Whether it, or a call of its session, has no expectation. Such a case fails, whatever it gives.
    pub fn is_unstated(&self) -> bool {
        match &self.question {
            Question::Session(session) => session.calls.iter().any(|call| call.expected.is_none()),
            Question::Attempt(attempt) => attempt.expected.is_none(),
            _ => self.expected.is_none(),
        }
    }

    /// Whether an earlier case of the same group shares its call.
    pub(super) fn is_later_of_group(&self) -> bool {
        matches!(&self.question, Question::Sample(input) if input.sample.index > 0)
    }

    fn parse(text: &str, position: usize, line: NonZeroUsize, attempts: &mut Attempts) -> Result<Self, String> {
        let mut columns: Columns = serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))?;
        let misspelt = misspelt_expect(&columns);
        let (of_attempt, of_session) = (is_attempt(&columns), is_session(&columns));
        // These have expectations of another kind.
        let own_expect = if of_attempt || of_session { columns.remove("expect") } else { None };
        let own_expect = own_expect.filter(|expect| !expect.is_null());
        let mut about = About::take(&mut columns)?;
        let (name, expected) = (about.name.take(), about.expected.take());
        let name = name.unwrap_or_else(|| format!("line {line}"));
        let of_row = expected.as_ref().is_some_and(|expected| expected.row.is_some());
        let (question, seed) = if expected.as_ref().is_some_and(|expected| expected.refused.is_some()) {
            (Question::Nothing, 0)
        } else if of_session {
            let seed = derive(0, 0, position as u64, Purpose::Tool);
            (Question::Session(SessionCase::take(&mut columns, own_expect)?), seed)
        } else if of_attempt {
            let attempt = AttemptCase::take(columns, own_expect, position)?;
            (Question::Attempt(Box::new(attempt)), derive(0, 0, position as u64, Purpose::Tool))
        } else if is_batch(&columns) {
            (Question::Batch(Arc::new(batch_question(&mut columns)?)), derive(0, 0, position as u64, Purpose::Plugin))
        } else if is_request(&columns) {
            let columns = columns.names().filter_map(|name| Some((name.to_owned(), columns.get(name)?.parse().ok()?)));
            (Question::Draw(Arc::new(request(columns.collect())?)), 0)
        } else if of_row || (columns.get("index").is_some() && !has_completion(&columns)) {
            row_question(&mut columns)?
        } else {
            let row = Row { position, place: format!("line {line}"), columns };
            let sample = attempts.number(completion(row, "data").map_err(|error| error.to_string())?);
            let (sample, verdicts) = (about.complete(sample), std::mem::take(&mut about.verdicts));
            let input = SampleInput { sample: Arc::new(sample), verdicts: verdicts.into() };
            (Question::Sample(input), derive(0, 0, position as u64, Purpose::Plugin))
        };
        let About { params, replies, .. } = about;
        Ok(Self { name, line, question, seed, params, replies, misspelt, expected })
    }
}

/// The column that is most like `expect`, in a case that has none. A dataset may have such a column, so that it is no
/// error by itself.
fn misspelt_expect(columns: &Columns) -> Option<String> {
    const SIMILAR: f64 = 0.85;
    if columns.get("expect").is_some() {
        return None;
    }
    let similar = columns.names().map(|name| (strsim::jaro(name, "expect"), name));
    let most = similar.filter(|(similarity, _)| *similarity > SIMILAR).max_by(|a, b| a.0.total_cmp(&b.0));
    most.map(|(_, name)| name.to_owned())
}

/// Whether a row is a session of a tool. A dataset may also have a column `calls`.
pub(crate) fn is_session(columns: &Columns) -> bool {
    columns.get("calls").is_some() && columns.get("prompt").is_none() && !has_completion(columns)
}

/// Whether a row has groups for an advantage. A dataset may also have a column `groups`.
pub(crate) fn is_batch(columns: &Columns) -> bool {
    columns.get("groups").is_some() && columns.get("prompt").is_none() && !has_completion(columns)
}

/// Whether a row is a request to a sampler. A dataset may also have a column `datasets`.
pub(crate) fn is_request(columns: &Columns) -> bool {
    columns.get("datasets").is_some() && columns.get("prompt").is_none() && !has_completion(columns)
}

/// The groups of a case, with the step and the state that the call gets.
fn batch_question(columns: &mut Columns) -> Result<Batch, String> {
    let mut value = |name: &str| columns.remove(name).map(|value| value.parse().unwrap_or_default());
    let groups: Value = value("groups").unwrap_or_default();
    let step = match value("step") {
        None => 1,
        Some(step) => step.as_u64().ok_or_else(|| format!("`step` must be a whole number from 0, not {step}"))?,
    };
    let state = match value("state") {
        None => Vec::new(),
        Some(state) => {
            state_bytes(&state).ok_or_else(|| format!("`state` must be a text or a list of bytes, not {state}"))?
        }
    };
    match columns.names().next() {
        None => batch(groups, step, state),
        Some(other) => Err(format!(
            "`{}` does not go with `groups`\nhint: a case of an advantage has `groups`, `step` and `state`",
            Shown(other)
        )),
    }
}

/// The question for a taskset's row, and its seed.
fn row_question(columns: &mut Columns) -> Result<(Question, u64), String> {
    let mut number = |name: &str| match columns.remove(name) {
        None => Ok(None),
        Some(value) => {
            let wrong = |_| format!("`{name}` must be a whole number from 0, not {}", value.as_text());
            value.parse::<u64>().map(Some).map_err(wrong)
        }
    };
    let (index, seed) = (number("index")?, number("seed")?);
    let index = index.ok_or("`expect.row` is of a taskset, and the case has no `index`")?;
    match columns.names().next() {
        None => Ok((Question::Row(index), seed.unwrap_or_default())),
        Some(other) => Err(format!(
            "`{}` does not go with `index`\nhint: a case of a taskset has `index` and `seed`; one of a reward has a `response`",
            Shown(other)
        )),
    }
}
