//! The columns of a row that are about it as a golden case.

use crate::expectation::Expectation;
use crate::verdicts::verdicts;
use gavel_data::{Columns, Json, PriorVerdicts};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What a row says of itself as a case. A plugin must not see it: least of all
/// what is expected of it.
#[derive(Debug, Default)]
pub(crate) struct About {
    /// Its name.
    pub(crate) name: Option<String>,
    /// Its own parameters.
    pub(crate) params: Option<Map<String, Value>>,
    /// What endpoints reply in it.
    pub(crate) replies: BTreeMap<String, Vec<String>>,
    /// What other rewards said of the sample.
    pub(crate) verdicts: PriorVerdicts,
    /// What must come.
    pub(crate) expected: Option<Expectation>,
}

impl About {
    /// Takes it out of a row's columns. The error names the column.
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
            // By way of a value: where in `replies` it stands would be taken for where in the file.
            Some(given) => given
                .parse()
                .and_then(serde_json::from_value)
                .map_err(|error| format!("`replies` must be an object such as {{\"judge\": [\"yes\"]}}: {error}"))?,
        };
        let verdicts = match given("verdicts") {
            None => PriorVerdicts::new(),
            Some(given) => given.parse().map_err(|error| error.to_string()).and_then(verdicts)?,
        };
        let (name, params, expected) = (name.transpose()?, params.transpose()?, expected.transpose()?);
        Ok(Self { name, params, replies, verdicts, expected })
    }
}
