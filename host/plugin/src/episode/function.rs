//! A function of a tool, and whether a call fits it.

use crate::schema::{Refusal, Room, Schema, shortened};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A description of a function that the policy may call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    /// Its name, by which the policy calls it.
    pub name: String,
    /// What the function does, for the policy to read.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// The most characters of a name: it is in each prompt, and providers allow 64.
const MAX_NAME: usize = 256;

/// A function that the policy may call.
pub struct ToolFunction {
    spec: ToolSpec,
    /// Shared with checks on other threads.
    schema: Arc<Schema>,
}

impl ToolFunction {
    /// Bytes of a function beside its texts.
    pub(crate) const BYTES: usize = size_of::<Self>() + size_of::<Schema>();

    /// The functions that a tool describes: of each, its name, its description, and the JSON Schema of its arguments.
    ///
    /// # Errors
    /// A name or a schema cannot be used, or the schemas are too large. The text says why.
    pub fn all(described: impl IntoIterator<Item = (String, String, String)>) -> Result<Vec<Self>, String> {
        let mut room = Room::default();
        let functions = described.into_iter();
        functions.map(|(name, description, schema)| Self::new(name, description, &schema, &mut room)).collect()
    }

    fn new(name: String, description: String, parameters: &str, room: &mut Room) -> Result<Self, String> {
        let is_name = !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || "_-.".contains(char));
        if !is_name {
            let name = shortened(&format!("{name:?}"));
            return Err(format!("the name {name} of a function is not letters, digits, `_`, `-` and `.`"));
        }
        let length = name.chars().count();
        if length > MAX_NAME {
            let name = shortened(&name);
            return Err(format!(
                "the name `{name}` of a function has {length} characters, more than the {MAX_NAME} allowed"
            ));
        }
        let (parameters, schema) =
            Schema::read(parameters, room).map_err(|error| format!("the schema of function `{name}` {error}"))?;
        Ok(Self { spec: ToolSpec { name, description, parameters }, schema: Arc::new(schema) })
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

    /// Checks arguments that the policy wrote, which takes seconds at worst.
    ///
    /// # Errors
    /// They are not an object that the schema allows. The text is for the policy.
    pub fn check(&self, arguments: &str) -> Result<(), String> {
        self.schema.check(&object(arguments)?).map_err(|refusal| refusal_text(refusal, &self.spec.name))
    }

    /// The check of [`ToolFunction::check`], for another thread. It ends soon after nobody waits for it any more: what it
    /// gives then has no meaning.
    pub fn check_elsewhere(
        &self,
        arguments: &str,
        is_given_up: Arc<AtomicBool>,
    ) -> impl FnOnce() -> Result<(), String> + Send + use<> {
        let (schema, name, arguments) = (self.schema.clone(), self.spec.name.clone(), arguments.to_owned());
        move || {
            let checked = schema.check_until(&object(&arguments)?, is_given_up);
            checked.map_err(|refusal| refusal_text(refusal, &name))
        }
    }

    /// What [`ToolFunction::check`] finds, if that takes milliseconds at most. Its steps are counted, so that the same
    /// arguments have an answer on every machine.
    pub fn check_shortly(&self, arguments: &str) -> Option<Result<(), String>> {
        match object(arguments) {
            Ok(arguments) => {
                let checked = self.schema.check_shortly(&arguments)?;
                Some(checked.map_err(|refusal| refusal_text(refusal, &self.spec.name)))
            }
            Err(what) => Some(Err(what)),
        }
    }

    /// The text for the policy about a call of `name`, which is not among the `known` functions.
    pub fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
        let mut known: Vec<&str> = known.into_iter().collect();
        known.sort_unstable();
        match known.is_empty() {
            true => format!("there is no function `{name}`, nor any other"),
            false => format!("there is no function `{name}`; there are: {}", known.join(", ")),
        }
    }
}

/// The text for the policy about arguments that are refused.
fn refusal_text(refusal: Refusal, function: &str) -> String {
    match refusal {
        Refusal::Wrong(errors) => errors.join("; "),
        Refusal::TooManySteps => {
            format!("the arguments of `{function}` are nested too deep, or too long, to be checked")
        }
    }
}

/// Arguments as JSON.
fn object(arguments: &str) -> Result<Value, String> {
    let arguments: Map<String, Value> =
        serde_json::from_str(arguments).map_err(|error| format!("the arguments are not a JSON object: {error}"))?;
    Ok(Value::Object(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with arguments, by a schema that a tool wrote.
    fn check(schema: &Value, arguments: &str) -> Result<(), String> {
        ToolFunction::all([("f".into(), String::new(), schema.to_string())])?[0].check(arguments)
    }

    #[test]
    fn a_schema_that_refers_to_itself_does_not_harm_the_host() {
        let node = json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false});
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            json!({"anyOf": [{"not": {"$ref": "#"}}, {"$ref": "#"}]}),
            node.clone(),
        ] {
            let _ = check(&schema, "{}");
        }
        assert_eq!(check(&node, r#"{"next": {"next": {}}}"#), Ok(()));
        let deep = |levels: usize| r#"{"next":"#.repeat(levels) + "{}" + &"}".repeat(levels);
        assert_eq!(check(&node, &deep(100)), Ok(()));
        assert!(check(&node, &deep(100_000)).unwrap_err().contains("recursion limit"));
        assert!(check(&json!({"$ref": "file:///etc/passwd"}), "{}").unwrap_err().contains("file:///etc/passwd"));
    }

    #[test]
    fn what_would_hold_up_the_host_is_refused() {
        let schema = json!({"properties": {"list": {"items": {"anyOf": [{"type": "string"}, {"minimum": 0}]}}}});
        let long = json!({"list": vec![1; 500_000]}).to_string();
        assert_eq!(
            check(&schema, &long),
            Err("the arguments of `f` are nested too deep, or too long, to be checked".into())
        );
        let properties = (0..90_000).map(|number| (number.to_string(), json!({})));
        let schema = json!({"properties": properties.collect::<Map<_, _>>()});
        let large = "the schema of function `f` has 978906 bytes, more than the 262144 allowed\n\
                     hint: shorten it where the tool describes it";
        assert_eq!(check(&schema, "{}"), Err(large.into()));
    }

    #[test]
    fn a_short_check_finds_the_same_or_nothing() {
        // Each text counts as 20 million steps.
        let schema = json!({"properties": {"list": {"items": {"type": "string", "format": "regex"}}}});
        let function = ToolFunction::all([("f".into(), String::new(), schema.to_string())]).unwrap().remove(0);
        for (arguments, is_short, is_allowed) in [
            (json!({}), true, true),
            (json!([]), true, false),
            (json!({"list": [1]}), true, false),
            // What takes a short check too many steps is right, wrong, or too much for a full check as well.
            (json!({"list": vec!["a"; 9]}), false, true),
            (json!({"list": ["a", 1]}), false, false),
            (json!({"list": vec!["a"; 11]}), false, false),
            // The first item decides, but the description of what is wrong looks at all.
            (json!({"list": [1, "a"]}), false, false),
        ] {
            let arguments = arguments.to_string();
            let (short, full) = (function.check_shortly(&arguments), function.check(&arguments));
            assert_eq!(full.is_ok(), is_allowed, "{full:?}");
            assert_eq!(short, is_short.then_some(full.clone()), "{full:?}");
            assert_eq!(function.check_elsewhere(&arguments, Arc::default())(), full);
        }
    }

    #[test]
    fn a_check_that_nobody_waits_for_ends() {
        let function = ToolFunction::all([("f".into(), String::new(), "{}".to_owned())]).unwrap().remove(0);
        for is_given_up in [false, true] {
            let checked = function.check_elsewhere("{}", Arc::new(is_given_up.into()))();
            assert_eq!(checked.is_err(), is_given_up);
        }
    }

    #[test]
    fn a_pattern_that_backtracks_without_end_is_given_up() {
        let schema = json!({"properties": {"text": {"pattern": "^(?=(a+)+$)(a|aa)+\\1$"}}});
        let arguments = json!({"text": "a".repeat(40) + "!"}).to_string();
        assert!(check(&schema, &arguments).is_err());
    }

    #[test]
    fn a_long_schema_is_refused_in_few_words() {
        let deep = format!("{}{}", "(?=".repeat(60_000), ")".repeat(60_000));
        for (schema, what) in [
            (json!({"type": vec!["object"; 8000]}), "is not"),
            (json!({"pattern": deep}), "is not a \"regex\""),
            (json!({"$ref": format!("#/{}", "a".repeat(100_000))}), "does not exist"),
            (json!({"properties": {"x": {"minContains": "a".repeat(100_000)}}}), "is not of type \"integer\""),
        ] {
            let error = check(&schema, "{}").unwrap_err();
            assert!(error.starts_with("the schema of function `f` is not a JSON Schema: "), "{error}");
            assert!(error.len() < 1000 && error.contains(what), "{error}");
        }
        let named =
            |name: &str| ToolFunction::all([(name.to_owned(), String::new(), "{}".to_owned())]).map(drop).unwrap_err();
        let long = named(&"n".repeat(1 << 20));
        assert!(
            long.len() < 1000 && long.ends_with("of a function has 1048576 characters, more than the 256 allowed"),
            "{long}"
        );
        let odd = named(&"\u{1b}".repeat(1 << 20));
        assert!(odd.len() < 1000 && odd.ends_with("of a function is not letters, digits, `_`, `-` and `.`"), "{odd}");
    }

    #[test]
    fn what_is_wrong_with_a_long_value_is_said_at_its_end() {
        let schema = json!({"properties": {"by": {"type": "integer"}}});
        let error = check(&schema, &json!({"by": "x".repeat(100_000)}).to_string()).unwrap_err();
        assert!(error.ends_with("x\" is not of type \"integer\""), "{error}");
    }

    #[test]
    fn what_is_wrong_is_told_in_few_words() {
        let schema =
            json!({"properties": {"by": {"type": "integer"}}, "required": ["by"], "additionalProperties": false});
        assert_eq!(check(&schema, r#"{"by": 2}"#), Ok(()));
        assert_eq!(check(&schema, "{}"), Err("\"by\" is a required property".into()));
        assert_eq!(check(&schema, r#"{"by": "x"}"#), Err("by: \"x\" is not of type \"integer\"".into()));
        assert!(check(&schema, "[1]").unwrap_err().starts_with("the arguments are not a JSON object: "));
        assert_eq!(ToolFunction::unknown("f", ["b", "a"]), "there is no function `f`; there are: a, b");
        assert_eq!(ToolFunction::unknown("f", []), "there is no function `f`, nor any other");
        let long = json!({"by": "x".repeat(100_000)}).to_string();
        assert!(check(&schema, &long).unwrap_err().chars().count() <= 300 + "by: ".len());
    }
}
