//! JSON in the form of Python's `json.dumps`.

use super::budget::{SPELL, charge_bytes, check_text, measure, unlimited};
use super::values::{Result, number};
use minijinja::value::{Serde, ValueKind};
use minijinja::{Error, ErrorKind, Value};
use std::fmt::Write as _;

/// The options of `json.dumps`.
pub(super) struct Style {
    /// Writes characters that are not ASCII as `\uXXXX`.
    pub ensure_ascii: bool,
    pub sort_keys: bool,
    /// The indentation of each level; without it, everything is on one line.
    pub indent: Option<String>,
    /// The text between two items.
    pub item: String,
    /// The text between a key and its value.
    pub key: String,
}

/// `json.dumps(value, ensure_ascii=False)`
pub(super) fn python(value: &serde_json::Value) -> String {
    let style = Style { ensure_ascii: false, sort_keys: false, indent: None, item: ", ".into(), key: ": ".into() };
    // Plain JSON can always be written.
    unlimited(|| dumps(&Value::from(Serde(value)), &style)).unwrap_or_default()
}

pub(super) fn dumps(value: &Value, style: &Style) -> Result<String> {
    measure(value.clone())?;
    let mut out = String::new();
    write(&mut out, value, style, 0)?;
    charge_bytes(out.len(), SPELL)?;
    Ok(out)
}

/// Checks that `out` may be as much longer: an indentation, or what stands between items, may be long.
fn check_room(out: &str, more: usize) -> Result<()> {
    check_text(out.len().saturating_add(more))
}

fn write(out: &mut String, value: &Value, style: &Style, depth: usize) -> Result<()> {
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&json_number(value)),
        ValueKind::String => quote(out, value.as_str().unwrap_or_default(), style.ensure_ascii),
        // A slice of a list is an iterable.
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            between(out, ['[', ']'], items.len(), style, depth, |out, index| {
                write(out, &items[index], style, depth + 1)
            })?;
        }
        ValueKind::Map => {
            let mut pairs = Vec::new();
            for key in value.try_iter()? {
                pairs.push((self::key(&key)?, value.get_item(&key)?));
            }
            if style.sort_keys {
                pairs.sort_by(|(left, _), (right, _)| left.cmp(right));
            }
            between(out, ['{', '}'], pairs.len(), style, depth, |out, index| {
                let (key, value) = &pairs[index];
                quote(out, key, style.ensure_ascii);
                check_room(out, style.key.len())?;
                out.push_str(&style.key);
                write(out, value, style, depth + 1)
            })?;
        }
        other => {
            return Err(Error::new(
                ErrorKind::BadSerialization,
                format!("tojson: a value of kind {other} cannot be written as JSON"),
            ));
        }
    }
    Ok(())
}

/// Writes `len` items in brackets.
fn between(
    out: &mut String,
    brackets: [char; 2],
    len: usize,
    style: &Style,
    depth: usize,
    item: impl Fn(&mut String, usize) -> Result<()>,
) -> Result<()> {
    let line = |out: &mut String, depth: usize| -> Result<()> {
        if let Some(indent) = &style.indent {
            check_room(out, indent.len().saturating_mul(depth))?;
            out.push('\n');
            out.push_str(&indent.repeat(depth));
        }
        Ok(())
    };
    out.push(brackets[0]);
    for index in 0..len {
        if index > 0 {
            check_room(out, style.item.len())?;
            out.push_str(&style.item);
        }
        line(out, depth + 1)?;
        item(out, index)?;
    }
    if len > 0 {
        line(out, depth)?;
    }
    out.push(brackets[1]);
    Ok(())
}

fn key(key: &Value) -> Result<String> {
    Ok(match key.kind() {
        ValueKind::String => key.as_str().unwrap_or_default().to_owned(),
        ValueKind::Number => json_number(key),
        ValueKind::Bool => if key.is_true() { "true" } else { "false" }.to_owned(),
        ValueKind::None => "null".to_owned(),
        other => {
            return Err(Error::new(ErrorKind::BadSerialization, format!("tojson: a key of an object is a {other}")));
        }
    })
}

fn json_number(value: &Value) -> String {
    match number(value) {
        text if text == "nan" => "NaN".into(),
        text if text.ends_with("inf") => text.replace("inf", "Infinity"),
        text => text,
    }
}

fn quote(out: &mut String, text: &str, ensure_ascii: bool) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            char if char < ' ' || (ensure_ascii && char > '~') => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            char => out.push(char),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::super::budget::{WORK, charge, needed, start};
    use super::*;

    fn style(indent: Option<String>, item: &str, key: &str) -> Style {
        Style { ensure_ascii: false, sort_keys: false, indent, item: item.into(), key: key.into() }
    }

    #[test]
    fn what_stands_between_items_counts_before_it_is_written() {
        let value = Value::from(Serde(serde_json::json!({"a": [1, 2], "b": {}})));
        for style in [
            style(Some(" ".repeat(99)), ",", ":"),
            style(None, &",".repeat(99), ":"),
            style(None, ",", &":".repeat(99)),
        ] {
            start(100, 0, WORK);
            assert!(dumps(&value, &style).is_err());
            // The text before, and one of them.
            assert!((101..300).contains(&needed()), "{}", needed());
            start(1000, 0, WORK);
            assert!(dumps(&value, &style).is_ok());
        }
    }

    #[test]
    fn arguments_are_written_whatever_a_template_has_used_up() {
        start(10, 0, 0);
        assert!(charge(11).is_err());
        assert_eq!(
            python(&serde_json::json!({"text": "long enough", "list": [1, 2]})),
            r#"{"text": "long enough", "list": [1, 2]}"#
        );
        assert_eq!(needed(), 11);
    }
}
