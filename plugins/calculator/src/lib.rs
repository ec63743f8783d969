//! A tool with one function, `calculator`, which evaluates an arithmetic
//! expression. Integers and finite decimals are exact.

use fend_core::Context;
use gavel_sdk::{Failure, Info, NoParams, Tool, ToolSpec};
use serde_json::{Map, Value, json};

/// Longer expressions are refused: they are unlikely to be real arithmetic.
const MAX_CHARS: usize = 2000;

struct Calculator;

impl Tool for Calculator {
    type Params = NoParams;
    type State = ();

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn specs(&self) -> Vec<ToolSpec> {
        let expression = json!({"type": "string", "description": "Such as 12 * (3 + 4.5), 2^64, sqrt(2) or 5! / 3!"});
        let schema = json!({
            "type": "object",
            "properties": {"expression": expression},
            "required": ["expression"],
            "additionalProperties": false,
        });
        vec![ToolSpec::new("calculator", "Evaluates an arithmetic expression.", schema)]
    }

    fn open(&self, _: Map<String, Value>) -> Result<(), Failure> {
        Ok(())
    }

    fn call(&self, (): &mut (), _: &str, arguments: Map<String, Value>) -> Result<String, Failure> {
        let expression = arguments.get("expression").and_then(Value::as_str).unwrap_or_default();
        evaluate(expression).map_err(Failure::invalid_input)
    }
}

gavel_sdk::export_tool!(Calculator);

/// The value of an expression as text, or what is wrong with it.
fn evaluate(expression: &str) -> Result<String, String> {
    if expression.trim().is_empty() {
        return Err("the expression is empty".into());
    }
    let chars = expression.chars().count();
    if chars > MAX_CHARS {
        return Err(format!("the expression has {chars} characters, at most {MAX_CHARS} are allowed"));
    }
    let result = fend_core::evaluate(expression, &mut Context::new())?;
    let text = result.get_main_result();
    if text.is_empty() { Err("the expression has no value".into()) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_exact() {
        for (expression, value) in [
            ("2 + 3 * 4", "14"),
            ("(2 + 3) * 4", "20"),
            ("123456789 * 987654321", "121932631112635269"),
            ("2^100", "1267650600228229401496703205376"),
            ("0.1 + 0.2", "0.3"),
            ("7 mod 3", "1"),
            ("10 / 4", "2.5"),
            ("1/3", "approx. 0.3333333333"),
            ("-5 + 2", "-3"),
            ("5!", "120"),
        ] {
            assert_eq!(evaluate(expression).as_deref(), Ok(value), "{expression}");
        }
    }

    #[test]
    fn what_has_no_value_says_why() {
        assert_eq!(evaluate(" ").unwrap_err(), "the expression is empty");
        assert!(evaluate("1 / 0").unwrap_err().contains("zero"));
        assert!(evaluate("2 +").is_err());
        assert!(evaluate(&"1+".repeat(2000)).unwrap_err().contains("at most 2000"));
    }
}
