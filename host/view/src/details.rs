//! A run's configuration, plugins, checkpoints, and its differences to another run.

use crate::error::Result;
use crate::run::ViewedRun;
use gavel_runs::{Details, differences, read_plugin_sets};
use serde::Serialize;
use serde_json::{Value, json};

/// A run in its details.
#[derive(Serialize)]
pub(crate) struct ShownDetails {
    #[serde(flatten)]
    details: Details,
    /// The configuration as TOML.
    config_text: String,
    /// The plugins, and since which step.
    plugin_sets: Vec<Value>,
    /// Why they cannot be read.
    plugin_error: Option<String>,
}

pub(crate) fn details(run: &ViewedRun) -> Result<ShownDetails> {
    let details = Details::read(&run.path)?;
    let config_text = toml::to_string_pretty(&details.config).unwrap_or_default();
    let (plugin_sets, plugin_error) = match read_plugin_sets::<Value>(&run.path) {
        Ok(sets) => (sets, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    Ok(ShownDetails { details, config_text, plugin_sets, plugin_error })
}

/// The keys whose values differ, and the last metrics side by side, as `gavel runs diff --json` has them.
pub(crate) fn difference(one: &ViewedRun, other: &ViewedRun) -> Result<Value> {
    let (one, other) = (Details::read(&one.path)?, Details::read(&other.path)?);
    let keys = differences(&one.config, &other.config);
    let keys: Vec<Value> = keys.iter().map(|(key, a, b)| json!({"key": key, "a": a, "b": b})).collect();
    let (a, b) = (one.metrics.as_json(), other.metrics.as_json());
    let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
    let metrics: Vec<Value> = names.map(|name| json!({"name": name, "a": a.get(name), "b": b.get(name)})).collect();
    Ok(json!({"configuration": keys, "metrics": metrics}))
}
