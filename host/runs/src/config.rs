//! `config.toml`: the configuration of a run, with every default. Its first lines are comments: how the run was started,
//! and each resume.

use crate::error::{Result, RunError};
use crate::holder::Holder;
use crate::layout;
use gavel_data::Shown;
use gavel_data::files::{read_regular_text, write_whole};
use std::io::ErrorKind;
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

/// How `run` was started, and each resume: the version, the machine, the time and the command line.
///
/// # Errors
/// The configuration is missing or cannot be read.
pub(crate) fn starts(run: &Path) -> Result<Vec<String>> {
    let path = layout::config(run);
    let text = read_regular_text(&path, MOST_BYTES).map_err(RunError::io("read", &path))?;
    let comments = text.lines().map_while(|line| line.strip_prefix('#'));
    Ok(comments.map(|line| line.trim().to_owned()).collect())
}

/// Writes the configuration of `run`, which the command line `command` has started or resumed.
pub(crate) fn write(run: &Path, command: Option<&str>, text: &str) -> Result<()> {
    let path = layout::config(run);
    let written = match read_regular_text(&path, MOST_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.map_err(RunError::io("read", &path))?,
    };
    let before: String = written.split_inclusive('\n').take_while(|line| line.starts_with('#')).collect();
    let whole = format!("{before}{}{text}", started(&Holder::this_process(), command));
    write_whole(&path, whole.as_bytes()).map_err(RunError::io("write", &path))
}

/// A comment with the version, the machine, the time and the command line of a start.
fn started(process: &Holder, command: Option<&str>) -> String {
    let mut line = format!("gavel {}", env!("CARGO_PKG_VERSION"));
    let parts = [(" on ", process.host.as_deref()), (" at ", process.since.as_deref()), (": ", command)];
    line.extend(parts.into_iter().filter_map(|(before, part)| part.map(|part| format!("{before}{part}"))));
    // A line break in an argument must not end the comment.
    format!("# {}\n", Shown(line))
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

/// The keys whose values differ. A table that only one side has differs in each of its keys.
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
                    (Some(Value::Table(only)), None) | (None, Some(Value::Table(only))) if !only.is_empty() => {
                        differences(&Value::Table(only.clone()), &Value::Table(Table::new()), &path, changed);
                    }
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
        let new = parse("seed = 1\n[train]\nsteps = 4\nloss = {clip_low = 0.1}\n[log]\nname = 'x'\n[empty]");
        differences(&old, &new, "", &mut changed);
        let keys = ["empty", "log.name", "train.loss.clip_low", "train.steps"];
        assert_eq!(changed, keys);
        changed.clear();
        differences(&new, &old, "", &mut changed);
        assert_eq!(changed, keys);
    }

    #[test]
    fn each_start_is_a_comment_before_the_configuration() {
        let run = tempfile::tempdir().unwrap();
        let text = "seed = 1\n# A comment.\n[train]\nsteps = 3\n";
        write(run.path(), Some("gavel train -c 'a\nb.toml'"), text).unwrap();
        write(run.path(), None, text).unwrap();
        let written = std::fs::read_to_string(layout::config(run.path())).unwrap();
        let (first, rest) = written.split_once('\n').unwrap();
        let version = concat!("# gavel ", env!("CARGO_PKG_VERSION"), " ");
        assert!(first.starts_with(version) && first.ends_with(": gavel train -c 'a\\nb.toml'"), "{first}");
        let (second, rest) = rest.split_once('\n').unwrap();
        assert!(second.starts_with(version) && !second.contains("train"), "{second}");
        assert_eq!(rest, text);
        assert_eq!(read_config(run.path()).unwrap(), text.parse().unwrap());
    }

    #[test]
    fn a_start_is_one_line() {
        let process = Holder { host: Some("gpu-7".into()), since: Some("2026-01-02T03:04:05Z".into()), pid: Some(1) };
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!("# gavel {version} on gpu-7 at 2026-01-02T03:04:05Z: gavel sft\n");
        assert_eq!(started(&process, Some("gavel sft")), expected);
        assert_eq!(started(&Holder::default(), None), format!("# gavel {version}\n"));
    }

    #[test]
    fn a_key_may_differ_in_every_table_of_a_kind() {
        assert!(is_within("log.name", "log") && !is_within("logs", "log"));
        let is_free = |key: &str| is_within(key, "reward_model.*.ranks");
        assert!(is_free("reward_model.quality.ranks") && is_free("reward_model.v1.5.ranks"));
        assert!(!is_free("reward_model.quality.path") && !is_free("reward_model.ranks") && !is_free("ranks"));
    }
}
