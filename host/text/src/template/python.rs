//! The functions, filters and tests of Jinja that templates use, where Python
//! differs from minijinja.

use super::budget::{
    CHANGE, COMPARED, ITEM, ITEM_BYTES, KEEP, KEEP_BLOCK, KEEP_IN, MEASURE, SEARCH, SEARCHED, SPELL, SPREAD, charge,
    charge_bytes, check_format, check_text, compare, counted_text, keep, keep_in, measure, search, spread,
};
use super::values::{Result, text};
use super::{counted, json, methods};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use std::fmt::Write as _;

/// An environment like the environment that transformers creates for chat templates.
pub(super) fn environment() -> Result<Environment<'static>> {
    let mut environment = Environment::new();
    environment.set_syntax(syntax()?);
    environment.set_formatter(|out, _, value| {
        let text = counted_text(value.clone())?;
        out.write_str(&text).map_err(Error::from)
    });
    environment.add_function(MEASURE.trim_end_matches('('), measure);
    environment.add_function(KEEP.trim_end_matches('('), keep);
    environment.add_function(KEEP_IN.trim_end_matches('('), keep_in);
    environment.add_function(SEARCHED.trim_end_matches('('), search);
    environment.add_function(COMPARED.trim_end_matches('('), compare);
    environment.add_function(SPREAD.trim_end_matches('('), spread);
    counted::add(&mut environment);
    environment.set_unknown_method_callback(methods::call);
    environment.add_filter(KEEP_BLOCK.trim_start_matches('|'), keep);
    environment.add_function("range", |lower: isize, upper: Option<isize>, step: Option<isize>| {
        measure(minijinja::functions::range(lower, upper, step)?)
    });
    environment.add_function("raise_exception", raise_exception);
    environment.add_filter("tojson", tojson);
    let inner = Value::from_function(minijinja::filters::format);
    environment.add_filter("format", move |state: &mut State, args: Rest<ValueOrKwargs>| format(&inner, state, args));
    environment.add_filter("list", list);
    environment.add_filter("sum", sum);
    // No chat template needs them, and nothing limits the memory or the time that they take.
    ["pprint", "chain", "zip"].into_iter().for_each(|filter| environment.remove_filter(filter));
    environment.remove_global("debug");
    environment.add_filter("string", counted_text);
    environment.add_filter("trim", |value: Value, chars: Option<String>| {
        methods::strip(&counted_text(value)?, chars.as_deref())
    });
    environment.add_filter("wordcount", |value: Value| {
        let text = counted_text(value)?;
        charge_bytes(text.len(), SEARCH)?;
        Ok(text.split_whitespace().count())
    });
    environment.add_filter("join", join);
    environment.add_filter("indent", indent);
    environment.add_filter("capitalize", |value: Value| {
        let text = counted_text(value)?;
        charge_bytes(text.len(), CHANGE)?;
        Ok(methods::capitalize(&text))
    });
    environment.add_filter("length", length);
    environment.add_filter("count", length);
    environment.add_filter("replace", replace);
    environment.add_test("iterable", |value: Value| {
        let is_list = matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::Map);
        !value.is_none() && (is_text(&value) || is_list || value.try_iter().is_ok())
    });
    environment.add_test("sequence", |value: Value| {
        value.is_undefined() || is_text(&value) || matches!(value.kind(), ValueKind::Seq | ValueKind::Map)
    });
    environment.add_test("number", |value: Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool));
    Ok(environment)
}

/// The syntax of chat templates.
pub(super) fn syntax() -> Result<SyntaxConfig> {
    SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()
}

fn is_text(value: &Value) -> bool {
    value.kind() == ValueKind::String
}

/// The message of a template's `raise_exception`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Raised(pub(super) String);

fn raise_exception(message: Value) -> Result<Value> {
    let message = counted_text(message)?;
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
            None => spaces(&width)?,
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

/// The items of a list, or the characters of a text.
fn list(state: &State, value: Value) -> Result<Value> {
    if let Some(text) = value.as_str() {
        charge_bytes(text.len(), SPELL)?;
        charge(text.len().saturating_mul(ITEM_BYTES))?;
    }
    minijinja::filters::list(state, measure(value)?)
}

/// A line's indentation of this width.
fn spaces(width: &Value) -> Result<String> {
    let width = usize::try_from(width.clone())?;
    charge(width)?;
    Ok(" ".repeat(width))
}

/// The sum of numbers; lists are not joined.
fn sum(state: &State, values: Value, attribute: Option<&str>, start: Option<Value>, options: Kwargs) -> Result<Value> {
    if start.as_ref().is_some_and(|start| !start.is_number())
        || options.has("start") && !options.get::<Value>("start")?.is_number()
    {
        return Err(Error::new(ErrorKind::InvalidOperation, "sum: start is not a number"));
    }
    charge_attribute(&values, attribute)?;
    minijinja::filters::sum(state, measure(values)?, attribute, start, options)
}

/// Counts the search for an attribute, which may be a long path, in each item.
fn charge_attribute(values: &Value, attribute: Option<&str>) -> Result<()> {
    let length = attribute.map_or(0, str::len);
    charge_bytes(values.len().unwrap_or_default().saturating_mul(length), CHANGE)
}

fn format(inner: &Value, state: &mut State, args: Rest<ValueOrKwargs>) -> Result<Value> {
    let args = args.into_values();
    if let Some((template, values)) = args.split_first() {
        check_format(template.as_str().unwrap_or_default(), values)?;
    }
    measure(inner.call(state, &args)?)
}

fn length(value: &Value) -> Result<usize> {
    match value.len() {
        Some(length) => Ok(length),
        None if value.is_undefined() => Ok(0),
        None => Err(Error::new(ErrorKind::InvalidOperation, format!("a value of kind {} has no length", value.kind()))),
    }
}

fn replace(value: Value, old: Value, new: Value, count: Option<i64>) -> Result<String> {
    methods::replace(&counted_text(value)?, &counted_text(old)?, &counted_text(new)?, count)
}

fn join(value: &Value, between: Option<Value>, attribute: Option<String>, options: Kwargs) -> Result<String> {
    let value = &measure(value.clone())?;
    let between = match between {
        Some(between) => Some(between),
        None => options.get::<Option<Value>>("d")?,
    };
    let attribute = match attribute {
        Some(attribute) => Some(attribute),
        None => options.get::<Option<String>>("attribute")?,
    };
    options.assert_all_used()?;
    charge_attribute(value, attribute.as_deref())?;
    let between = between.map(counted_text).transpose()?.unwrap_or_default();
    let mut joined = String::new();
    charge_bytes(value.len().unwrap_or_default(), 4 * ITEM)?;
    for (index, item) in value.try_iter()?.enumerate() {
        let item = match &attribute {
            Some(attribute) => attribute.split('.').try_fold(item, |item, name| item.get_attr(name))?,
            None => item,
        };
        let gap = if index == 0 { "" } else { &between };
        let item = counted_text(item)?;
        charge(gap.len())?;
        check_text(joined.len().saturating_add(gap.len() + item.len()))?;
        let _ = write!(joined, "{gap}{item}");
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
            None => spaces(&width)?,
        },
    };
    let first = option(1, "first")?.is_some_and(|value| value.is_true());
    let blank = option(2, "blank")?.is_some_and(|value| value.is_true());
    options.assert_all_used()?;
    let value = counted_text(value)?;
    charge(value.split('\n').count().saturating_mul(width.len()))?;
    let lines = value.split('\n').enumerate().map(|(index, line)| match (index, line) {
        (0, line) if !first => line.to_owned(),
        (0, line) => format!("{width}{line}"),
        (_, "") if !blank => String::new(),
        (_, line) => format!("{width}{line}"),
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}
