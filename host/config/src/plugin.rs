//! `[plugin.NAME]`: a component that takes the place of a built-in part of the run, and the keys that name it.

use crate::error::ConfigError;
use gavel_plugin::{Grants, LimitsTable, PluginSpec};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// `[plugin.NAME]`, which `"plugin:NAME"` names. It sees what it is called with, and nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PluginTable {
    /// The component.
    pub path: PathBuf,
    /// The parameters of its initialisation.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub params: serde_json::Map<String, serde_json::Value>,
    /// What its calls may use, where it differs from `[limits]`.
    #[serde(default)]
    pub limits: LimitsTable,
}

/// What the name of a plugin begins with, where a key takes one.
const PREFIX: &str = "plugin:";

/// `"plugin:NAME"`: the component of `[plugin.NAME]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline, extend("pattern" = "^plugin:."))]
pub struct PluginName(String);

impl PluginName {
    /// `NAME`
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PluginName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(PREFIX).filter(|name| !name.is_empty()) {
            Some(name) => Ok(Self(name.to_owned())),
            None => Err(format!("{text:?} is not \"plugin:NAME\", which names the table [plugin.NAME]")),
        }
    }
}

impl TryFrom<String> for PluginName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<PluginName> for String {
    fn from(name: PluginName) -> Self {
        name.to_string()
    }
}

/// As it is written.
impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

impl PluginTable {
    pub(super) fn validate(&self, name: &str) -> Result<(), ConfigError> {
        Ok(self.limits.validate(&format!("plugin.{name}.limits"))?)
    }

    /// The component; `limits` are the limits of all plugins.
    pub fn plugin(&self, name: &str, limits: &LimitsTable) -> PluginSpec {
        PluginSpec {
            name: name.to_owned(),
            path: self.path.clone(),
            params: self.params.clone(),
            limits: self.limits.over(limits),
            grants: Grants::default(),
            reuse: None,
        }
    }
}
