//! Reading a configuration: the file and what it includes, then what `--set` changes.

use crate::error::ConfigError;
use crate::place::Place;
use crate::run_config::Config;
use crate::set::set;
use crate::tables::RolloutTable;
use crate::train_table::TrainTable;
use crate::unknown_key;
use gavel_data::Shown;
use gavel_runs::{ConfigFile, table_names};
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;
use std::path::Path;
use toml::{Table, Value};

/// Reads and checks the configuration in `path`, with the files that it includes and the settings (`key=value`) that
/// change it.
pub fn load<T: TrainTable + DeserializeOwned>(path: &Path, settings: &[String]) -> Result<Config<T>, ConfigError> {
    let mut file = ConfigFile::read(path)?;
    for setting in settings {
        set(&mut file.table, setting).map_err(|what| ConfigError::Set { setting: setting.clone(), what })?;
    }
    if !T::LEARNS {
        fill_in(&mut file.table);
    }
    let is_validated = file.table.get("data").and_then(|data| data.get("validation")).is_some();
    // A model that answers no prompts draws nothing.
    if T::WITHOUT_ANSWERS.is_some() || (T::LEARNS && !T::DRAWS && !is_validated) {
        file.table.entry("rollout").or_insert_with(|| Value::Table(RolloutTable::unused()));
    }
    let mut config: Config<T> = serde_path_to_error::deserialize(file.table.clone()).map_err(|error| {
        let key = written_key(&file.table, error.path());
        // Both may have text of the file, in which a line must not pass for a hint.
        let shown = Shown(&key).to_string();
        let what = Shown(expected(error.into_inner().message())).to_string();
        let is_unknown =
            shown.rsplit('.').next().is_some_and(|last| what.starts_with(&format!("unknown field `{last}`")));
        let what = format!("{what}{}", unknown_key::hint(&what, &key, &file.table));
        // A setting is also at fault for values inside its own, and for the unknown table that it is in.
        let is_at_fault = |setting: &&String| {
            let name = setting.split_once('=').map_or("", |(name, _)| name);
            if is_unknown && name.strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with('.')) {
                return true;
            }
            let is_field =
                name.strip_prefix(&format!("{key}.")).is_some_and(|rest| what.contains(&format!("field `{rest}`")));
            is_field || key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        match settings.iter().rfind(is_at_fault) {
            Some(setting) if setting.starts_with(&format!("{key}=")) => {
                ConfigError::Set { setting: setting.clone(), what }
            }
            Some(setting) => ConfigError::Set { setting: setting.clone(), what: format!("{shown}: {what}") },
            None => {
                // An unknown field may be in another file than the rest of its table.
                let field = what.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
                let place = field.filter(|_| !is_unknown).map_or(key.clone(), |field| format!("{key}.{field}"));
                ConfigError::Key { path: file.file_of(&place).to_owned(), line: file.line_of(&place), key: shown, what }
            }
        }
    })?;
    config.set_keys = settings.iter().filter_map(|setting| Some(setting.split_once('=')?.0.to_owned())).collect();
    config.complete();
    let checked = config.validate().and_then(|()| config.find_on_hub());
    checked.map_err(|error| error.placed(|key| Place::of(key, &file, settings)))?;
    Ok(config)
}

/// Adds the tables that a command that does not learn may lack.
fn fill_in(table: &mut Table) {
    for name in ["model", "data", "train"] {
        table.entry(name).or_insert_with(|| Value::Table(Table::new()));
    }
    if let Some(Value::Table(data)) = table.get_mut("data") {
        data.entry("train").or_insert_with(|| Value::Array(Vec::new()));
    }
}

/// The key at `path` in `table` as `--set` writes it: a table of a list by its name, `reward.format.weight`.
fn written_key(table: &Table, path: &serde_path_to_error::Path) -> String {
    let root = Value::Table(table.clone());
    let (mut key, mut at) = (String::new(), Some(&root));
    for segment in path {
        let place = match segment {
            Segment::Map { key: name } => {
                at = at.and_then(|value| value.get(name));
                format!(".{name}")
            }
            Segment::Seq { index } => {
                let names = at.and_then(Value::as_array).and_then(|list| table_names(list));
                at = at.and_then(|value| value.get(*index));
                names.and_then(|names| Some(format!(".{}", names.get(*index)?))).unwrap_or(format!("[{index}]"))
            }
            Segment::Enum { variant } => format!(".{variant}"),
            Segment::Unknown => ".?".to_owned(),
        };
        key += &place;
    }
    key.strip_prefix('.').unwrap_or_default().to_owned()
}

/// serde's message about a value, with words in place of Rust's types.
fn expected(what: &str) -> String {
    const TYPES: [(&str, &str); 15] = [
        ("u64", "a whole number of at least 0"),
        ("usize", "a whole number of at least 0"),
        ("u32", "a whole number of at least 0"),
        ("i64", "a whole number"),
        ("f64", "a number"),
        ("f32", "a number"),
        ("a boolean", "true or false"),
        ("a duration", "a duration, such as \"500ms\", \"10s\" or \"2m\""),
        ("a nonzero u32", "a whole number of at least 1"),
        ("a nonzero usize", "a whole number of at least 1"),
        ("a sequence", "a list"),
        ("a map", "a table"),
        ("an array of length 2", "a list of 2 values"),
        ("string only", "a text or a table"),
        ("parsable string", "a size, such as \"64MiB\" or \"8GiB\""),
    ];
    let Some((found, wanted)) = what.rsplit_once(", expected ") else { return what.to_owned() };
    // toml reports any value that cannot be a variant in this way.
    let found = if found == "invalid type: unit variant" { "invalid type" } else { found };
    match TYPES.iter().find(|(name, _)| *name == wanted) {
        Some((_, words)) => format!("{found}, expected {words}"),
        None if wanted.starts_with("struct ") => format!("{found}, expected a table"),
        None => what.to_owned(),
    }
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
            ("invalid type: integer `8`, expected struct LoraConfig", "invalid type: integer `8`, expected a table"),
            ("invalid type: integer `3`, expected a sequence", "invalid type: integer `3`, expected a list"),
            (
                "invalid value: integer `0`, expected a nonzero u32",
                "invalid value: integer `0`, expected a whole number of at least 1",
            ),
            ("unknown field `setps`, expected `steps`", "unknown field `setps`, expected `steps`"),
        ] {
            assert_eq!(expected(what), words);
        }
    }
}
