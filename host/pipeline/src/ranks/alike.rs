//! Whether all ranks would compute the same.

use super::Ranks;
use crate::error::{PipelineError, Result};
use gavel_scoring::recording::PluginSet;
use gavel_torch::peers::Rendezvous;
use serde::Serialize;
use std::fs::File;
use toml::{Table, Value};

/// Refuses ranks that run another gavel or another configuration.
///
/// # Errors
/// A rank differs from rank 0; it is named, and what differs.
pub(crate) fn check_configuration(ranks: &Ranks, config: &str) -> Result<()> {
    if !ranks.are_several() {
        return Ok(());
    }
    let mut terms = vec![("gavel".to_owned(), executable())];
    let wrong =
        |error: toml::de::Error| PipelineError::Stopped(format!("the configuration cannot be compared: {error}"));
    let config: Table = config.parse().map_err(wrong)?;
    check_device(&config, Rendezvous::local_size())?;
    // How much of its machine a rank may use is its own matter.
    for (key, value) in config.iter().filter(|(key, _)| *key != "resources") {
        flatten(key, value, &mut terms);
    }
    agree(ranks, &terms)
}

/// Refuses ranks that have loaded other plugins.
///
/// # Errors
/// As [`check_configuration`].
pub(crate) fn check_plugins(ranks: &Ranks, plugins: &PluginSet) -> Result<()> {
    let mut terms: Vec<(String, String)> =
        plugins.plugins.iter().map(|plugin| (format!("plugin {}", plugin.name), hash(plugin))).collect();
    terms.push(("agents, tools and plugins".to_owned(), hash(&plugins.actors)));
    terms.push(("programs".to_owned(), hash(&plugins.programs)));
    agree(ranks, &terms)
}

fn agree(ranks: &Ranks, terms: &[(String, String)]) -> Result<()> {
    let terms: Vec<(&str, &str)> = terms.iter().map(|(what, value)| (what.as_str(), value.as_str())).collect();
    Ok(ranks.peers().agree(&terms)?)
}

/// Refuses a GPU by its number where several ranks of a machine would share it.
fn check_device(config: &Table, ranks: usize) -> Result<()> {
    match config.get("model").and_then(|model| model.get("device")).and_then(Value::as_str) {
        Some(device) if device.starts_with("cuda:") && ranks > 1 => Err(PipelineError::Stopped(format!(
            "model.device is {device:?}, but {ranks} ranks of this machine would share that GPU\nhint: \"cuda\" gives each rank its own"
        ))),
        _ => Ok(()),
    }
}

/// The keys of a configuration below `key`, with their values.
fn flatten(key: &str, value: &Value, terms: &mut Vec<(String, String)>) {
    match value {
        Value::Table(table) => {
            table.iter().for_each(|(name, value)| flatten(&format!("{key}.{name}"), value, terms));
        }
        value => terms.push((key.to_owned(), value.to_string())),
    }
}

fn hash(value: &impl Serialize) -> String {
    blake3::hash(&serde_json::to_vec(value).unwrap_or_default()).to_hex()[..16].to_owned()
}

/// The version of this program, and the hash of its file.
fn executable() -> String {
    let mut hasher = blake3::Hasher::new();
    let file = std::env::current_exe().and_then(File::open);
    let hash = match file.map(|file| hasher.update_reader(file).map(|hasher| hasher.finalize())) {
        Ok(Ok(hash)) => hash.to_hex()[..16].to_owned(),
        _ => "unknown".to_owned(),
    };
    format!("{} ({hash})", env!("CARGO_PKG_VERSION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_a_machine_do_not_share_a_gpu() {
        let check = |device: &str, ranks| check_device(&format!("model.device = {device:?}").parse().unwrap(), ranks);
        for (device, ranks) in [("cuda", 8), ("auto", 8), ("cpu", 8), ("cuda:3", 1)] {
            assert!(check(device, ranks).is_ok(), "{device}");
        }
        let error = check("cuda:3", 8).unwrap_err().to_string();
        assert!(error.starts_with("model.device is \"cuda:3\", but 8 ranks") && error.contains("hint: "), "{error}");
    }
}
