//! JSON that a plugin returns beside its answer, such as the payload of a score.
//! It is recorded, so it is bounded and parsed at once.

use crate::grant::Granted;
use gavel_data::{Blame, Columns, Json, Outcome};
use serde::de::DeserializeOwned;

/// The most bytes of such a JSON.
const MOST_BYTES: usize = 64 << 10;

/// A JSON object, or the rule that `text` breaks. `what` names it in messages.
pub(crate) fn object(what: &str, text: &str) -> Result<Columns, String> {
    parse(what, "a JSON object", text)
}

/// A JSON object of an agent, without the values of granted variables.
pub(crate) fn extra(granted: &Granted, text: Option<String>) -> Result<Option<Columns>, Outcome> {
    text.map(|text| object("extra", &granted.redact(text))).transpose().map_err(broken)
}

/// A tool's state, without the values of granted variables.
pub(crate) fn state(granted: &Granted, text: Option<String>) -> Result<Option<Json>, Outcome> {
    text.map(|text| parse("state", "JSON", &granted.redact(text))).transpose().map_err(broken)
}

fn broken(what: String) -> Outcome {
    Outcome::Fault { whose: Blame::Plugin, what }
}

fn parse<T: DeserializeOwned>(what: &str, form: &str, text: &str) -> Result<T, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("the {what} has {} bytes, more than the {MOST_BYTES} allowed", text.len()));
    }
    serde_json::from_str(text).map_err(|error| format!("the {what} is not {form}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bounded_object_is_taken() {
        let kept = object("payload", r#" {"steps": [4.50, {"a": null}], "é": "\u00e9"} "#).unwrap();
        assert_eq!(serde_json::to_string(&kept).unwrap(), r#"{"steps":[4.50,{"a":null}],"é":"é"}"#);
        let error = |text: &str| object("payload", text).unwrap_err();
        assert!(error("[1]").starts_with("the payload is not a JSON object: "), "{}", error("[1]"));
        assert!(error("{").starts_with("the payload is not a JSON object: EOF"), "{}", error("{"));
        let filled = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
        assert!(object("payload", &filled(MOST_BYTES)).is_ok());
        assert_eq!(error(&filled(MOST_BYTES + 1)), "the payload has 65537 bytes, more than the 65536 allowed");
        let deep = r#"{"a":"#.repeat(1000) + "1" + &"}".repeat(1000);
        assert!(error(&deep).contains("recursion limit"), "{}", error(&deep));
    }
}
