//! Calls with a tag for each argument.

use super::format::THOUGHT_END;
use super::parsed::{Broken, ParsedCall, Section};
use super::python;
use super::schema::{argument_schema, is_text, typed};
use super::steps::{Ahead, read, split_once};
use gavel_data::{Columns, Json};
use serde_json::Value;

/// The tags of a format.
pub(super) struct Tags {
    open: &'static str,
    close: &'static str,
    function: &'static str,
    function_end: &'static str,
    parameter: &'static str,
    parameter_end: &'static str,
    /// Whether names stand in quotes: `<invoke name="f">`, or not: `<function=f>`.
    quoted: bool,
    /// Whether the template writes each value on lines of its own.
    has_lines: bool,
    /// Whether the template writes lists and objects as Python does.
    has_python: bool,
    /// The mark that ends a thought.
    thought_end: &'static str,
}

pub(super) const QWEN: Tags = Tags {
    open: "<tool_call>",
    close: "</tool_call>",
    function: "<function=",
    function_end: "</function>",
    parameter: "<parameter=",
    parameter_end: "</parameter>",
    quoted: false,
    has_lines: true,
    has_python: false,
    thought_end: THOUGHT_END,
};
pub(super) const SEED: Tags = Tags {
    open: "<seed:tool_call>",
    close: "</seed:tool_call>",
    has_lines: false,
    has_python: true,
    thought_end: "</seed:think>",
    ..QWEN
};
pub(super) const MINIMAX: Tags = Tags {
    open: "<minimax:tool_call>",
    close: "</minimax:tool_call>",
    function: "<invoke name=",
    function_end: "</invoke>",
    parameter: "<parameter name=",
    parameter_end: "</parameter>",
    quoted: true,
    has_lines: false,
    has_python: false,
    thought_end: THOUGHT_END,
};
/// Of DeepSeek V3.2.
pub(super) const DSML_FUNCTIONS: Tags = Tags {
    open: "<｜DSML｜function_calls>",
    close: "</｜DSML｜function_calls>",
    function: "<｜DSML｜invoke name=",
    function_end: "</｜DSML｜invoke>",
    parameter: "<｜DSML｜parameter name=",
    parameter_end: "</｜DSML｜parameter>",
    quoted: true,
    has_lines: false,
    has_python: false,
    thought_end: THOUGHT_END,
};
/// Of DeepSeek V4.
pub(super) const DSML_TOOLS: Tags =
    Tags { open: "<｜DSML｜tool_calls>", close: "</｜DSML｜tool_calls>", ..DSML_FUNCTIONS };

/// A tag with a name.
struct Named<'t> {
    name: &'t str,
    /// What follows the name in the tag.
    attributes: &'t str,
    rest: &'t str,
}

impl Tags {
    /// The opening tag, the functions with their arguments, perhaps several, and the closing tag; the reply may end
    /// before or within the closing tag.
    pub(super) fn section(&self, text: &str, tools: &[Value]) -> Option<Section> {
        let body = text.strip_prefix(self.open)?;
        let reader = Reader { tags: self, text: body, tools };
        Some(match reader.functions() {
            Ok((calls, after)) => Section::whole(text, after, calls),
            Err(broken) => Section::broken(text, broken.after(self.open.len()), self.close, self.thought_end),
        })
    }

    /// The tag that begins with `tag` and has a name.
    fn named<'t>(&self, text: &'t str, tag: &str) -> Option<Named<'t>> {
        let rest = text.strip_prefix(tag)?;
        let quote = rest.chars().next().filter(|quote| self.quoted && matches!(quote, '"' | '\''));
        let (name, rest) = match quote {
            Some('"') => split_once(&rest[1..], "\"")?,
            Some(_) => split_once(&rest[1..], "'")?,
            None => split_once(rest, ">").map(|(name, _)| (name, &rest[name.len()..]))?,
        };
        let (attributes, rest) = split_once(rest, ">")?;
        Some(Named { name: name.trim(), attributes: attributes.trim(), rest })
    }

    fn name_of(&self, tag: &str) -> String {
        if self.quoted { format!("`{tag}\"NAME\">`") } else { format!("`{tag}NAME>`") }
    }
}

struct Reader<'t, 'a> {
    tags: &'a Tags,
    /// What follows the opening tag.
    text: &'t str,
    tools: &'a [Value],
}

impl<'t> Reader<'t, '_> {
    /// The calls, and the text after them.
    fn functions(&self) -> Result<(Vec<ParsedCall>, &'t str), Broken> {
        let Tags { open, close, function, function_end, .. } = *self.tags;
        let mut ahead = Ahead::new(self.text, [open, self.tags.parameter, self.tags.parameter_end]);
        let (mut calls, mut rest) = (Vec::new(), self.text.trim_start());
        loop {
            let (call, next) = self.function(rest, &mut ahead)?;
            calls.push(call);
            rest = next.trim_start();
            if !rest.starts_with(function) {
                break;
            }
        }
        match rest.strip_prefix(close) {
            Some(next) => Ok((calls, next)),
            None if close.starts_with(rest) => Ok((calls, "")),
            None if rest.starts_with(open) => Ok((calls, rest)),
            None => Err(self.broken(rest, &[open, function], format!("it does not end with `{function_end}`"))),
        }
    }

    /// The tag of a function, the tag of each argument with a value, then the end of the function.
    fn function(&self, text: &'t str, ahead: &mut Ahead<'t, 3>) -> Result<(ParsedCall, &'t str), Broken> {
        let Tags { close, function, function_end, parameter, parameter_end, .. } = *self.tags;
        let Some(Named { name, rest: mut next, .. }) = self.tags.named(text, function) else {
            let why = format!("it does not begin with {}", self.tags.name_of(function));
            return Err(self.broken(text, &[function], why));
        };
        if name.is_empty() {
            return Err(Broken::at(self.text, text, "the function has no name"));
        }
        next = next.trim_start();
        let mut arguments = Columns::default();
        loop {
            if let Some(next) = next.strip_prefix(function_end) {
                let arguments = Json::from(arguments).plain_text();
                return Ok((ParsedCall { name: name.to_owned(), arguments, id: None }, next));
            }
            let Some(Named { name: key, attributes, rest }) = self.tags.named(next, parameter) else {
                let why = match next.is_empty() || next.starts_with(close) {
                    true => format!("it does not end with `{function_end}`"),
                    false => {
                        format!("something other than {} stands between its arguments", self.tags.name_of(parameter))
                    }
                };
                return Err(self.broken(next, &[parameter, function_end], why));
            };
            let (value, after) = self.value(rest, ahead).map_err(|end| Broken {
                is_cut_off: end.is_empty(),
                ..Broken::at(self.text, end, format!("the argument `{key}` does not end with `{parameter_end}`"))
            })?;
            arguments.insert(key, self.typed(value, attributes, argument_schema(self.tools, name, key)));
            next = after;
        }
    }

    /// `rest` does not go on with one of these tags. It is cut off if it ends within one of them.
    fn broken(&self, rest: &str, tags: &[&str], why: String) -> Broken {
        let is_open = |tag: &&str| rest.starts_with(*tag) && !tag.ends_with('>') && !rest.contains('>');
        let broken = Broken::before(self.text, rest, tags, why);
        Broken { is_cut_off: broken.is_cut_off || tags.iter().any(is_open), ..broken }
    }

    /// The value that `text` begins with, and the text after its closing tag and white space. The error is the end of
    /// the function that comes before the end of the value, or nothing if the text ends before both.
    ///
    /// A value is not escaped and may have any tag in it. It ends at the closing tag that is followed by another argument
    /// or the end of the call; and where the value begins on a line of its own, as templates write it, there is a line
    /// break before that tag or after it.
    fn value(&self, text: &'t str, ahead: &mut Ahead<'t, 3>) -> Result<(&'t str, &'t str), &'t str> {
        let Tags { close, function_end, parameter, parameter_end, .. } = *self.tags;
        let has_lines = self.tags.has_lines && text.starts_with('\n');
        for (at, _) in text.match_indices("</") {
            let (value, end) = text.split_at(at);
            let is_placed = |next: &str, tag: &str| {
                let gap = &end[tag.len()..end.len() - next.len()];
                !has_lines || value.ends_with('\n') || gap.contains('\n')
            };
            if let Some(next) = end.strip_prefix(parameter_end).map(str::trim_start) {
                let follows = [parameter, close].iter().any(|tag| next.starts_with(tag)) || next.is_empty();
                if (follows || self.is_function_end(next, ahead)) && is_placed(next, parameter_end) {
                    read(at);
                    if !self.tags.has_lines {
                        return Ok((value, next));
                    }
                    // The line breaks that the template puts around a value.
                    let value = value.strip_prefix('\n').unwrap_or(value);
                    return Ok((value.strip_suffix('\n').unwrap_or(value), next));
                }
            }
            let next = end.strip_prefix(function_end).map(str::trim_start);
            if next.is_some_and(|next| is_placed(next, function_end)) && self.is_function_end(end, ahead) {
                read(at);
                return Err(end);
            }
        }
        read(text.len());
        Err("")
    }

    /// Whether the text begins with the end of a function and what may follow it.
    fn is_function_end(&self, text: &'t str, ahead: &mut Ahead<'t, 3>) -> bool {
        let Tags { open, close, function, function_end, .. } = *self.tags;
        let Some(next) = text.strip_prefix(function_end).map(str::trim_start) else { return false };
        let Some(after) = next.strip_prefix(close) else {
            return close.starts_with(next) || next.starts_with(open) || next.starts_with(function);
        };
        // A closing tag without its opening tag follows if this was a call in the text of a value.
        let [open, parameter, parameter_end] = ahead.of(after);
        parameter_end >= open.min(parameter)
    }

    /// A value that is JSON is read as JSON, unless the tag or the tool's schema has it as a text.
    fn typed(&self, value: &str, attributes: &str, schema: Option<&Value>) -> Json {
        match attributes.strip_prefix("string=").map(|kind| kind.trim_matches(['"', '\''])) {
            Some("true") => Json::from(value),
            Some(_) => typed(value),
            None if schema.is_some_and(is_text) => Json::from(value),
            None if self.tags.has_python => python::literal(value).unwrap_or_else(|| typed(value)),
            None => typed(value),
        }
    }
}
