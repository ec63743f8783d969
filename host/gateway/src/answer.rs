//! The answer of a program.

use gavel_data::{Blame, Columns, Json, Outcome};
use serde::Deserialize;
use serde_json::Value;

/// What a program answered.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Answer {
    /// The response; without it, the last text of the policy is.
    pub(crate) answer: Option<String>,
    /// The object beside it.
    pub(crate) extra: Option<Columns>,
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    answer: Option<Value>,
    #[serde(default)]
    extra: Option<Json>,
}

impl Answer {
    /// The answer in a text, which is one if it is a JSON object with `answer` or `extra`.
    ///
    /// # Errors
    /// `extra` is not an object.
    pub(crate) fn read(text: &str) -> Result<Self, Outcome> {
        let is_one = match serde_json::from_str::<Value>(text) {
            Ok(Value::Object(fields)) => fields.contains_key("answer") || fields.contains_key("extra"),
            _ => false,
        };
        let Ok(Written { answer, extra }) = serde_json::from_str::<Written>(text) else { return Ok(Self::default()) };
        if !is_one {
            return Ok(Self::default());
        }
        let answer = match answer {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text),
            Some(other) => Some(other.to_string()),
        };
        let extra = match extra.filter(|extra| extra.as_text() != "null") {
            None => None,
            Some(extra) => Some(extra.fields().ok_or_else(|| Outcome::Fault {
                whose: Blame::Plugin,
                what: format!("`extra` of its answer must be an object, not {}", extra.as_text()),
            })?),
        };
        Ok(Self { answer, extra })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_an_object_with_its_fields() {
        let read = |text: &str| Answer::read(text).map(|it| (it.answer, it.extra.map(|it| it.names().len())));
        for (text, answer, extra) in [
            (r#"{"answer": "4", "extra": {"tries": 2}}"#, Some("4"), Some(1)),
            (r#"{"answer": 4.50}"#, Some("4.5"), None),
            (r#"{"answer": null, "extra": null}"#, None, None),
            (r#"{"extra": {}}"#, None, Some(0)),
            (r#"{"result": "4"}"#, None, None),
            ("[1]", None, None),
            ("4", None, None),
            ("the answer is 4", None, None),
            ("", None, None),
        ] {
            assert_eq!(read(text).unwrap(), (answer.map(str::to_owned), extra), "{text}");
        }
        let error = read(r#"{"answer": "4", "extra": [1]}"#).unwrap_err();
        assert_eq!(error.reason().as_deref(), Some("`extra` of its answer must be an object, not [1]"));
    }
}
