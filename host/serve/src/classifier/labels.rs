//! The names of a classifier's labels.

use serde_json::Value;
use std::path::Path;

/// The names of `count` labels, from `id2label` in the `config.json` of a checkpoint's folder. A label that has no name
/// there is called `LABEL_0` and so on.
pub fn label_names(folder: &Path, count: usize) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("config.json")).unwrap_or_default();
    let config: Value = serde_json::from_str(&text).unwrap_or_default();
    let name = |label: usize| {
        let named = config["id2label"][label.to_string()].as_str();
        named.map_or_else(|| format!("LABEL_{label}"), str::to_owned)
    };
    (0..count).map(name).collect()
}
