//! JSON that is kept as text, so that every number stays as it is written. A
//! binary number cannot be `4.50`, and 64 bits cannot hold 30 digits.

use indexmap::IndexMap;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Result, Value};
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
        write(raw.get(), MOST_LEVELS, &mut text)?;
        if text == raw.get() { Ok(Self::new(raw)) } else { RawValue::from_string(text).map(Self::new) }
    }
}

/// Writes the JSON value `text` in the form that a [`Json`] has.
fn write(text: &str, levels: usize, out: &mut String) -> Result<()> {
    let deeper = || levels.checked_sub(1).ok_or_else(|| serde_json::Error::custom("recursion limit exceeded"));
    match text.as_bytes().first() {
        Some(b'{') => {
            let (levels, mut separator) = (deeper()?, '{');
            let fields: IndexMap<String, &RawValue> = serde_json::from_str(text)?;
            if fields.is_empty() {
                out.push(separator);
            }
            for (name, value) in fields {
                out.push(separator);
                out.push_str(&serde_json::to_string(&name)?);
                out.push(':');
                write(value.get(), levels, out)?;
                separator = ',';
            }
            out.push('}');
        }
        Some(b'[') => {
            let (levels, mut separator) = (deeper()?, '[');
            let values: Vec<&RawValue> = serde_json::from_str(text)?;
            if values.is_empty() {
                out.push(separator);
            }
            for value in values {
                out.push(separator);
                write(value.get(), levels, out)?;
                separator = ',';
            }
            out.push(']');
        }
        _ if is_written(text) => out.push_str(text),
        _ => out.push_str(&serde_json::to_string(&serde_json::from_str::<String>(text)?)?),
    }
    Ok(())
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
