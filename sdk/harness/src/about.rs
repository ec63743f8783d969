//! The columns of a row that describe it as a golden case.

use crate::expectation::Expectation;
use crate::verdicts::verdicts;
use gavel_data::{Columns, Json, PriorVerdicts, Sample, ToolStates};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The columns of a golden case beside its row. A plugin must not see them,
/// above all not the expectation.
#[derive(Debug, Default)]
pub(crate) struct About {
    /// Its name.
    pub(crate) name: Option<String>,
    /// Its own parameters.
    pub(crate) params: Option<Map<String, Value>>,
    /// The replies of endpoints in this case.
    pub(crate) replies: BTreeMap<String, Vec<String>>,
    /// The verdicts of other rewards on the sample.
    pub(crate) verdicts: PriorVerdicts,
    /// The object that the agent returned beside its answer.
    extra: Option<Columns>,
    /// The states in which tools ended.
    states: ToolStates,
    /// The expected outcome.
    pub(crate) expected: Option<Expectation>,
}

impl About {
    /// Takes these columns out of a row. The error names the column.
    pub(crate) fn take(columns: &mut Columns) -> Result<Self, String> {
        let mut given = |name: &str| columns.remove(name).filter(|value| !value.is_null());
        let wrong = |what: &str, found: &Json| format!("{what}, not {}", found.as_text());
        let name = given("case")
            .map(|name| name.string().ok_or_else(|| wrong("`case` must be a text, the name of the case", &name)));
        let params = given("params").map(|params| {
            params.parse().map_err(|_| wrong("`params` must be an object, the plugin's parameters", &params))
        });
        let expected = given("expect")
            .map(|expected| Expectation::from_json(&expected.parse().map_err(|error| format!("`expect`: {error}"))?));
        let replies = match given("replies") {
            None => BTreeMap::new(),
            // Parsed from a value: a position within `replies` in the error would look like a position in the file.
            Some(given) => given
                .parse()
                .and_then(serde_json::from_value)
                .map_err(|error| format!("`replies` must be an object such as {{\"judge\": [\"yes\"]}}: {error}"))?,
        };
        let verdicts = match given("verdicts") {
            None => PriorVerdicts::new(),
            Some(given) => given.parse().map_err(|error| error.to_string()).and_then(verdicts)?,
        };
        let extra = given("extra").map(|extra| {
            extra.fields().ok_or_else(|| wrong("`extra` must be an object, which the agent returned", &extra))
        });
        let states = given("states").map_or_else(
            || Ok(ToolStates::new()),
            |states| states.parse().map_err(|_| wrong("`states` must be an object of the states of tools", &states)),
        )?;
        let extra = extra.transpose()?;
        let (name, params, expected) = (name.transpose()?, params.transpose()?, expected.transpose()?);
        Ok(Self { name, params, replies, verdicts, extra, states, expected })
    }

    /// The sample of a row, with what the case adds to it.
    pub(crate) fn complete(&mut self, sample: Sample) -> Sample {
        let (extra, states) = (self.extra.take(), std::mem::take(&mut self.states));
        Sample { extra, states, ..sample }
    }
}
