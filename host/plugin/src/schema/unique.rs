//! Whether the items of an array differ.

use serde_json::{Number, Value};
use std::collections::HashSet;
use std::fmt::Write;

/// Whether no two of `items` are equal as JSON values, where `1` and `1.0` are.
pub(super) fn is_unique(items: &[Value]) -> bool {
    let mut seen = HashSet::with_capacity(items.len());
    items.iter().all(|item| {
        let mut text = String::new();
        write_canonical(item, &mut text);
        seen.insert(text)
    })
}

/// Writes a text that equal values share.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Number(number) => write_number(number, text),
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write_canonical(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, member) in members {
                // Writing to a string does not fail.
                let _ = write!(text, "{name:?}:");
                write_canonical(member, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {
            let _ = write!(text, "{value}");
        }
    }
}

fn write_number(number: &Number, text: &mut String) {
    let whole = number.as_f64().filter(|it| !number.is_i64() && !number.is_u64() && it.fract() == 0.0);
    let _ = match whole {
        // Exact: a whole number of 64 bits that was written with a fraction or an exponent.
        Some(whole) if whole.abs() < 2f64.powi(64) => write!(text, "{}", whole as i128),
        _ => write!(text, "{number}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_values_are_found_however_they_are_written() {
        for (items, expected) in [
            ("[]", true),
            ("[1, 2, \"1\", true, null, [1], {}]", true),
            ("[1, 1.0]", false),
            ("[0, -0.0]", false),
            ("[18446744073709551615, 18446744073709551614]", true),
            ("[9007199254740993, 9007199254740992.0]", true),
            ("[10, 1e1]", false),
            ("[1e300, 1e301]", true),
            ("[{\"a\": 1, \"b\": [2]}, {\"b\": [2.0], \"a\": 1}]", false),
            ("[[[1], []], [[], [1]], [[1, []]]]", true),
        ] {
            let items: Vec<Value> = serde_json::from_str(items).unwrap();
            assert_eq!(is_unique(&items), expected, "{items:?}");
            let plain = jsonschema::validator_for(&json!({"uniqueItems": true})).unwrap();
            assert_eq!(plain.is_valid(&Value::Array(items)), expected);
        }
    }
}
