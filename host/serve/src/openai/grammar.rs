//! The grammar that a request binds its responses to, by the names of the OpenAI API and those of vLLM.

use super::error::ApiError;
use gavel_text::GrammarSource;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The fields of a request that name a grammar.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct GrammarFields {
    response_format: Option<Value>,
    /// vLLM's.
    structured_outputs: Option<Map<String, Value>>,
    /// vLLM's older names.
    guided_json: Option<Value>,
    guided_regex: Option<Value>,
    guided_choice: Option<Value>,
    guided_grammar: Option<Value>,
}

/// A grammar that a request asks for.
#[derive(Debug, PartialEq)]
pub(super) struct AskedGrammar {
    /// The field that it is in.
    pub(super) field: &'static str,
    pub(super) kind: AskedKind,
}

#[derive(Debug, PartialEq)]
pub(super) enum AskedKind {
    Text(GrammarSource),
    /// A call of one of these tools, or of the one of this name.
    Calls {
        tools: Vec<Value>,
        name: Option<String>,
    },
}

/// What `tool_choice` asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ToolChoice<'c> {
    Auto,
    None,
    Required,
    Function(&'c str),
    /// The tools of these names are the only ones, and one of them must be called or not.
    Allowed {
        names: Vec<&'c str>,
        must_call: bool,
    },
}

const CHOICES: &str = "`tool_choice` must be \"auto\", \"none\", \"required\", {\"type\": \"function\", \"function\": {\"name\": …}} or \
                       {\"type\": \"allowed_tools\", \"allowed_tools\": {\"mode\": …, \"tools\": […]}}";

impl<'c> ToolChoice<'c> {
    pub(super) fn of(field: Option<&'c Value>) -> Result<Self, ApiError> {
        let Some(field) = field.filter(|field| !field.is_null()) else { return Ok(Self::Auto) };
        match field.as_str() {
            Some("auto") => return Ok(Self::Auto),
            Some("none") => return Ok(Self::None),
            Some("required") => return Ok(Self::Required),
            _ => {}
        }
        let name = |tool: &'c Value| tool["function"]["name"].as_str().filter(|_| tool["type"] == "function");
        let allowed = || {
            let allowed = Some(&field["allowed_tools"]).filter(|_| field["type"] == "allowed_tools")?;
            let must_call = match allowed["mode"].as_str()? {
                "auto" => false,
                "required" => true,
                _ => return None,
            };
            let names = allowed["tools"].as_array()?.iter().map(name).collect::<Option<_>>()?;
            Some(Self::Allowed { names, must_call })
        };
        let choice = name(field).map(Self::Function).or_else(allowed);
        choice.ok_or_else(|| ApiError::field("tool_choice", format!("{CHOICES}, not {field}")))
    }

    /// Those of `tools` that the model is shown.
    pub(super) fn shown(&self, tools: &[Value]) -> Result<Vec<Value>, ApiError> {
        match self {
            Self::None => Ok(Vec::new()),
            Self::Auto | Self::Required | Self::Function(_) => Ok(tools.to_vec()),
            Self::Allowed { names, .. } => {
                let is = |tool: &Value, name: &str| tool["function"]["name"] == name;
                if let Some(name) = names.iter().find(|name| !tools.iter().any(|tool| is(tool, name))) {
                    let what = format!("`tool_choice` allows {name:?}, which is not in `tools`");
                    return Err(ApiError::field("tool_choice", what));
                }
                Ok(tools.iter().filter(|tool| names.iter().any(|name| is(tool, name))).cloned().collect())
            }
        }
    }

    /// The grammar of the calls that it demands. `tools` are those that the model is shown.
    pub(super) fn grammar(&self, tools: &[Value]) -> Option<AskedGrammar> {
        let name = match self {
            Self::Auto | Self::None | Self::Allowed { must_call: false, .. } => return None,
            Self::Required | Self::Allowed { must_call: true, .. } => None,
            Self::Function(name) => Some((*name).to_owned()),
        };
        Some(AskedGrammar { field: "tool_choice", kind: AskedKind::Calls { tools: tools.to_vec(), name } })
    }
}

impl GrammarFields {
    /// The grammar that they ask for.
    pub(super) fn grammar(&self) -> Result<Option<AskedGrammar>, ApiError> {
        let fields = [
            ("response_format", self.response_format.as_ref().map(of_format)),
            ("structured_outputs", self.structured_outputs.as_ref().map(of_structured_outputs)),
            ("guided_json", present(&self.guided_json).map(|schema| of_part("json", schema).map(Some))),
            ("guided_regex", present(&self.guided_regex).map(|regex| of_part("regex", regex).map(Some))),
            ("guided_choice", present(&self.guided_choice).map(|choice| of_part("choice", choice).map(Some))),
            ("guided_grammar", present(&self.guided_grammar).map(|grammar| of_part("grammar", grammar).map(Some))),
        ];
        let mut asked: Option<AskedGrammar> = None;
        for (field, found) in fields {
            let found = found.transpose().map_err(|what| ApiError::field(field, format!("`{field}`{what}")))?;
            let Some(source) = found.flatten() else { continue };
            if let Some(other) = &asked {
                let what = format!("`{}` and `{field}` do not go together", other.field);
                return Err(ApiError::field(field, what));
            }
            asked = Some(AskedGrammar { field, kind: AskedKind::Text(source) });
        }
        Ok(asked)
    }
}

fn present(field: &Option<Value>) -> Option<&Value> {
    field.as_ref().filter(|value| !value.is_null())
}

/// The grammar of `response_format`; `None` for any text.
fn of_format(format: &Value) -> Result<Option<GrammarSource>, String> {
    match format["type"].as_str() {
        _ if format.is_null() => Ok(None),
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(GrammarSource::JsonObject)),
        Some("json_schema") => match format["json_schema"].get("schema") {
            Some(schema) => of_part("json", schema).map(Some),
            None => Err(" of the type json_schema needs `json_schema` with `schema`".into()),
        },
        _ => Err(format!(" {format} is not supported; the types text, json_object and json_schema are")),
    }
}

/// The grammar of vLLM's `structured_outputs`.
fn of_structured_outputs(parts: &Map<String, Value>) -> Result<Option<GrammarSource>, String> {
    let mut found = None;
    for (name, value) in parts.iter().filter(|(_, value)| !value.is_null() && **value != false) {
        let source = of_part(name, value).map_err(|what| format!(".{name}{what}"))?;
        if found.replace(source).is_some() {
            return Err(" must have one grammar".into());
        }
    }
    found.map(Some).ok_or_else(|| " has no grammar: json, json_object, regex, choice or grammar".into())
}

/// The grammar of one of vLLM's names.
fn of_part(name: &str, value: &Value) -> Result<GrammarSource, String> {
    let text = || value.as_str().map(str::to_owned).ok_or_else(|| format!(" must be a text, not {value}"));
    match name {
        "json" => match value {
            // Some clients send the schema as text.
            Value::String(text) => match serde_json::from_str(text) {
                Ok(schema) => Ok(GrammarSource::JsonSchema(schema)),
                Err(error) => Err(format!(" is not a JSON schema: {error}")),
            },
            Value::Object(_) | Value::Bool(_) => Ok(GrammarSource::JsonSchema(value.clone())),
            other => Err(format!(" must be a JSON schema, not {other}")),
        },
        "json_object" if *value == json!(true) => Ok(GrammarSource::JsonObject),
        "regex" => text().map(GrammarSource::Regex),
        "grammar" => text().map(GrammarSource::Lark),
        "choice" => {
            let texts =
                value.as_array().and_then(|list| list.iter().map(|one| one.as_str().map(str::to_owned)).collect());
            texts.map(GrammarSource::Choice).ok_or_else(|| format!(" must be a list of texts, not {value}"))
        }
        _ => Err(format!(": {value} is not supported")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(fields: Value) -> Result<Option<AskedGrammar>, String> {
        let fields: GrammarFields = serde_json::from_value(fields).unwrap();
        fields.grammar().map_err(|error| error.body()["error"]["message"].as_str().unwrap().to_owned())
    }

    #[test]
    fn each_name_gives_its_grammar() {
        use GrammarSource::*;
        let schema = json!({"type": "integer"});
        for (fields, source) in [
            (json!({}), None),
            (json!({"response_format": {"type": "text"}}), None),
            (json!({"response_format": null, "guided_json": null}), None),
            (json!({"response_format": {"type": "json_object"}}), Some(JsonObject)),
            (
                json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "strict": true, "schema": schema}}}),
                Some(JsonSchema(schema.clone())),
            ),
            (json!({"guided_json": schema}), Some(JsonSchema(schema.clone()))),
            (json!({"guided_json": schema.to_string()}), Some(JsonSchema(schema.clone()))),
            (json!({"guided_regex": "a+"}), Some(Regex("a+".into()))),
            (json!({"guided_choice": ["a", "b"]}), Some(Choice(vec!["a".into(), "b".into()]))),
            (json!({"guided_grammar": "start: \"a\""}), Some(Lark("start: \"a\"".into()))),
            (json!({"structured_outputs": {"json": schema, "regex": null}}), Some(JsonSchema(schema.clone()))),
            (json!({"structured_outputs": {"json_object": true}}), Some(JsonObject)),
            (json!({"structured_outputs": {"choice": ["a"]}}), Some(Choice(vec!["a".into()]))),
        ] {
            let found = asked(fields.clone()).unwrap().map(|asked| asked.kind);
            assert_eq!(found, source.map(AskedKind::Text), "{fields}");
        }
    }

    #[test]
    fn what_is_no_grammar_is_refused_by_its_field() {
        for (fields, says) in [
            (
                json!({"response_format": {"type": "structural_tag"}}),
                "`response_format` {\"type\":\"structural_tag\"} is not",
            ),
            (
                json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}}),
                "`response_format` of the type",
            ),
            (json!({"guided_json": "{"}), "`guided_json` is not a JSON schema: EOF"),
            (json!({"guided_json": [1]}), "`guided_json` must be a JSON schema, not [1]"),
            (json!({"guided_choice": ["a", 1]}), "`guided_choice` must be a list of texts"),
            (json!({"structured_outputs": {}}), "`structured_outputs` has no grammar"),
            (
                json!({"structured_outputs": {"regex": "a", "choice": ["a"]}}),
                "`structured_outputs` must have one grammar",
            ),
            (
                json!({"structured_outputs": {"structural_tag": "a"}}),
                "`structured_outputs`.structural_tag: \"a\" is not supported",
            ),
            (
                json!({"response_format": {"type": "json_object"}, "guided_regex": "a"}),
                "`response_format` and `guided_regex` do not go together",
            ),
        ] {
            let refused = asked(fields.clone()).unwrap_err();
            assert!(refused.starts_with(says), "{fields}: {refused}");
        }
    }

    #[test]
    fn a_tool_choice_is_one_of_five() {
        let function = json!({"type": "function", "function": {"name": "add"}});
        let allowed = |mode: &str, tools: &[&Value]| json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}});
        for (choice, found) in [
            (json!(null), ToolChoice::Auto),
            (json!("auto"), ToolChoice::Auto),
            (json!("none"), ToolChoice::None),
            (json!("required"), ToolChoice::Required),
            (function.clone(), ToolChoice::Function("add")),
            (allowed("auto", &[&function]), ToolChoice::Allowed { names: vec!["add"], must_call: false }),
            (allowed("required", &[&function]), ToolChoice::Allowed { names: vec!["add"], must_call: true }),
        ] {
            assert_eq!(ToolChoice::of(Some(&choice)).unwrap(), found);
        }
        for choice in [
            json!("always"),
            json!({"type": "function"}),
            json!({"function": {"name": "add"}}),
            json!({"type": "allowed_tools"}),
            allowed("none", &[&function]),
            allowed("auto", &[&json!({"name": "add"})]),
        ] {
            let refused = ToolChoice::of(Some(&choice)).unwrap_err().body().to_string();
            assert!(
                refused.contains("`tool_choice` must be") && refused.contains("\"param\":\"tool_choice\""),
                "{refused}"
            );
        }
        let tools = [json!({"type": "function"})];
        let calls = |name: Option<&str>| AskedKind::Calls { tools: tools.to_vec(), name: name.map(str::to_owned) };
        assert_eq!(ToolChoice::Auto.grammar(&tools), None);
        assert_eq!(ToolChoice::Required.grammar(&tools).unwrap().kind, calls(None));
        assert_eq!(ToolChoice::Function("add").grammar(&tools).unwrap().kind, calls(Some("add")));
        let some = |must_call| ToolChoice::Allowed { names: vec!["add"], must_call };
        assert_eq!((some(false).grammar(&tools), some(true).grammar(&tools).unwrap().kind), (None, calls(None)));
    }

    #[test]
    fn only_tools_that_are_allowed_are_shown() {
        let tools = ["add", "multiply"].map(|name| json!({"type": "function", "function": {"name": name}}));
        let allowed = |names: &[&'static str]| ToolChoice::Allowed { names: names.to_vec(), must_call: false };
        assert_eq!(allowed(&["multiply"]).shown(&tools).unwrap(), tools[1..]);
        assert_eq!(allowed(&["multiply", "add"]).shown(&tools).unwrap(), tools);
        assert_eq!(
            (ToolChoice::Auto.shown(&tools).unwrap().len(), ToolChoice::None.shown(&tools).unwrap().len()),
            (2, 0)
        );
        let refused = allowed(&["add", "divide"]).shown(&tools).unwrap_err().body().to_string();
        assert!(refused.contains("`tool_choice` allows \\\"divide\\\", which is not in `tools`"), "{refused}");
    }
}
