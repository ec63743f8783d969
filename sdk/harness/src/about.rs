//! The columns of a row that are about it as a golden case.

use crate::expectation::Expectation;
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
    /// What must come.
    pub(crate) expected: Option<Expectation>,
}

impl About {
    /// Takes it out of a row's columns. The error names the column.
    pub(crate) fn take(columns: &mut Map<String, Value>) -> Result<Self, String> {
        let mut given = |name: &str| columns.shift_remove(name).filter(|value| !value.is_null());
        let name = match given("case") {
            None => None,
            Some(Value::String(name)) => Some(name),
            Some(other) => return Err(format!("`case` must be a text, the name of the case, not {other}")),
        };
        let params = match given("params") {
            None => None,
            Some(Value::Object(params)) => Some(params),
            Some(other) => return Err(format!("`params` must be an object, the plugin's parameters, not {other}")),
        };
        let expected = given("expect").map(|expected| Expectation::from_json(&expected)).transpose()?;
        let replies = match given("replies") {
            None => BTreeMap::new(),
            Some(given) => serde_json::from_value(given)
                .map_err(|error| format!("`replies` must be an object such as {{\"judge\": [\"yes\"]}}: {error}"))?,
        };
        Ok(Self { name, params, replies, expected })
    }
}
