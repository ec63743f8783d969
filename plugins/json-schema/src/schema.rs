//! Compiles schemas.

use jsonschema::{Draft, Keyword, ValidationError, Validator};
use serde_json::Value;

/// The validator of a schema.
///
/// # Errors
/// Why it is not a schema.
pub fn compile(schema: &Value) -> Result<Validator, String> {
    let options = match Draft::default().detect(schema) {
        Draft::Draft201909 | Draft::Draft202012 => {
            jsonschema::options().with_keyword("dependencies", |_, _, _| Ok(Box::new(Annotation)))
        }
        _ => jsonschema::options(),
    };
    options.build(schema).map_err(|error| format!("not a JSON schema: {error}"))
}

/// The validator of a row's schema: JSON, or a text of JSON, as in Parquet
/// files.
///
/// # Errors
/// Why the column has no schema.
pub fn in_column(name: &str, value: Value) -> Result<Validator, String> {
    let value = match value {
        Value::String(text) => {
            serde_json::from_str(&text).map_err(|error| format!("column `{name}` is not JSON: {error}"))?
        }
        value => value,
    };
    compile(&value).map_err(|error| format!("column `{name}`: {error}"))
}

/// A keyword that asserts nothing. Draft 2019-09 replaced `dependencies`; the
/// validator would still assert it.
struct Annotation;

impl Keyword<'_> for Annotation {
    fn validate(&self, _: &Value) -> Result<(), ValidationError<'static>> {
        Ok(())
    }

    fn is_valid(&self, _: &Value) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn valid(schema: &str, instance: &str) -> bool {
        compile(&serde_json::from_str(schema).unwrap()).unwrap().is_valid(&serde_json::from_str(instance).unwrap())
    }

    fn person() -> Value {
        json!({"type": "object", "required": ["name"]})
    }

    #[test]
    fn a_column_holds_a_schema_or_its_text() {
        let valid = |value| in_column("schema", value).unwrap().is_valid(&json!({"name": "Ada"}));
        assert!(valid(person()) && valid(json!(person().to_string())) && !valid(json!(false)));
        assert!(in_column("schema", json!("{")).unwrap_err().starts_with("column `schema` is not JSON"));
        assert!(in_column("schema", json!({"type": 3})).unwrap_err().starts_with("column `schema`: not a JSON schema"));
    }

    #[test]
    fn numbers_have_all_their_digits() {
        for (schema, right, wrong) in [
            (r#"{"maximum": 18446744073709551616}"#, "18446744073709551616", "18446744073709551617"),
            (r#"{"minimum": -18446744073709551616}"#, "-18446744073709551616", "-18446744073709551617"),
            (
                r#"{"exclusiveMaximum": 972783798187987123879878123.188781}"#,
                "972783798187987123879878123.188",
                "972783798187987123879878123.1887811",
            ),
            (r#"{"multipleOf": 18446744073709551617}"#, "36893488147419103234", "36893488147419103235"),
            (r#"{"multipleOf": 3}"#, "36893488147419103233", "36893488147419103234"),
            (r#"{"multipleOf": 0.01}"#, "123456789012345678901234567890.17", "123456789012345678901234567890.175"),
            (
                r#"{"uniqueItems": true}"#,
                "[18446744073709551616, 18446744073709551617]",
                "[18446744073709551616, 18446744073709551616.0]",
            ),
            (r#"{"const": 18446744073709551617}"#, "18446744073709551617", "18446744073709551616"),
            (r#"{"enum": [0.1, 18446744073709551617]}"#, "1e-1", "18446744073709551618"),
            (
                r#"{"type": "integer"}"#,
                "12345678910111213141516171819202122232425262728293031",
                "12345678910111213141516171819202122232425262728293031.5",
            ),
            (r#"{"type": "number", "maximum": 1e400}"#, "1e399", "1e401"),
        ] {
            assert!(valid(schema, right), "{schema}: {right}");
            assert!(!valid(schema, wrong), "{schema}: {wrong}");
        }
    }

    #[test]
    fn a_number_costs_no_more_than_its_text() {
        for schema in [r#"{"multipleOf": 7}"#, r#"{"maximum": 7}"#, r#"{"uniqueItems": true}"#, r#"{"const": 7}"#] {
            for instance in ["1e999999999", "1e-999999999", "[1e999999999, 1e999999998]"] {
                valid(schema, instance);
            }
        }
    }

    #[test]
    fn dependencies_count_up_to_draft_7() {
        let draft = |uri: &str| format!(r#"{{"$schema": "{uri}", "dependencies": {{"bar": ["foo"]}}}}"#);
        for old in ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"] {
            assert!(!valid(&draft(old), r#"{"bar": 2}"#), "{old}");
        }
        for new in ["https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"] {
            assert!(valid(&draft(new), r#"{"bar": 2}"#), "{new}");
        }
        assert!(valid(r#"{"dependencies": {"bar": ["foo"]}}"#, r#"{"bar": 2}"#));
        assert!(!valid(r#"{"dependentRequired": {"bar": ["foo"]}}"#, r#"{"bar": 2}"#));
        assert!(!valid(r#"{"properties": {"dependencies": {"type": "string"}}}"#, r#"{"dependencies": 2}"#));
    }
}
