//! The JSON Schema of a configuration, made from the tables and their comments, for editors and other programs.

use crate::pairs::{DpoTable, RewardModelTrainTable};
use crate::run_config::Config;
use crate::train::{RlTable, SftTable};
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

/// The tables that a command does not have whose model answers no prompts.
const OF_ANSWERS: [&str; 7] = ["rollout", "validation", "reward", "agent", "gateway", "tool", "schedule"];

/// The other names of values, which a configuration may have too: the definition, the name and the other name.
const ALIASES: [(&str, &str, &str); 11] = [
    ("Dtype", "float32", "fp32"),
    ("Dtype", "bfloat16", "bf16"),
    ("Dtype", "float16", "fp16"),
    ("KlEstimator", "k1", "kl"),
    ("KlEstimator", "k2", "mse"),
    ("KlEstimator", "k3", "low_var_kl"),
    ("KlEstimator", "k1+", "kl+"),
    ("KlEstimator", "k3+", "low_var_kl+"),
    ("RolloutRs", "token_k1", "token"),
    ("RolloutRs", "seq_sum_k1", "sequence"),
    ("RolloutRs", "seq_mean_k1", "geometric"),
];

/// The commands that read a configuration, each with its own `[train]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `gavel train`
    Train,
    /// `gavel sft`
    Sft,
    /// `gavel reward-model`
    RewardModel,
    /// `gavel dpo`
    Dpo,
    /// `gavel eval`, which reads the configurations of the others
    Eval,
}

/// `[train]` of `gavel eval`. It learns nothing, so that every key is accepted.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
struct AnyTrainTable(Map<String, Value>);

/// The JSON Schema (draft 7, which Taplo reads) of the configuration of `command`. It accepts what can be read; that keys
/// fit together is checked when a run begins. A file that includes others may lack the keys that these set.
pub fn schema(command: Command) -> Value {
    let mut schema = match command {
        Command::Train => of::<RlTable>(),
        Command::Sft => of::<SftTable>(),
        Command::RewardModel => of::<RewardModelTrainTable>(),
        Command::Dpo => of::<DpoTable>(),
        Command::Eval => of::<AnyTrainTable>(),
    };
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let include = json!({
            "description": "The files that this file builds on, relative to it.",
            "type": ["string", "array"],
            "items": { "type": "string" },
        });
        properties.insert("include".into(), include);
        if matches!(command, Command::RewardModel | Command::Dpo) {
            properties.retain(|name, _| !OF_ANSWERS.contains(&name.as_str()));
        }
    }
    let name = match command {
        Command::Train => "train",
        Command::Sft => "sft",
        Command::RewardModel => "reward-model",
        Command::Dpo => "dpo",
        Command::Eval => "eval",
    };
    schema.insert("title".into(), format!("The configuration of gavel {name}").into());
    schema.remove("description");
    require(&mut schema, command);
    schema.to_value()
}

fn of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft07().with_transform(WithoutNull).with_transform(PlainText);
    let mut schema = settings.into_generator().into_root_schema_for::<Config<T>>();
    for (definition, name, other) in ALIASES {
        let variants = schema.pointer_mut(&format!("/definitions/{definition}/oneOf")).and_then(Value::as_array_mut);
        let Some(variants) = variants else { continue };
        let of_name = |variant: &&Value| variant.get("const").is_some_and(|found| found == name);
        let Some(mut alias) = variants.iter().find(of_name).cloned() else { continue };
        alias["const"] = other.into();
        alias["description"] = format!("`{name}`").into();
        variants.push(alias);
    }
    schema
}

/// TOML has no null: a key that may be absent is not required.
#[derive(Clone)]
struct WithoutNull;

impl Transform for WithoutNull {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        object.retain(|key, value| key != "default" || !value.is_null());
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                object.insert("type".into(), only);
            }
        }
        if let Some(Value::Array(values)) = object.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        let Some(Value::Array(any)) = object.get_mut("anyOf") else { return };
        any.retain(|form| *form != json!({ "type": "null" }));
        if let [Value::Object(only)] = any.as_mut_slice() {
            let only = std::mem::take(only);
            object.remove("anyOf");
            match only.contains_key("$ref") && !object.is_empty() {
                // Beside a reference, draft 7 reads nothing.
                true => drop(object.insert("allOf".into(), json!([only]))),
                false => {
                    for (key, value) in only {
                        object.entry(key).or_insert(value);
                    }
                }
            }
        }
    }
}

/// Descriptions are shown as they are: lines of a paragraph become one, and links within the code lose their brackets.
#[derive(Clone)]
struct PlainText;

impl Transform for PlainText {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if let Some(Value::String(text)) = schema.get_mut("description") {
            let paragraphs =
                text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
            *text = paragraphs.collect::<Vec<_>>().join("\n\n").replace("[`", "`").replace("`]", "`");
        }
    }
}

/// Moves what is required to where only a file that includes none needs it.
fn require(schema: &mut Schema, command: Command) {
    let mut required = schema.remove("required").unwrap_or_default();
    let names = required.as_array_mut();
    let needed: Vec<Value> = match (command, names) {
        // Its model, its rows and `[train]` may come from elsewhere.
        (Command::Eval, _) => vec!["rollout".into()],
        (Command::Train, Some(names)) => std::mem::take(names),
        // The file may have no `[rollout]` where nothing is drawn.
        (_, Some(names)) => names.drain(..).filter(|name| name != "rollout").collect(),
        (_, None) => Vec::new(),
    };
    let Some(properties) = schema.get("properties").and_then(Value::as_object).cloned() else { return };
    let mut of_tables = Map::new();
    for (name, property) in &properties {
        let of_each = property.get("additionalProperties");
        let Some(definition) = referred(of_each.unwrap_or(property)) else { continue };
        let Some(definition) = schema.pointer_mut(&format!("/definitions/{definition}")) else { continue };
        let Some(required) = definition.as_object_mut().and_then(|table| table.remove("required")) else { continue };
        if command == Command::Eval && name != "rollout" && of_each.is_none() {
            continue;
        }
        let required = json!({ "required": required });
        let required = if of_each.is_some() { json!({ "additionalProperties": required }) } else { required };
        of_tables.insert(name.clone(), required);
    }
    schema.insert("if".into(), json!({ "not": { "required": ["include"] } }));
    schema.insert("then".into(), json!({ "required": needed, "properties": of_tables }));
}

/// The name of the definition that a schema refers to.
fn referred(schema: &Value) -> Option<String> {
    let direct = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref"));
    Some(direct?.as_str()?.strip_prefix("#/definitions/")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_name_of_a_value_is_in_the_schema() {
        let schema = schema(Command::Train);
        for (definition, name, other) in ALIASES {
            let variants = schema.pointer(&format!("/definitions/{definition}/oneOf")).and_then(Value::as_array);
            let is_there = |name: &str| variants.is_some_and(|variants| variants.iter().any(|it| it["const"] == name));
            assert!(is_there(name) && is_there(other), "{definition}: {name}, {other}");
        }
    }
}
