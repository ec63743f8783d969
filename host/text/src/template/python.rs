//! The functions, filters and tests of Jinja that templates use, where Python
//! differs from minijinja.

use super::values::{Result, text};
use super::{json, methods};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};
use std::fmt::Write as _;

/// An environment like the one that transformers creates for chat templates.
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

/// The message of a template's `raise_exception`.
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
