//! Checks and conversions that several tables share.

use crate::error::ConfigError;
use bytesize::ByteSize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A size in bytes, as far as the machine can address it.
pub(super) fn bytes(size: ByteSize) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

pub(super) fn at_least_one(field: &str, value: usize) -> Result<(), ConfigError> {
    if value == 0 { Err(ConfigError::value(field, "at least 1", 0)) } else { Ok(()) }
}

/// The most threads of a kind: more than a machine has cores.
const MOST_THREADS: usize = 4096;

pub(super) fn check_threads(field: &str, count: usize) -> Result<(), ConfigError> {
    match count {
        1..=MOST_THREADS => Ok(()),
        _ => Err(ConfigError::value(field, &format!("from 1 to {MOST_THREADS}"), count)),
    }
}

/// Refuses a number that JSON cannot have, `nan` or `inf`, which TOML has. Read as JSON it is null, which TOML has not.
pub(super) fn check_numbers(field: &str, json: &Map<String, Value>) -> Result<(), ConfigError> {
    fn check(field: &str, value: &Value) -> Result<(), ConfigError> {
        match value {
            Value::Null => {
                Err(ConfigError::invalid(field, format!("{field} must be a finite number, as JSON has them")))
            }
            Value::Object(fields) => check_numbers(field, fields),
            Value::Array(items) => items.iter().try_for_each(|item| check(field, item)),
            _ => Ok(()),
        }
    }
    json.iter().try_for_each(|(name, value)| check(&format!("{field}.{name}"), value))
}

/// Refuses a name that cannot be a part of the names of metrics.
pub(super) fn check_word(field: &str, name: &str) -> Result<(), ConfigError> {
    let path_like = |c: char| c == '/' || c.is_whitespace() || c.is_control();
    if name.is_empty() || name.contains(path_like) {
        return Err(ConfigError::value(field, "a word without `/` (it names metrics)", name));
    }
    Ok(())
}

/// Refuses two `[[what]]` tables of the same name.
pub(super) fn check_distinct<'a>(what: &str, names: impl IntoIterator<Item = &'a str>) -> Result<(), ConfigError> {
    let mut seen = BTreeSet::new();
    match names.into_iter().find(|name| !seen.insert(*name)) {
        None => Ok(()),
        Some(name) => Err(ConfigError::invalid(
            format!("{what}.{name}"),
            format!("two {what}s are named `{name}`\nhint: give each [[{what}]] another name"),
        )),
    }
}
