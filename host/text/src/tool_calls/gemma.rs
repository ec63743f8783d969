//! Calls with keys and values as in JavaScript, where a mark stands for the quotes.

use super::format::THOUGHT_END;
use super::parsed::{Broken, ParsedCall, Section};
use super::schema::{argument_schema, is_other, is_text, typed};
use super::steps::{read, split_once};
use gavel_data::{Columns, Json};
use serde_json::Value;

/// The marks of a format.
pub(super) struct Marks {
    open: &'static str,
    close: &'static str,
    quote: &'static str,
    /// The mark that ends a thought.
    thought_end: &'static str,
}

pub(super) const GEMMA: Marks =
    Marks { open: "<|tool_call>", close: "<tool_call|>", quote: "<|\"|>", thought_end: "<channel|>" };
pub(super) const FUNCTION_GEMMA: Marks =
    Marks { open: "<start_function_call>", close: "<end_function_call>", quote: "<escape>", thought_end: THOUGHT_END };

const CALL: &str = "call:";
/// The most levels of lists and objects in an argument.
const LEVELS: usize = 100;

impl Marks {
    /// `call:NAME{KEY:VALUE,…}` between the marks. The reply may end before or within the last one.
    pub(super) fn section(&self, text: &str, tools: &[Value]) -> Option<Section> {
        let body = text.strip_prefix(self.open)?;
        let mut reader = Reader { marks: self, text: body, rest: body };
        Some(match reader.call(tools) {
            Ok(call) => Section::whole(text, reader.rest, vec![call]),
            Err(broken) => Section::broken(text, broken.after(self.open.len()), self.close, self.thought_end),
        })
    }
}

struct Reader<'t, 'a> {
    marks: &'a Marks,
    text: &'t str,
    /// What was not read yet.
    rest: &'t str,
}

impl<'t> Reader<'t, '_> {
    fn call(&mut self, tools: &[Value]) -> Result<ParsedCall, Broken> {
        self.space();
        self.take(CALL)?;
        let name = self.until(&['{', '<']).trim();
        if name.is_empty() {
            return Err(self.broken(&[], "the function has no name"));
        }
        self.take("{")?;
        let typed = |key: &str, value: String, quoted: bool| {
            let schema = argument_schema(tools, name, key);
            match quoted {
                true if schema.is_some_and(is_other) => typed(&value),
                false if schema.is_some_and(is_text) => Json::from(value.as_str()),
                true => Json::from(value.as_str()),
                false => bare(&value),
            }
        };
        let arguments = self.fields(LEVELS, &typed)?;
        self.space();
        match self.rest.strip_prefix(self.marks.close) {
            Some(after) => self.rest = after,
            None if self.marks.close.starts_with(self.rest) => self.rest = "",
            None => return Err(self.broken(&[], format!("`{}` does not follow the arguments", self.marks.close))),
        }
        Ok(ParsedCall { name: name.to_owned(), arguments: Json::from(arguments).plain_text(), id: None })
    }

    /// The fields of an object and its closing brace.
    fn fields(&mut self, levels: usize, typed: &dyn Fn(&str, String, bool) -> Json) -> Result<Columns, Broken> {
        let mut fields = Columns::default();
        self.space();
        while !self.next('}') {
            let key = match self.quoted()? {
                Some(key) => key,
                None => self.until(&[':', ',', '{', '}', '[', ']', '<']).trim(),
            };
            self.space();
            self.take(":")?;
            let value = self.value(levels, &|value, quoted| typed(key, value, quoted))?;
            fields.insert(key, value);
            self.separator('}')?;
        }
        Ok(fields)
    }

    /// The values of a list and its closing bracket.
    fn items(&mut self, levels: usize) -> Result<Json, Broken> {
        let mut items = Vec::new();
        self.space();
        while !self.next(']') {
            items.push(self.value(levels, &plain)?);
            self.separator(']')?;
        }
        Ok(Json::of(&items).unwrap_or_default())
    }

    fn value(&mut self, levels: usize, typed: &dyn Fn(String, bool) -> Json) -> Result<Json, Broken> {
        self.space();
        let deeper = levels.checked_sub(1);
        if let Some(text) = self.quoted()? {
            return Ok(typed(text.to_owned(), true));
        }
        if self.rest.starts_with(['{', '[']) {
            let levels = deeper.ok_or_else(|| self.broken(&[], "its arguments have too many levels"))?;
            return match self.next('{') {
                true => Ok(self.fields(levels, &|_, value, quoted| plain(value, quoted))?.into()),
                false => {
                    self.next('[');
                    self.items(levels)
                }
            };
        }
        let value = self.until(&[',', '}', ']', '<']).trim();
        match value.is_empty() || self.rest.is_empty() {
            true => Err(self.broken(&[], "a value is missing")),
            false => Ok(typed(value.to_owned(), false)),
        }
    }

    /// The text between quotes, where there is one.
    fn quoted(&mut self) -> Result<Option<&'t str>, Broken> {
        let Some(after) = self.rest.strip_prefix(self.marks.quote) else { return Ok(None) };
        let (text, rest) = split_once(after, self.marks.quote).ok_or_else(|| {
            let why = format!("a text does not end with `{}`", self.marks.quote);
            Broken::before(self.text, "", &[""], why)
        })?;
        self.rest = rest;
        Ok(Some(text))
    }

    /// Reads what stands between two values, or leaves the character that closes them.
    fn separator(&mut self, close: char) -> Result<(), Broken> {
        self.space();
        if self.rest.starts_with(close) {
            return Ok(());
        }
        self.take(",")
            .map_err(|_| self.broken(&[], format!("something other than `,` or `{close}` follows a value")))?;
        self.space();
        Ok(())
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn next(&mut self, char: char) -> bool {
        let next = self.rest.strip_prefix(char);
        self.rest = next.unwrap_or(self.rest);
        next.is_some()
    }

    fn take(&mut self, mark: &str) -> Result<(), Broken> {
        self.rest = self.rest.strip_prefix(mark).ok_or_else(|| self.broken(&[mark], format!("`{mark}` is missing")))?;
        Ok(())
    }

    /// The text before the first of these characters.
    fn until(&mut self, ends: &[char]) -> &'t str {
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        read(end);
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text
    }

    fn broken(&self, wanted: &[&str], why: impl Into<String>) -> Broken {
        let broken = Broken::before(self.text, self.rest, wanted, why);
        Broken { is_cut_off: broken.is_cut_off || self.rest.is_empty(), ..broken }
    }
}

fn plain(value: String, quoted: bool) -> Json {
    if quoted { Json::from(value.as_str()) } else { bare(&value) }
}

/// A value without quotes. The template writes null as Python does.
fn bare(value: &str) -> Json {
    if value == "None" { Json::default() } else { typed(value) }
}
