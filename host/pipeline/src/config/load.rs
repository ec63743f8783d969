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
        let what = expected(error.into_inner().message());
        // A value below a setting's is the setting's, too.
        let is_at_fault = |setting: &&String| {
            let name = setting.split_once('=').map_or("", |(name, _)| name);
            let is_field =
                name.strip_prefix(&format!("{key}.")).is_some_and(|rest| what.contains(&format!("field `{rest}`")));
            is_field || key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        match settings.iter().rfind(is_at_fault) {
            Some(setting) if setting.starts_with(&format!("{key}=")) => {
                ConfigError::SetValue { setting: setting.clone(), what }
            }
            Some(setting) => ConfigError::SetValue { setting: setting.clone(), what: format!("{key}: {what}") },
            None => ConfigError::Key { path: path.to_owned(), key, what },
        }
    })?;
    config.train.complete(config.schedule.max_staleness);
    config.validate()?;
    config.find_on_hub()?;
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

/// What serde says of a value, with words in place of the types of a program.
fn expected(what: &str) -> String {
    const TYPES: [(&str, &str); 9] = [
        ("u64", "a whole number of at least 0"),
        ("usize", "a whole number of at least 0"),
        ("u32", "a whole number of at least 0"),
        ("i64", "a whole number"),
        ("f64", "a number"),
        ("f32", "a number"),
        ("a boolean", "true or false"),
        ("a duration", "a duration, such as \"500ms\", \"10s\" or \"2m\""),
        ("parsable string", "a size, such as \"64MiB\" or \"8GiB\""),
    ];
    let Some((found, wanted)) = what.rsplit_once(", expected ") else { return what.to_owned() };
    match TYPES.iter().find(|(name, _)| *name == wanted) {
        Some((_, words)) => format!("{found}, expected {words}"),
        None => what.to_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_another_type_is_told_in_words() {
        for (what, words) in [
            (
                "invalid type: string \"abc\", expected u64",
                "invalid type: string \"abc\", expected a whole number of at least 0",
            ),
            (
                "invalid type: integer `5`, expected a duration",
                "invalid type: integer `5`, expected a duration, such as \"500ms\", \"10s\" or \"2m\"",
            ),
            ("unknown field `setps`, expected `steps`", "unknown field `setps`, expected `steps`"),
        ] {
            assert_eq!(expected(what), words);
        }
    }
}
