//! `[plugin.NAME]`: a component that takes the place of a built-in part of the run.

use crate::error::ConfigError;
use gavel_plugin::{Grants, LimitsTable, PluginSpec};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// `[plugin.NAME]`, which `"plugin:NAME"` names. It sees what it is called with, and nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
