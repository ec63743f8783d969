//! `config.toml`: the configuration of a run, with every default.

use crate::error::{Result, RunError};
use crate::layout;
use gavel_data::files::{read_regular_text, write_whole};
use std::path::Path;
use toml::{Table, Value};

/// The most bytes of a configuration.
const MOST_BYTES: u64 = 16 << 20;

/// The configuration of `run`.
///
/// # Errors
/// It is missing or cannot be parsed.
pub fn read_config(run: &Path) -> Result<Table> {
    let path = layout::config(run);
    let text = read_regular_text(&path, MOST_BYTES).map_err(RunError::io("read", &path))?;
    parse(&path, &text)
}

/// Writes the configuration of `run`.
pub(crate) fn write(run: &Path, text: &str) -> Result<()> {
    let path = layout::config(run);
    write_whole(&path, text.as_bytes()).map_err(RunError::io("write", &path))
}

/// Checks that `run` has the configuration `text`, except for the keys
/// `may_differ` and those in the tables `may_differ`. `complete` adds the
/// defaults of keys that are newer than the run.
///
/// # Errors
/// It has another configuration, or one that cannot be parsed.
pub(crate) fn check(run: &Path, text: &str, may_differ: &[&str], complete: impl FnOnce(Table) -> Table) -> Result<()> {
    let old = complete(read_config(run)?);
    let new = parse(&layout::config(run), text)?;
    let mut keys = Vec::new();
    differences(&Value::Table(old), &Value::Table(new), "", &mut keys);
    keys.retain(|key| !may_differ.iter().any(|free| is_within(key, free)));
    match keys.is_empty() {
        true => Ok(()),
        false => Err(RunError::OtherConfig { run: run.to_owned(), keys }),
    }
}

fn parse(path: &Path, text: &str) -> Result<Table> {
    text.parse().map_err(|error: toml::de::Error| RunError::damaged(path, error.message()))
}

/// Whether a key is `table` itself or in it. In `table`, `*` is the name of any table.
pub fn is_within(key: &str, table: &str) -> bool {
    if let Some((first, last)) = table.split_once("*") {
        return key.strip_prefix(first).is_some_and(|rest| rest.ends_with(last));
    }
    key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The keys whose values differ.
fn differences(old: &Value, new: &Value, key: &str, changed: &mut Vec<String>) {
    match (old, new) {
        (Value::Table(old), Value::Table(new)) => {
            let mut keys: Vec<_> = old.keys().chain(new.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for name in keys {
                let path = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                match (old.get(name), new.get(name)) {
                    (Some(old), Some(new)) => differences(old, new, &path, changed),
                    _ => changed.push(path),
                }
            }
        }
        _ if old != new => changed.push(key.to_owned()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_the_keys() {
        let parse = |text: &str| Value::Table(text.parse().unwrap());
        let mut changed = Vec::new();
        let old = parse("seed = 1\n[train]\nsteps = 3\nloss = {clip_low = 0.2}");
        let new = parse("seed = 1\n[train]\nsteps = 4\nloss = {clip_low = 0.1}\n[log]\nname = 'x'");
        differences(&old, &new, "", &mut changed);
        assert_eq!(changed, ["log", "train.loss.clip_low", "train.steps"]);
    }

    #[test]
    fn a_key_may_differ_in_every_table_of_a_kind() {
        assert!(is_within("log.name", "log") && !is_within("logs", "log"));
        let is_free = |key: &str| is_within(key, "reward_model.*.ranks");
        assert!(is_free("reward_model.quality.ranks") && is_free("reward_model.v1.5.ranks"));
        assert!(!is_free("reward_model.quality.path") && !is_free("reward_model.ranks") && !is_free("ranks"));
    }
}
