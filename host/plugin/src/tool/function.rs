//! A function of a tool, and whether a call fits it.

use jsonschema::Validator;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The most of what is wrong with arguments that the policy is told.
const MAX_ERRORS: usize = 3;
/// How much of each it is told, in characters: a wrong value may be long.
const ERROR_CHARS: usize = 300;

/// A description of a function that the policy may call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    /// Its name, by which the policy calls it.
    pub name: String,
    /// What it does, for the policy.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// A function that the policy may call.
pub struct ToolFunction {
    spec: ToolSpec,
    schema: Validator,
}

impl ToolFunction {
    /// A function that a tool describes, with the JSON Schema of its arguments.
    ///
    /// # Errors
    /// The name or the schema cannot be used. The text says why.
    pub fn new(name: String, description: String, parameters: &str) -> Result<Self, String> {
        let is_name = !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || "_-.".contains(char));
        if !is_name {
            return Err(format!("the name {name:?} of a function is not letters, digits, `_`, `-` and `.`"));
        }
        let parameters: Value = serde_json::from_str(parameters)
            .map_err(|error| format!("the schema of function `{name}` is not JSON: {error}"))?;
        if !parameters.is_object() {
            return Err(format!("the schema of function `{name}` is not an object"));
        }
        let schema = jsonschema::validator_for(&parameters)
            .map_err(|error| format!("the schema of function `{name}` is not a JSON Schema: {error}"))?;
        Ok(Self { spec: ToolSpec { name, description, parameters }, schema })
    }

    /// Its name, by which the policy calls it.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Its description.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Its description in the form that chat templates take.
    pub fn definition(&self) -> Value {
        json!({"type": "function", "function": self.spec})
    }

    /// Checks arguments that the policy wrote.
    ///
    /// # Errors
    /// They are not an object that the schema allows. The text is for the policy.
    pub fn check(&self, arguments: &str) -> Result<(), String> {
        let arguments: Map<String, Value> =
            serde_json::from_str(arguments).map_err(|error| format!("the arguments are not a JSON object: {error}"))?;
        let arguments = Value::Object(arguments);
        let errors: Vec<String> =
            self.schema.iter_errors(&arguments).take(MAX_ERRORS).map(|error| explain(&error)).collect();
        if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
    }

    /// What the policy is told of a call of `name`, which is not among the `known` functions.
    pub fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
        let mut known: Vec<&str> = known.into_iter().collect();
        known.sort_unstable();
        format!("there is no function `{name}`; there are: {}", known.join(", "))
    }
}

fn explain(error: &jsonschema::ValidationError<'_>) -> String {
    let what: String = error.to_string().chars().take(ERROR_CHARS).collect();
    match error.instance_path().to_string().as_str() {
        "" => what,
        path => format!("{}: {what}", path.trim_start_matches('/')),
    }
}
