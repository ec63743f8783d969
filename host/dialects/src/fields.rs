//! The fields of an object in a request. Each is taken by name, and a field that is left over is refused.

use crate::refused::Refused;
use serde_json::{Map, Value};

/// The fields of an object that are not yet taken. A `null` is as good as no field.
#[derive(Debug)]
pub(crate) struct Fields {
    /// Where the object is in the request, for errors.
    at: String,
    map: Map<String, Value>,
}

impl Fields {
    pub(crate) fn of(value: Value, at: impl Into<String>) -> Result<Self, Refused> {
        let at = at.into();
        match value {
            Value::Object(map) => Ok(Self { at, map }),
            _ if at.is_empty() => Err(Refused::field("body", " must be an object")),
            other => Err(Refused::field(at, format!(" must be an object, not {}", kind(&other)))),
        }
    }

    /// An object of Google's, whose clients write `maxItems` and `max_items` for the same field.
    pub(crate) fn camel(value: Value, at: impl Into<String>) -> Result<Self, Refused> {
        let Self { at, map } = Self::of(value, at)?;
        let map = map.into_iter().map(|(name, value)| (in_camel_case(name), value)).collect();
        Ok(Self { at, map })
    }

    /// Where a field is in the request.
    pub(crate) fn path(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    /// Where the object is in the request.
    pub(crate) fn at(&self) -> &str {
        &self.at
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| !value.is_null())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Refused> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(Refused::field(self.path(name), format!(" must be a text, not {}", kind(&other)))),
        }
    }

    pub(crate) fn need_text(&mut self, name: &str) -> Result<String, Refused> {
        self.text(name)?.ok_or_else(|| Refused::field(self.path(name), " is missing"))
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, Refused> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => {
                Err(Refused::field(self.path(name), format!(" must be true or false, not {}", kind(&other))))
            }
        }
    }

    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<Value>, Refused> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => Ok(list),
            Some(other) => Err(Refused::field(self.path(name), format!(" must be a list, not {}", kind(&other)))),
        }
    }

    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Self>, Refused> {
        let at = self.path(name);
        self.take(name).map(|value| Self::of(value, at)).transpose()
    }

    /// Drops fields that change nothing about what is generated.
    pub(crate) fn ignore(&mut self, names: &[&str]) {
        names.iter().for_each(|name| drop(self.map.remove(*name)));
    }

    /// Refuses a field unless it asks for what is so anyway.
    pub(crate) fn only(&mut self, name: &str, so: &[&str], hint: &str) -> Result<(), Refused> {
        match self.take(name) {
            Some(value) if !is_one_of(&value, so) => {
                Err(Refused::unsupported(self.path(name), if hint.is_empty() { "leave it out" } else { hint }))
            }
            _ => Ok(()),
        }
    }

    /// Refuses the fields that nobody took.
    pub(crate) fn done(self) -> Result<(), Refused> {
        match self.map.iter().find(|(_, value)| !value.is_null()) {
            Some((name, _)) => Err(Refused::unsupported(self.path(name), "leave it out")),
            None => Ok(()),
        }
    }
}

/// Whether a value is one of these, which are written as JSON or as the text itself.
fn is_one_of(value: &Value, so: &[&str]) -> bool {
    match value {
        Value::String(text) => so.contains(&text.as_str()),
        Value::Bool(flag) => so.contains(&if *flag { "true" } else { "false" }),
        Value::Array(list) => list.is_empty() && so.contains(&"[]"),
        _ => false,
    }
}

/// What a value is, for errors.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// `max_items` as `maxItems`.
fn in_camel_case(name: String) -> String {
    if !name.contains('_') || name.starts_with('_') {
        return name;
    }
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}
