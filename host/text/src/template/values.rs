//! Writes values as Python does.

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, Value};
use std::fmt::Write as _;

/// What a value counts beside its text.
pub(super) const VALUE_BYTES: usize = 8;
/// The deepest nesting of lists and objects, as in JSON.
const DEPTH: usize = 128;

pub(super) type Result<T> = std::result::Result<T, Error>;

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

/// How large a value is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// Its bytes as a text, roughly.
    pub bytes: usize,
    /// The value itself and all values in it.
    pub items: usize,
}

impl Extent {
    /// The bytes of its texts alone.
    pub fn text_bytes(self) -> usize {
        self.bytes - self.items * VALUE_BYTES
    }
}

/// The extent of `value`; `None` if it has more than `most` bytes, or is nested too deeply. A list may have the same list
/// many times.
pub(super) fn extent_within(value: &Value, most: usize) -> Option<Extent> {
    fn count(extent: &mut Extent, value: &Value, most: usize, depth: usize) -> Option<()> {
        extent.items += 1;
        extent.bytes = extent.bytes.saturating_add(VALUE_BYTES + value.as_str().map_or(0, str::len));
        if extent.bytes > most {
            return None;
        }
        match value.kind() {
            ValueKind::Seq | ValueKind::Iterable | ValueKind::Map if depth == DEPTH => None,
            ValueKind::Seq | ValueKind::Iterable => {
                value.try_iter().ok()?.try_for_each(|item| count(extent, &item, most, depth + 1))
            }
            ValueKind::Map => value.try_iter().ok()?.try_for_each(|key| {
                count(extent, &key, most, depth + 1)?;
                count(extent, &value.get_item(&key).ok()?, most, depth + 1)
            }),
            _ => Some(()),
        }
    }
    let mut extent = Extent::default();
    count(&mut extent, value, most, 0)?;
    Some(extent)
}

/// Whether the value is a namespace or has one in it. It must not be nested more deeply than [`extent_within`] allows.
pub(super) fn has_namespace(value: &Value) -> bool {
    // The engine has no other sign of it.
    let is_namespace =
        |value: &Value| value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"));
    let is_within = |mut items: minijinja::value::ValueIter| items.any(|item| has_namespace(&item));
    match value.kind() {
        ValueKind::Seq => value.try_iter().is_ok_and(is_within),
        ValueKind::Map => {
            is_namespace(value)
                || value
                    .try_iter()
                    .is_ok_and(|mut keys| keys.any(|key| value.get_item(&key).is_ok_and(|item| has_namespace(&item))))
        }
        _ => false,
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
            char if is_printable(char) => out.write_char(char),
            _ if code < 0x100 => write!(out, "\\x{code:02x}"),
            _ if code < 0x1_0000 => write!(out, "\\u{code:04x}"),
            _ => write!(out, "\\U{code:08x}"),
        };
    }
    out.push(quote);
}

/// `str.isprintable`. Rust escapes the same characters, and in addition
/// combining ones at the beginning of a text.
fn is_printable(char: char) -> bool {
    if char.is_ascii() {
        return !char.is_control();
    }
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
