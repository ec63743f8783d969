//! Reading a file of cases.

use crate::about::About;
use crate::error::CaseError;
use crate::expectation::Expectation;
use gavel_data::files::without_bom;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{Columns, PriorVerdicts, Row, Sample, SampleInput};
use gavel_scoring::{Attempts, completion};
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
    /// Where it stands in the file, from 1.
    pub line: NonZeroUsize,
    /// What is scored: the row without the columns that are about the case.
    pub sample: Arc<Sample>,
    /// What the plugin sees as random: what `gavel score` shows it for this row.
    pub seed: u64,
    /// Its own parameters, in place of the plugin's.
    pub params: Option<Map<String, Value>>,
    /// What endpoints reply in it, in place of what they reply in all.
    pub replies: BTreeMap<String, Vec<String>>,
    /// What other rewards said of the sample, for a judger that comes after them.
    pub verdicts: Arc<PriorVerdicts>,
    /// What must come; absent only until `--update` has written it.
    pub expected: Option<Expectation>,
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
    /// The file cannot be read or has no case, or a line is none; the message
    /// names the line and the field.
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

    /// Its cases, those together that are attempts at one task.
    pub(super) fn groups(&self) -> impl Iterator<Item = &[Case]> {
        self.cases.chunk_by(|one, next| one.sample.task.id == next.sample.task.id)
    }

    /// Refuses a case that states nothing of what it expects.
    ///
    /// # Errors
    /// The first such case.
    pub fn require_expectations(&self) -> Result<(), CaseError> {
        match self.cases.iter().find(|case| case.expected.is_none()) {
            Some(case) => Err(CaseError::NoExpectation { path: self.path.clone(), line: case.line }),
            None => Ok(()),
        }
    }
}

impl Case {
    /// What the call is given of it.
    pub(super) fn input(&self) -> SampleInput {
        SampleInput { sample: self.sample.clone(), verdicts: self.verdicts.clone() }
    }

    fn parse(text: &str, position: usize, line: NonZeroUsize, attempts: &mut Attempts) -> Result<Self, String> {
        let mut columns: Columns = serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))?;
        let About { name, params, replies, verdicts, expected } = About::take(&mut columns)?;
        let row = Row { position, place: format!("line {line}"), columns };
        let sample = completion(row, "data").map_err(|error| error.to_string())?;
        let seed = derive(0, 0, position as u64, Purpose::Plugin);
        let name = name.unwrap_or_else(|| format!("line {line}"));
        let (sample, verdicts) = (Arc::new(attempts.number(sample)), verdicts.into());
        Ok(Self { name, line, sample, seed, params, replies, verdicts, expected })
    }
}
