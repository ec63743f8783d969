//! `--set key=value`: a value of the configuration, changed for one run.

use gavel_runs::{find_named, table_names};
use toml::{Table, Value};

/// The lists whose tables are selected by their names, each with a setting of a table.
const NAMED: [(&str, &str); 3] = [("agent", "max_turns=4"), ("reward", "weight=0.5"), ("tool", "retries=2")];

/// The list that may also be a single table, which need not be written.
const OR_TABLE: &str = "agent";

const HINT: &str = "\nhint: write --set table.key=value, such as --set train.steps=100";

/// Sets `a.b.c=value` in a table. The value is TOML, or else a string. A table of a list is selected by its name:
/// `reward.format.weight=0.2`.
pub(super) fn set(table: &mut Table, setting: &str) -> Result<(), String> {
    let (key, text) = setting.split_once('=').ok_or_else(|| format!("there is no `=`{HINT}"))?;
    let value = format!("value = {text}")
        .parse::<Table>()
        .ok()
        .and_then(|mut parsed| parsed.remove("value"))
        .unwrap_or_else(|| Value::String(text.to_owned()));
    if key.split('.').any(str::is_empty) {
        return Err(format!("{key:?} is not a key{HINT}"));
    }
    set_in_table(table, "", key, value)
}

/// A setting of a table in the list `path`; `None` if its tables are not selected by their names.
fn example(path: &str) -> Option<&'static str> {
    NAMED.iter().find(|(list, _)| *list == path).map(|(_, setting)| *setting)
}

/// Sets `key` in `table`, which `path` leads to.
fn set_in_table(table: &mut Table, path: &str, key: &str, value: Value) -> Result<(), String> {
    let Some((first, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return Ok(());
    };
    let path = if path.is_empty() { first.to_owned() } else { format!("{path}.{first}") };
    if example(&path).is_some() && path != OR_TABLE && !table.contains_key(first) {
        return Err(format!("the configuration has no [[{path}]]"));
    }
    match table.entry(first).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(table) => set_in_table(table, &path, rest, value),
        Value::Array(list) => set_in_list(list, &path, rest, value),
        _ => Err(format!("{path} is a value, not a table")),
    }
}

/// Sets `key`, which begins with the name of a table, in `list`, which `path` leads to.
fn set_in_list(list: &mut [Value], path: &str, key: &str, value: Value) -> Result<(), String> {
    let Some(names) = table_names(list) else {
        if list.is_empty() {
            return Err(format!("{path} is empty"));
        }
        return Err(format!("{path} is a list; change it in the file"));
    };
    if names.contains(&key) {
        let hint = example(path).map(|setting| format!("\nhint: set a key of it, such as {path}.{key}.{setting}"));
        return Err(format!("{path}.{key} is a table{}", hint.unwrap_or_default()));
    }
    let known = names.join(", ");
    match find_named(list, key) {
        Some((table, rest)) => {
            let name = &key[..key.len() - rest.len() - 1];
            set_in_table(table, &format!("{path}.{name}"), rest, value)
        }
        None => {
            let name = key.split('.').next().unwrap_or(key);
            Err(format!("no [[{path}]] is named `{name}`; there are: {known}"))
        }
    }
}
