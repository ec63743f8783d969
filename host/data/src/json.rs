//! JSON that is kept as text, so that every number stays as it is written. A
//! binary number cannot be `4.50`, and 64 bits cannot hold 30 digits.

use indexmap::IndexMap;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Result, Value};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Weak};

/// The most levels of lists and objects in a value. With the level of the row,
/// they are the most that `serde_json` reads.
const MOST_LEVELS: usize = 126;

/// A JSON value as its text: without white space, each key of an object once,
/// strings as `serde_json` writes them, and numbers as they were written. Two
/// values are equal where their texts are. Clones share one text.
#[derive(Debug, Clone)]
pub struct Json(Arc<Text>);

/// A text of its own, so that its memory is free even while there are [`WeakJson`]s of it.
#[derive(Debug)]
struct Text(Box<RawValue>);

/// A value that does not stay in memory by itself.
pub(crate) struct WeakJson(Weak<Text>);

impl WeakJson {
    /// The value, if it is still in memory.
    pub(crate) fn upgrade(&self) -> Option<Json> {
        self.0.upgrade().map(Json)
    }
}

/// The fields of a JSON object, such as the columns of a row, in their order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Columns(IndexMap<String, Json>);

impl Json {
    /// The value that serde makes of `value`.
    ///
    /// # Errors
    /// The value cannot be JSON, such as a map whose keys are not strings.
    pub fn of(value: &impl Serialize) -> Result<Self> {
        serde_json::value::to_raw_value(value).map(Self::new)
    }

    fn new(raw: Box<RawValue>) -> Self {
        Self(Arc::new(Text(raw)))
    }

    /// The same value, which does not stay in memory by itself.
    pub(crate) fn downgrade(&self) -> WeakJson {
        WeakJson(Arc::downgrade(&self.0))
    }

    /// The text.
    pub fn as_text(&self) -> &str {
        self.0.0.get()
    }

    /// The value as a type of Rust.
    ///
    /// # Errors
    /// It is not such a value, or has a number that the type cannot hold.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        serde_json::from_str(self.as_text())
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.as_text() == "null"
    }

    /// The content of a string; `None` for any other value.
    pub fn string(&self) -> Option<String> {
        if self.as_text().starts_with('"') { self.parse().ok() } else { None }
    }

    /// A string as it is, any other value as its text.
    pub fn plain_text(&self) -> String {
        self.string().unwrap_or_else(|| self.as_text().to_owned())
    }

    /// The fields of an object; `None` for any other value.
    pub fn fields(&self) -> Option<Columns> {
        if self.as_text().starts_with('{') { self.parse().ok() } else { None }
    }

    /// A field of an object that is there and not null.
    pub fn present(&self, name: &str) -> Option<Self> {
        self.fields()?.remove(name).filter(|value| !value.is_null())
    }

    fn canonical(raw: Box<RawValue>) -> Result<Self> {
        if is_written(raw.get()) {
            return Ok(Self::new(raw));
        }
        let mut text = String::with_capacity(raw.get().len());
        write(raw.get(), &mut text)?;
        if text == raw.get() { Ok(Self::new(raw)) } else { RawValue::from_string(text).map(Self::new) }
    }
}

/// A list or an object that is being written.
enum Level<'t> {
    List,
    Object {
        /// Where it starts.
        start: usize,
        /// Its fields so far: their names as they are written, and where each is with its value.
        fields: IndexMap<Cow<'t, str>, Range<usize>>,
        /// The field that is being written.
        field: Option<(Cow<'t, str>, usize)>,
        /// Whether it has a name twice.
        has_twice: bool,
    },
}

impl Level<'_> {
    /// Notes that a field ends at `end`: of several with the same name, the last one counts, in the place of the first.
    fn end_field(&mut self, end: usize) {
        if let Self::Object { fields, field, has_twice, .. } = self
            && let Some((name, start)) = field.take()
        {
            *has_twice |= fields.insert(name, start..end).is_some();
        }
    }

    /// Ends it, and writes its fields again if not all of them count.
    fn end(mut self, out: &mut String) {
        self.end_field(out.len());
        let Self::Object { start, fields, has_twice, .. } = self else { return out.push(']') };
        if has_twice {
            let written = out.split_off(start + 1);
            for (number, field) in fields.into_values().enumerate() {
                out.push_str(if number == 0 { "" } else { "," });
                out.push_str(&written[field.start - start - 1..field.end - start - 1]);
            }
        }
        out.push('}');
    }
}

/// Writes the JSON value `text` in the form that a [`Json`] has, in one pass: lists may be deep and long.
fn write(text: &str, out: &mut String) -> Result<()> {
    let (mut levels, mut rest): (Vec<Level<'_>>, _) = (Vec::new(), text);
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let Some(first) = rest.chars().next() else { return Ok(()) };
        let length = match first {
            '[' | '{' => {
                if levels.len() == MOST_LEVELS {
                    return Err(serde_json::Error::custom("recursion limit exceeded"));
                }
                levels.push(match first {
                    '[' => Level::List,
                    _ => {
                        let (start, fields) = (out.len(), IndexMap::new());
                        Level::Object { start, fields, field: None, has_twice: false }
                    }
                });
                out.push(first);
                1
            }
            ']' | '}' => {
                if let Some(level) = levels.pop() {
                    level.end(out);
                }
                1
            }
            ',' => {
                if let Some(level) = levels.last_mut() {
                    level.end_field(out.len());
                }
                out.push(first);
                1
            }
            ':' => {
                out.push(first);
                1
            }
            _ => {
                let length = scalar_length(rest);
                let written = as_written(&rest[..length])?;
                let start = out.len();
                out.push_str(&written);
                // In an object, a text outside of a field is the name of the next one.
                if let Some(Level::Object { field: field @ None, .. }) = levels.last_mut() {
                    *field = Some((written, start));
                }
                length
            }
        };
        rest = &rest[length..];
    }
}

/// The bytes of the string, number or word that `text` begins with.
fn scalar_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes[0] != b'"' {
        return text.find([',', ':', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(text.len());
    }
    let mut at = 1;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find(['"', '\\'])) {
        match bytes[at + found] {
            b'"' => return at + found + 1,
            // The character after it is of the escape.
            _ => at += found + 2,
        }
    }
    text.len()
}

/// A string, number or word in the form that a [`Json`] has.
fn as_written(scalar: &str) -> Result<Cow<'_, str>> {
    if is_written(scalar) {
        return Ok(Cow::Borrowed(scalar));
    }
    serde_json::to_string(&serde_json::from_str::<String>(scalar)?).map(Cow::Owned)
}

/// Whether the JSON value `text` certainly has the form of a [`Json`]: a number or a word always has it, and a string
/// has it if all of its escapes are short ones.
fn is_written(text: &str) -> bool {
    let Some(mut rest) = text.strip_prefix('"') else { return !text.starts_with(['{', '[']) };
    while let Some(at) = rest.find('\\') {
        let escape = &rest[at + 1..];
        if !escape.starts_with(['"', '\\', 'b', 'f', 'n', 'r', 't']) {
            return false;
        }
        rest = &escape[1..];
    }
    true
}

impl Default for Json {
    /// `null`.
    fn default() -> Self {
        Self::new(RawValue::NULL.to_owned())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_text() == other.as_text()
    }
}

impl Eq for Json {}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::canonical(Box::<RawValue>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl From<Value> for Json {
    #[expect(clippy::expect_used, reason = "a value of serde_json has a text")]
    fn from(value: Value) -> Self {
        Self::of(&value).expect("a value of serde_json has a text")
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Value::from(text).into()
    }
}

impl Columns {
    /// The value of a column; `None` if there is no such column.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.0.get(name)
    }

    /// The value of a column that is there and not null.
    pub fn present(&self, name: &str) -> Option<&Json> {
        self.get(name).filter(|value| !value.is_null())
    }

    /// The names of the columns, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Bytes of all names and values.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.as_text().len()).sum()
    }

    /// Sets a column. A new column becomes the last one.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Json>) {
        self.0.insert(name.into(), value.into());
    }

    /// Each column with its value changed.
    pub(crate) fn map(self, mut change: impl FnMut(Json) -> Json) -> Self {
        Self(self.0.into_iter().map(|(name, value)| (name, change(value))).collect())
    }

    /// Removes a column and keeps the order of the others.
    pub fn remove(&mut self, name: &str) -> Option<Json> {
        self.0.shift_remove(name)
    }
}

impl From<Map<String, Value>> for Columns {
    fn from(fields: Map<String, Value>) -> Self {
        Self(fields.into_iter().map(|(name, value)| (name, value.into())).collect())
    }
}

impl From<Columns> for Json {
    #[expect(clippy::expect_used, reason = "its keys are strings and its values have texts")]
    fn from(fields: Columns) -> Self {
        Self::of(&fields).expect("its keys are strings and its values have texts")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(written: &str) -> String {
        serde_json::from_str::<Json>(written).unwrap().as_text().to_owned()
    }

    #[test]
    fn numbers_stay_as_they_are_written() {
        for number in [
            "123456789012345678901234567890",
            "-0",
            "4.50",
            "1E5",
            "1e999",
            "0.1000000000000000055511151231257827",
            "18446744073709551616",
        ] {
            assert_eq!(text(number), number);
            assert_eq!(text(&format!(" [ {{ \"a\" : {number} }} ] ")), format!(r#"[{{"a":{number}}}]"#));
        }
    }

    #[test]
    fn what_has_no_such_number_is_as_serde_json_writes_it() {
        for written in [
            r#" { "a" : [ 1 , -2.5, 1e-300, true , null ] , "" : { } , "b" : [ ] } "#,
            r#"{"b":1,"a":2,"b":{"c":1,"c":2}}"#,
            r#"["\u00e9\/\u0041\n\u0000\ud83d\ude00\u007f é", "\"\\"]"#,
            r#"{"\u0061":1}"#,
            r#"["\b\f\n\r\t\"\\", "\\\u001f", "\u001F\n", "\\/\/"]"#,
        ] {
            assert_eq!(text(written), serde_json::from_str::<Value>(written).unwrap().to_string());
        }
    }

    #[test]
    fn what_serde_json_refuses_is_refused() {
        let nested = |levels: usize| format!("{{\"a\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
        for wrong in ["[1,]", "{\"a\":01}", "[\"\\ud800\"]", "{\"\\ud800\":1}", "[nan]", "", "1 2", &nested(127)] {
            assert!(serde_json::from_str::<Value>(wrong).is_err(), "{wrong}");
            assert!(serde_json::from_str::<Columns>(&format!("{{\"x\":{wrong}}}")).is_err(), "{wrong}");
        }
        assert!(serde_json::from_str::<Value>(&nested(126)).is_ok());
        assert!(serde_json::from_str::<Columns>(&nested(126)).is_ok());
        let deep = format!("{{\"a\":{}", "[".repeat(1_000_000));
        assert!(serde_json::from_str::<Columns>(&deep).is_err());
    }

    #[test]
    fn a_value_may_be_deep_and_long() {
        let deep = |inmost: &str, levels: usize| format!("{}{inmost}{}", "[ ".repeat(levels), "]".repeat(levels));
        let long = "1,".repeat(100_000) + "1";
        assert_eq!(text(&deep(&long, 120)), deep(&long, 120).replace(' ', ""));
    }

    #[test]
    fn of_fields_with_one_name_the_last_counts_in_the_place_of_the_first() {
        for (written, value) in [
            (
                r#"{"a":{"b":1,"b":[{"c":2, "c":3}]},"d":4,"\u0061":{"e":5,"f":6,"e":7}}"#,
                r#"{"a":{"e":7,"f":6},"d":4}"#,
            ),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
            (r#"[{"":{},"":[],"b":""}, {"b":{"c":"}","c":"\"}"}}]"#, r#"[{"":[],"b":""},{"b":{"c":"\"}"}}]"#),
        ] {
            assert_eq!(text(written), value);
            assert_eq!(serde_json::from_str::<Value>(value).unwrap(), serde_json::from_str::<Value>(written).unwrap());
        }
    }

    #[test]
    fn columns_keep_their_order() {
        let mut columns: Columns = serde_json::from_str(r#"{"a":1,"b":2,"c":null,"d":{"e":4.50}}"#).unwrap();
        assert!(columns.remove("a").is_some() && columns.present("c").is_none());
        columns.insert("b", "x");
        assert_eq!(columns.names().collect::<Vec<_>>(), ["b", "c", "d"]);
        assert_eq!(columns.bytes(), 3 + "\"x\"null{\"e\":4.50}".len());
        assert_eq!(columns.get("d").unwrap().present("e").unwrap().plain_text(), "4.50");
        assert_eq!(Json::from(columns).as_text(), r#"{"b":"x","c":null,"d":{"e":4.50}}"#);
    }
}
