//! Jinja in Python, where it differs from Jinja in Rust: functions, filters
//! and tests that templates use, and how values become text.

use super::{json, methods};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};
use std::fmt::Write as _;

pub(super) type Result<T> = std::result::Result<T, Error>;

/// An environment like the one that transformers makes for chat templates.
pub(super) fn environment() -> Result<Environment<'static>> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_formatter(|out, _, value| out.write_str(&text(value)).map_err(Error::from));
    environment.set_unknown_method_callback(methods::call);
    environment.add_function("raise_exception", raise_exception);
    environment.add_filter("tojson", tojson);
    environment.add_filter("string", |value: Value| text(&value));
    environment
        .add_filter("trim", |value: Value, chars: Option<String>| methods::strip(&text(&value), chars.as_deref()));
    environment.add_filter("wordcount", |value: String| value.split_whitespace().count());
    environment.add_filter("join", join);
    environment.add_filter("indent", indent);
    environment.add_filter("capitalize", |value: Value| methods::capitalize(&text(&value)));
    environment.add_filter("length", length);
    environment.add_filter("count", length);
    environment.add_filter("replace", replace);
    environment.add_test("iterable", |value: Value| !value.is_none() && (is_text(&value) || value.try_iter().is_ok()));
    environment.add_test("sequence", |value: Value| {
        value.is_undefined() || is_text(&value) || matches!(value.kind(), ValueKind::Seq | ValueKind::Map)
    });
    environment.add_test("number", |value: Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool));
    Ok(environment)
}

fn is_text(value: &Value) -> bool {
    value.kind() == ValueKind::String
}

/// What a template says of a conversation that it does not take.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Raised(pub(super) String);

fn raise_exception(message: Value) -> Result<Value> {
    let message = text(&message);
    Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Raised(message)))
}

/// `json.dumps` of Python with transformers' defaults.
fn tojson(value: &Value, positional: Rest<Value>, options: Kwargs) -> Result<String> {
    let option = |index: usize, name: &str| -> Result<Option<Value>> {
        let given = match positional.get(index) {
            Some(value) => Some(value.clone()),
            None => options.get::<Option<Value>>(name)?,
        };
        Ok(given.filter(|value| !value.is_none() && !value.is_undefined()))
    };
    let indent = match option(1, "indent")? {
        None => None,
        Some(width) => Some(match width.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(width)?),
        }),
    };
    let (item, key) = match option(2, "separators")? {
        None => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
        Some(pair) => (text(&pair.get_item_by_index(0)?), text(&pair.get_item_by_index(1)?)),
    };
    let style = json::Style {
        ensure_ascii: option(0, "ensure_ascii")?.is_some_and(|value| value.is_true()),
        sort_keys: option(3, "sort_keys")?.is_some_and(|value| value.is_true()),
        indent,
        item,
        key,
    };
    options.assert_all_used()?;
    json::dumps(value, &style)
}

fn length(value: &Value) -> Result<usize> {
    match value.len() {
        Some(length) => Ok(length),
        None if value.is_undefined() => Ok(0),
        None => Err(Error::new(ErrorKind::InvalidOperation, format!("a value of kind {} has no length", value.kind()))),
    }
}

fn replace(value: Value, old: Value, new: Value, count: Option<i64>) -> String {
    let (value, old, new) = (text(&value), text(&old), text(&new));
    match count.and_then(|count| usize::try_from(count).ok()) {
        Some(count) => value.replacen(&old, &new, count),
        None => value.replace(&old, &new),
    }
}

fn join(value: &Value, between: Option<Value>, attribute: Option<String>, options: Kwargs) -> Result<String> {
    let between = match between {
        Some(between) => Some(between),
        None => options.get::<Option<Value>>("d")?,
    };
    let attribute = match attribute {
        Some(attribute) => Some(attribute),
        None => options.get::<Option<String>>("attribute")?,
    };
    options.assert_all_used()?;
    let between = between.map(|between| text(&between)).unwrap_or_default();
    let mut joined = String::new();
    for (index, item) in value.try_iter()?.enumerate() {
        let item = match &attribute {
            Some(attribute) => attribute.split('.').try_fold(item, |item, name| item.get_attr(name))?,
            None => item,
        };
        let gap = if index == 0 { "" } else { &between };
        let _ = write!(joined, "{gap}{}", text(&item));
    }
    Ok(joined)
}

fn indent(value: Value, positional: Rest<Value>, options: Kwargs) -> Result<String> {
    let option = |index: usize, name: &str| -> Result<Option<Value>> {
        match positional.get(index) {
            Some(value) => Ok(Some(value.clone())),
            None => options.get(name),
        }
    };
    let width = match option(0, "width")? {
        None => " ".repeat(4),
        Some(width) => match width.as_str() {
            Some(text) => text.to_owned(),
            None => " ".repeat(usize::try_from(width)?),
        },
    };
    let first = option(1, "first")?.is_some_and(|value| value.is_true());
    let blank = option(2, "blank")?.is_some_and(|value| value.is_true());
    options.assert_all_used()?;
    let value = text(&value);
    let lines = value.split('\n').enumerate().map(|(index, line)| match (index, line) {
        (0, line) if !first => line.to_owned(),
        (0, line) => format!("{width}{line}"),
        (_, "") if !blank => String::new(),
        (_, line) => format!("{width}{line}"),
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// `str(value)`
pub(super) fn text(value: &Value) -> String {
    match (value.kind(), value.as_str()) {
        (_, Some(text)) => text.to_owned(),
        (ValueKind::Undefined, _) => String::new(),
        _ => {
            let mut out = String::new();
            repr(&mut out, value);
            out
        }
    }
}

/// `repr(value)`
fn repr(out: &mut String, value: &Value) {
    match value.kind() {
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => repr_text(out, value.as_str().unwrap_or_default()),
        ValueKind::Undefined => out.push_str("Undefined"),
        // A slice of a list is an iterable.
        ValueKind::Seq | ValueKind::Iterable => {
            let tuple = value.downcast_object_ref::<Tuple>().is_some();
            let items: Vec<Value> = value.try_iter().into_iter().flatten().collect();
            out.push(if tuple { '(' } else { '[' });
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                repr(out, item);
            }
            out.push_str(match (tuple, items.len()) {
                (true, 1) => ",)",
                (true, _) => ")",
                (false, _) => "]",
            });
        }
        ValueKind::Map if value.as_object().is_some() => {
            out.push('{');
            for (index, key) in value.try_iter().into_iter().flatten().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                repr(out, &key);
                out.push_str(": ");
                repr(out, &value.get_item(&key).unwrap_or_default());
            }
            out.push('}');
        }
        _ => {
            let _ = write!(out, "{value}");
        }
    }
}

fn repr_text(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for char in text.chars() {
        let code = u32::from(char);
        let _ = match char {
            '\\' => write!(out, "\\\\"),
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            char if char == quote => write!(out, "\\{char}"),
            char if is_printable(char) => write!(out, "{char}"),
            _ if code < 0x100 => write!(out, "\\x{code:02x}"),
            _ if code < 0x1_0000 => write!(out, "\\u{code:04x}"),
            _ => write!(out, "\\U{code:08x}"),
        };
    }
    out.push(quote);
}

/// `str.isprintable`. Rust escapes the same characters, and combining ones at
/// the beginning of a text.
fn is_printable(char: char) -> bool {
    !char.is_control() && !format!("a{char}").escape_debug().any(|escaped| escaped == '{' && char != '{')
}

/// A number as Python writes it.
pub(super) fn number(value: &Value) -> String {
    match f64::try_from(value.clone()) {
        Ok(float) if !value.is_integer() => self::float(float),
        _ => value.to_string(),
    }
}

/// `repr` of a float: the shortest digits that give it back, with an exponent
/// from 1e16 on and below 1e-4.
fn float(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "nan".into() } else { format!("{value}") };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{value:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_in_python() {
        let cases = [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (5e-324, "5e-324"),
            (1e100, "1e+100"),
            (f64::INFINITY, "inf"),
        ];
        for (value, expected) in cases {
            assert_eq!(float(value), expected);
        }
    }

    #[test]
    fn texts_in_lists_are_quoted_as_in_python() {
        let quoted = |text: &str| {
            let mut out = String::new();
            repr_text(&mut out, text);
            out
        };
        assert_eq!(quoted("it's"), "\"it's\"");
        assert_eq!(quoted("'\""), "'\\'\"'");
        assert_eq!(
            quoted("é e\u{301} 🦀\u{a0}\u{7f}\u{200b}\u{e000}\0"),
            "'é e\u{301} 🦀\\xa0\\x7f\\u200b\\ue000\\x00'"
        );
    }
}
