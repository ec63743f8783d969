//! Reading a configuration: the file, then what `--set` changes in it.

use super::error::ConfigError;
use super::run_config::Config;
use super::train_table::TrainTable;
use serde::de::DeserializeOwned;
use std::path::Path;
use toml::{Table, Value};

/// Reads and checks the configuration in `path` with the settings
/// (`key=value`) laid over it.
pub fn load<T: TrainTable + DeserializeOwned>(path: &Path, settings: &[String]) -> Result<Config<T>, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    let mut table: Table = text
        .parse()
        .map_err(|error: toml::de::Error| ConfigError::Syntax { path: path.to_owned(), what: error.to_string() })?;
    for setting in settings {
        set(&mut table, setting).map_err(|what| ConfigError::Set { setting: setting.clone(), what })?;
    }
    if !T::LEARNS {
        fill_in(&mut table);
    }
    let mut config: Config<T> = serde_path_to_error::deserialize(table).map_err(|error| {
        let key = error.path().to_string();
        let what = error.into_inner().message().to_owned();
        ConfigError::Key { path: path.to_owned(), key, what }
    })?;
    config.train.complete(config.schedule.max_staleness);
    config.validate()?;
    config.find_in_hub_cache()?;
    Ok(config)
}

/// Fills in what a command need not be told that does not learn.
fn fill_in(table: &mut Table) {
    for name in ["model", "data", "train"] {
        table.entry(name).or_insert_with(|| Value::Table(Table::new()));
    }
    if let Some(Value::Table(data)) = table.get_mut("data") {
        data.entry("train").or_insert_with(|| Value::Array(Vec::new()));
    }
}

/// Lays `a.b.c=value` over a table; the value is TOML, or else a string.
fn set(table: &mut Table, setting: &str) -> Result<(), String> {
    let (key, text) = setting.split_once('=').ok_or("there is no `=`")?;
    let value = format!("value = {text}")
        .parse::<Table>()
        .ok()
        .and_then(|mut parsed| parsed.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()));
    let keys: Vec<&str> = key.split('.').collect();
    let Some((last, path)) = keys.split_last() else { return Err("there is no key".into()) };
    if keys.iter().any(|key| key.is_empty()) {
        return Err(format!("{key:?} is no key"));
    }
    let mut at = table;
    for (depth, part) in path.iter().enumerate() {
        let reached = path[..=depth].join(".");
        let next = at.entry(*part).or_insert_with(|| Value::Table(Table::new()));
        at = match next {
            Value::Table(table) => table,
            Value::Array(_) => return Err(format!("{reached} is a list; change it in the file")),
            _ => return Err(format!("{reached} is a value, not a table")),
        };
    }
    at.insert((*last).to_owned(), value);
    Ok(())
}
