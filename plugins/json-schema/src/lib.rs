//! Scores 1 where the response is JSON that satisfies a schema, and 0
//! otherwise.

mod content;
mod schema;

use content::Content;
use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use jsonschema::Validator;
use schema::{compile, in_column};
use serde::Deserialize;
use serde_json::Value;

struct JsonSchema {
    source: Source,
    content: Content,
    partial: f64,
}

/// The source of the schema.
enum Source {
    /// The parameters: one for all rows.
    Params(Box<Validator>),
    /// A column of each row.
    Column(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The schema of all rows.
    schema: Option<Value>,
    /// The column that holds the schema of its row.
    column: Option<String>,
    /// Which part of the response is the JSON.
    #[serde(default)]
    content: Content,
    /// The score of JSON that does not satisfy the schema.
    #[serde(default)]
    partial: f64,
}

impl Reward for JsonSchema {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        let source = match (params.schema, params.column) {
            (Some(schema), None) => {
                Source::Params(Box::new(compile(&schema).map_err(|error| format!("`schema`: {error}"))?))
            }
            (None, Some(column)) => Source::Column(column),
            _ => return Err("give either `schema`, for all rows, or `column`, which holds the schema of a row".into()),
        };
        if !(0.0..1.0).contains(&params.partial) {
            return Err(format!("`partial` is {}: give a score from 0 to below 1", params.partial));
        }
        params.content.check().map_err(|error| format!("`content`: {error}"))?;
        Ok(Self { source, content: params.content, partial: params.partial })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let of_row;
        let validator = match &self.source {
            Source::Params(validator) => validator,
            Source::Column(name) => {
                of_row = in_column(name, reference.require(name)?).map_err(Failure::invalid_input)?;
                &of_row
            }
        };
        let judged = self.judge(validator, &sample.response());
        let score =
            Score::new(judged.score).metric("json", f64::from(judged.json)).metric("valid", f64::from(judged.valid));
        Ok(match judged.problem {
            Some(problem) => score.note(problem),
            None => score,
        }
        .into())
    }
}

gavel_sdk::export_reward!(JsonSchema);

/// The verdict on a response.
#[derive(Debug, PartialEq)]
struct Judged {
    score: f64,
    json: bool,
    valid: bool,
    problem: Option<String>,
}

impl JsonSchema {
    fn judge(&self, validator: &Validator, response: &str) -> Judged {
        let wrong = |score, json, problem: String| Judged { score, json, valid: false, problem: Some(problem) };
        let Some(text) = self.content.of(response) else {
            return wrong(0.0, false, format!("no {} in the response", self.content));
        };
        let value = match serde_json::from_str::<Value>(text) {
            Ok(value) => value,
            Err(error) => return wrong(0.0, false, format!("not JSON: {error}")),
        };
        match validator.validate(&value) {
            Ok(()) => Judged { score: 1.0, json: true, valid: true, problem: None },
            Err(error) => {
                wrong(self.partial, true, format!("at {:?}: {}", error.instance_path().as_str(), error.masked()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plugin(more: Value) -> Result<JsonSchema, String> {
        JsonSchema::new(serde_json::from_value(more).unwrap())
    }

    fn schema() -> Value {
        let properties = json!({"name": {"type": "string"}, "age": {"minimum": 0}});
        json!({"type": "object", "required": ["name"], "properties": properties})
    }

    fn judge(plugin: &JsonSchema, response: &str) -> Judged {
        let Source::Params(validator) = &plugin.source else { panic!("no schema") };
        plugin.judge(validator, response)
    }

    #[test]
    fn json_that_satisfies_the_schema_scores_1() {
        let plugin = plugin(json!({"schema": schema()})).unwrap();
        let right = Judged { score: 1.0, json: true, valid: true, problem: None };
        assert_eq!(judge(&plugin, "\n{\"name\": \"Ada\", \"age\": 3}\n"), right);
        for (response, json, problem) in [
            ("", false, "not JSON: EOF"),
            ("Sure: {\"name\": \"Ada\"}", false, "not JSON: expected value"),
            ("{\"name\": \"Ada\"} {}", false, "not JSON: trailing characters"),
            ("{\"name\": NaN}", false, "not JSON: "),
            // White space, but not JSON's.
            ("\u{a0}{\"name\": \"Ada\"}", false, "not JSON: expected value"),
            ("{}", true, "at \"\": "),
            ("{\"name\": 3}", true, "at \"/name\": "),
            ("{\"name\": \"Ada\", \"age\": -1}", true, "at \"/age\": "),
        ] {
            let judged = judge(&plugin, response);
            assert_eq!((judged.score, judged.json, judged.valid), (0.0, json, false), "{response}");
            let note = judged.problem.unwrap();
            assert!(note.starts_with(problem), "{note}");
        }
        let deep = judge(&plugin, &"[".repeat(1_000_000));
        assert!(deep.problem.unwrap().contains("recursion limit"));
    }

    #[test]
    fn json_alone_has_its_own_score_where_the_run_gives_one() {
        let plugin = plugin(json!({"schema": schema(), "partial": 0.25})).unwrap();
        assert_eq!([judge(&plugin, "{}").score, judge(&plugin, "{").score], [0.25, 0.0]);
    }

    #[test]
    fn parameters_that_say_too_little_too_much_or_wrong_are_refused() {
        let error = |params| plugin(params).err().unwrap();
        assert!(error(json!({})).starts_with("give either `schema`"));
        assert!(error(json!({"schema": {}, "column": "c"})).starts_with("give either `schema`"));
        assert!(error(json!({"schema": {"type": "strin"}})).starts_with("`schema`: not a JSON schema: "));
        assert!(error(json!({"schema": {"$ref": "https://example.com/schema.json"}})).starts_with("`schema`: "));
        assert!(error(json!({"schema": {}, "partial": 1.0})).starts_with("`partial` is 1"));
        for tag in ["<answer>", ""] {
            assert!(error(json!({"schema": {}, "content": {"tag": tag}})).starts_with("`content`: "), "{tag}");
        }
    }
}
