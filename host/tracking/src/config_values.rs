//! The configuration of a run as trackers show it: without values that look like keys.

use gavel_endpoint::names_a_key;
use serde_json::{Map, Value};

/// Stands for a value that may be a key.
const HIDDEN: &str = "…";

/// The configuration as JSON, with `…` in place of texts that may be keys.
pub(crate) fn config_values(config: &toml::Table) -> Map<String, Value> {
    config.iter().map(|(name, value)| (name.clone(), shown(name, value))).collect()
}

fn shown(name: &str, value: &toml::Value) -> Value {
    match value {
        toml::Value::String(_) if names_a_key(name) && !name.ends_with("_env") => HIDDEN.into(),
        toml::Value::String(text) if has_key(text) => HIDDEN.into(),
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        // JSON has no number that is not finite.
        toml::Value::Float(number) => {
            serde_json::Number::from_f64(*number).map_or_else(|| number.to_string().into(), Value::Number)
        }
        toml::Value::Boolean(is) => (*is).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.iter().map(|item| shown(name, item)).collect(),
        toml::Value::Table(table) => {
            Value::Object(
                table
                    .iter()
                    .map(|(inner, value)| {
                        // What stands in a table of keys is one.
                        let of_keys =
                            matches!(name.to_ascii_lowercase().as_str(), "headers" | "env" | "environment" | "secrets");
                        let shown = if of_keys && value.is_str() { HIDDEN.into() } else { shown(inner, value) };
                        (inner.clone(), shown)
                    })
                    .collect(),
            )
        }
    }
}

/// Whether an address has a key in it.
fn has_key(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.contains('@')
        || rest.split_once('?').is_some_and(|(_, query)| {
            query.split('&').any(|part| names_a_key(part.split('=').next().unwrap_or_default()))
        })
}

/// The same values, each with its whole name: `train.loss.clip_low`.
pub(crate) fn flat(values: &Map<String, Value>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, value) in values {
        add(name, value, &mut found);
    }
    found
}

fn add(name: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(table) if !table.is_empty() => {
            table.iter().for_each(|(inner, value)| add(&format!("{name}.{inner}"), value, found));
        }
        // Tables with names, such as [[reward]], by their names.
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (number, item) in items.iter().enumerate() {
                let named = item.get("name").and_then(Value::as_str).map_or_else(|| number.to_string(), str::to_owned);
                add(&format!("{name}.{named}"), item, found);
            }
        }
        Value::String(text) => found.push((name.to_owned(), text.clone())),
        other => found.push((name.to_owned(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_shown() {
        let config: toml::Table = r#"
            seed = 1
            train = { steps = 3, learning_rate = 1e-3, optimizer = { max_grad_norm = inf } }
            rollout = { max_tokens = 64, stop_token_ids = [1, 2] }
            chat.judge = { base_url = "https://me:s3cret@host/v1", api_key_env = "JUDGE", options = { api_key = "s3cret" } }
            tool = [{ name = "t", env = { PLAIN = "s3cret" }, url = "https://host/?token=s3cret" }]
            reward = [{ name = "exact", path = "a.wasm", params = { Authorization = "s3cret" } }]
        "#
        .parse()
        .unwrap();
        let values = flat(&config_values(&config));
        assert!(values.iter().all(|(_, value)| !value.contains("s3cret")), "{values:?}");
        for (name, value) in [
            ("seed", "1"),
            ("train.learning_rate", "0.001"),
            ("train.optimizer.max_grad_norm", "inf"),
            ("rollout.max_tokens", "64"),
            ("rollout.stop_token_ids", "[1,2]"),
            ("chat.judge.api_key_env", "JUDGE"),
            ("chat.judge.base_url", HIDDEN),
            ("reward.exact.path", "a.wasm"),
            ("reward.exact.params.Authorization", HIDDEN),
        ] {
            assert!(values.contains(&(name.to_owned(), value.to_owned())), "{name} {values:?}");
        }
    }
}
