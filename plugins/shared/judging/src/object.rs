//! The JSON objects of a reply.

use crate::claim::Form;
use crate::quotation::is_end;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::ops::Range;

/// Braces at which an object may begin, outside the objects before them; a reply with more has no verdict.
const BRACES: usize = 256;

/// The fields of an object, in their order; a name may occur twice.
pub(crate) struct Object(Vec<(String, Value)>);

/// An object, and where it stands.
pub(crate) struct Found {
    pub(crate) object: Object,
    pub(crate) at: Range<usize>,
}

/// All objects of a text that are in no other, from the first. `None` if it has too many braces: an object behind them
/// may be the verdict.
pub(crate) fn objects(text: &str) -> Option<Vec<Found>> {
    let mut found: Vec<Found> = Vec::new();
    let mut braces = 0;
    // `\\frac{1}{2}` begins no object.
    let may_begin = |at: &usize| text[at + 1..].trim_start().starts_with(['"', '}']);
    for at in text.match_indices('{').map(|(at, _)| at).filter(may_begin) {
        if found.last().is_some_and(|last| at < last.at.end) {
            continue;
        }
        braces += 1;
        if braces > BRACES {
            return None;
        }
        let mut objects = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Object>();
        if let Some(Ok(object)) = objects.next() {
            found.push(Found { object, at: at..at + objects.byte_offset() });
        }
    }
    Some(found)
}

/// Whether a text is JSON from its beginning, whole or not: then nothing in it is a sentence.
pub(crate) fn is_json(text: &str) -> bool {
    let text = without_fence(text);
    let inside = text.trim_start_matches(['{', '[']).trim_start();
    text.starts_with('{') && inside.starts_with(['"', '}'])
}

/// Whether a text begins as a list of JSON.
pub(crate) fn is_list(text: &str) -> bool {
    without_fence(text).starts_with('[')
}

/// A text without the beginning of a fence.
fn without_fence(text: &str) -> &str {
    let text = text.trim_start();
    let text = text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).unwrap_or(text);
    text.trim_start()
}

impl Object {
    /// What it states, if it has fields of this form: `"score": 7`, `"Final score": "7/10"`. `Some(None)` if it has
    /// several that differ, or one that is not a verdict.
    pub(crate) fn verdict<T: Copy + PartialEq>(&self, form: &Form<T>) -> Option<Option<T>> {
        let is_label = |(name, _): &&(String, Value)| is_meant(name, form.labels);
        let is_overall = |(name, _): &&(String, Value)| form.is_number && name.eq_ignore_ascii_case("overall");
        let has_label = self.0.iter().any(|field| is_label(&field));
        let is_named = |field: &&(String, Value)| if has_label { is_label(field) } else { is_overall(field) };
        let chosen = self.0.iter().find(is_named).map(|(name, _)| name.as_str())?;
        let mut verdicts = self.0.iter().filter(is_named).map(|(_, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            let (verdict, after) = (form.read)(text.trim(), None)?;
            is_end(after).then_some(verdict)
        });
        let first = verdicts.next()?;
        let is_one =
            verdicts.all(|other| other == first) && !self.0.iter().any(|(name, value)| form.unsettles(name, value));
        let has_rival = |verdict: &T| self.0.iter().any(|(name, value)| (form.rivals)(name, value, chosen, *verdict));
        Some(first.filter(|_| is_one).filter(|verdict| !has_rival(verdict)))
    }

    /// Whether its fields void a verdict that stands in an object in it.
    pub(crate) fn contradicts<T: Copy>(&self, verdict: T, form: &Form<T>) -> bool {
        let differs =
            |(name, value): &(String, Value)| form.unsettles(name, value) || (form.rivals)(name, value, "", verdict);
        self.0.iter().any(differs) || self.rescales(verdict, form)
    }

    /// Whether a text among its fields states another scale of the verdict. An object by the schema has none: its score
    /// is from 0 to 10, whatever its reason speaks of.
    pub(crate) fn rescales<T: Copy>(&self, verdict: T, form: &Form<T>) -> bool {
        let is_by_schema = match &self.0[..] {
            [(reason, Value::String(_)), (name, Value::Number(number))] => {
                reason == "reason" && name == "score" && number.is_u64()
            }
            _ => false,
        };
        let mut texts = self.0.iter().filter_map(|(_, value)| value.as_str());
        !is_by_schema && texts.any(|text| (form.rescales)(text, verdict))
    }

    /// The values of the fields with this name.
    pub(crate) fn get<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value)
    }
}

fn is_meant(name: &str, labels: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    let name = ["final", "overall"].iter().find_map(|word| name.strip_prefix(word)).unwrap_or(&name);
    labels.contains(&name.trim_matches(['_', ' ', '-']))
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Object, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_too_many_braces_has_no_objects() {
        let count =
            |braces: &str, times: usize| objects(&(braces.repeat(times) + r#"{"score": 7}"#)).map(|found| found.len());
        assert_eq!(count(r#"{"a" "#, BRACES - 1), Some(1));
        assert_eq!(count(r#"{"a" "#, BRACES), None);
        assert_eq!(count("{}", BRACES), None);
        assert_eq!(count("\\frac{1}{2} ", 2 * BRACES), Some(1), "braces at which no object begins do not count");
        assert_eq!(
            count(&format!("{{\"a\": [{}]}}", vec!["{}"; BRACES].join(", ")), 1),
            Some(2),
            "nor those in an object"
        );
    }
}
