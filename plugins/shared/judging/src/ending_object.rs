//! The JSON object that a reply ends with.

use crate::claim::{Form, is_end};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// Braces at which an object may begin, from the first.
const BRACES: usize = 64;

/// The fields of an object, in their order; a name may occur twice.
pub(crate) struct EndingObject(Vec<(String, Value)>);

impl EndingObject {
    /// The object that a reply is or ends with, which may be in a fence, and the text before it.
    pub(crate) fn of(reply: &str) -> Option<(Self, &str)> {
        let reply = reply.trim().trim_end_matches('`').trim_end();
        if !reply.ends_with('}') {
            return None;
        }
        let begins = reply.match_indices('{').take(BRACES);
        begins.filter_map(|(at, _)| Some((serde_json::from_str(&reply[at..]).ok()?, &reply[..at]))).next()
    }

    /// The verdict of its field of this form: `"score": 7`, `"Final score": "7/10"`. `None` if it has several that
    /// differ.
    pub(crate) fn verdict<T: Copy + PartialEq>(&self, form: &Form<T>) -> Option<T> {
        let is_meant = |name: &str| {
            let name = name.to_ascii_lowercase();
            let name = ["final", "overall"].iter().find_map(|word| name.strip_prefix(word)).unwrap_or(&name);
            form.labels.contains(&name.trim_matches(['_', ' ', '-']))
        };
        let mut verdicts = self.0.iter().filter(|(name, _)| is_meant(name)).map(|(_, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let (verdict, after) = (form.read)(text.trim())?;
            is_end(after).then_some(verdict)
        });
        let first = verdicts.next()??;
        verdicts.all(|other| other == Some(first)).then_some(first)
    }
}

impl<'de> Deserialize<'de> for EndingObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = EndingObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<EndingObject, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(EndingObject(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}
