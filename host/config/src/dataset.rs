//! Where a dataset comes from: files, or a plugin.

use crate::error::ConfigError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

const PLUGIN: &str = "plugin:";

/// Where the rows of a dataset are: the path of a `.jsonl` or `.parquet` file, of a folder of them or a pattern, or
/// `plugin:NAME?key=value&…` for a taskset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Dataset {
    /// Files.
    File(PathBuf),
    /// A component that exports `taskset`.
    Taskset(Taskset),
}

/// A taskset, with its parameters and rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Taskset {
    /// The name of a `[[reward]]` with the component, or its path.
    pub plugin: String,
    /// The parameters of the component's initialisation.
    pub params: Map<String, Value>,
    /// Rows that are drawn; all by default.
    pub rows: Option<u64>,
    /// The seed that its rows follow from; the run's by default.
    pub seed: Option<u64>,
    written: String,
}

impl Dataset {
    /// The taskset, if the dataset is one.
    pub fn taskset(&self) -> Option<&Taskset> {
        match self {
            Self::File(_) => None,
            Self::Taskset(taskset) => Some(taskset),
        }
    }

    /// As it is written, for messages.
    pub fn path(&self) -> &Path {
        match self {
            Self::File(path) => path,
            Self::Taskset(taskset) => Path::new(&taskset.written),
        }
    }
}

impl Taskset {
    fn parse(written: &str) -> Result<Self, String> {
        let rest = written.strip_prefix(PLUGIN).unwrap_or(written);
        let (plugin, query) = rest.split_once('?').unwrap_or((rest, ""));
        if plugin.is_empty() {
            return Err(format!("{written:?} names no plugin; write \"plugin:NAME?key=value\""));
        }
        let mut taskset =
            Self { plugin: plugin.into(), params: Map::new(), rows: None, seed: None, written: written.into() };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let Some((key, text)) = pair.split_once('=') else {
                return Err(format!("{written:?}: {pair:?} is not key=value"));
            };
            let number =
                || text.parse().map_err(|_| format!("{written:?}: {key} must be a whole number, not {text:?}"));
            match key {
                "rows" => taskset.rows = Some(number()?),
                "seed" => taskset.seed = Some(number()?),
                // JSON; a bare word is a string.
                _ => {
                    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.into()));
                    taskset.params.insert(key.into(), value);
                }
            }
        }
        Ok(taskset)
    }
}

impl FromStr for Dataset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.starts_with(PLUGIN) {
            true => Taskset::parse(text).map(Self::Taskset),
            false => Ok(Self::File(text.into())),
        }
    }
}

impl TryFrom<String> for Dataset {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Dataset> for String {
    fn from(dataset: Dataset) -> Self {
        dataset.to_string()
    }
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

impl Dataset {
    pub(super) fn validate(&self, key: &str, table: &str) -> Result<(), ConfigError> {
        match self.taskset() {
            Some(Taskset { rows: Some(0), .. }) => {
                Err(ConfigError::invalid(format!("{table}.path"), format!("{key}: rows must be more than 0, not 0")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_taskset_is_written_like_an_address() {
        let dataset: Dataset = "plugin:gym?name=chain_sum&size=10&deep={\"a\":1}&seed=3&rows=500".parse().unwrap();
        let taskset = dataset.taskset().unwrap();
        assert_eq!(taskset.plugin, "gym");
        assert_eq!(Value::Object(taskset.params.clone()), json!({"name": "chain_sum", "size": 10, "deep": {"a": 1}}));
        assert_eq!((taskset.seed, taskset.rows), (Some(3), Some(500)));
        assert_eq!(dataset.to_string().parse::<Dataset>().unwrap(), dataset);
        assert_eq!("a/b.jsonl".parse::<Dataset>().unwrap(), Dataset::File("a/b.jsonl".into()));
    }

    #[test]
    fn what_is_wrong_is_shown() {
        let error = |text: &str| text.parse::<Dataset>().unwrap_err();
        assert!(error("plugin:").contains("names no plugin"));
        assert!(error("plugin:a?b").contains("\"b\" is not key=value"));
        assert!(error("plugin:a?rows=many").contains("rows must be a whole number, not \"many\""));
    }
}
