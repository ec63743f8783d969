//! The tokens of a request: an expectation, and the count that a server
//! reports.

use gavel_data::ContentPart;
use gavel_plugin::ChatRequest;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of text that make a token, in English.
const BYTES_PER_TOKEN: f64 = 4.0;
/// The tokens of an image or a recording: models have from 85 to 2,000 for one.
const MEDIA_TOKENS: f64 = 1000.0;
/// The tokens of an answer of unknown length.
const ANSWER_TOKENS: f64 = 256.0;
/// The fields that limit an answer.
const LIMITS: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// The number of tokens, as a server counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) struct Usage {
    pub(super) prompt_tokens: Option<u32>,
    pub(super) completion_tokens: Option<u32>,
}

impl Usage {
    /// The usage of an answer, if the server reports it.
    pub(super) fn of(json: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Body {
            usage: Option<Usage>,
        }
        serde_json::from_str::<Body>(json).ok()?.usage
    }

    /// The tokens of prompt and answer together.
    pub(super) fn total(&self) -> f64 {
        f64::from(self.prompt_tokens.unwrap_or(0)) + f64::from(self.completion_tokens.unwrap_or(0))
    }
}

/// Estimates the tokens of a request from the lengths of earlier answers.
#[derive(Default)]
pub(super) struct Expectation {
    answers: AtomicU64,
    answer_tokens: AtomicU64,
}

impl Expectation {
    /// The tokens that a request will cost. `options` are those of the endpoint.
    pub(super) fn of(&self, request: &ChatRequest, options: &Map<String, Value>) -> f64 {
        let parts = request.messages.iter().flat_map(|message| &message.content);
        let prompt: f64 = parts
            .map(|part| match part {
                ContentPart::Text(text) => text.len() as f64 / BYTES_PER_TOKEN,
                ContentPart::Media(_) => MEDIA_TOKENS,
            })
            .sum();
        let limit = |options: &Map<String, Value>| LIMITS.iter().find_map(|field| options.get(*field)?.as_f64());
        let answers = self.answers.load(Ordering::Relaxed);
        let answer = match (limit(&request.options).or_else(|| limit(options)), answers) {
            // A plugin sets it as it likes.
            (Some(limit), _) => limit.clamp(0.0, f64::from(u32::MAX)),
            (None, 0) => ANSWER_TOKENS,
            (None, answers) => self.answer_tokens.load(Ordering::Relaxed) as f64 / answers as f64,
        };
        prompt + answer
    }

    /// Learns the length of an answer.
    pub(super) fn learn(&self, usage: &Usage) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.answer_tokens.fetch_add(u64::from(usage.completion_tokens.unwrap_or(0)), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{Message, Role};
    use serde_json::json;

    fn request(options: Value) -> ChatRequest {
        let Value::Object(options) = options else { unreachable!() };
        ChatRequest { endpoint: "judge".into(), messages: vec![Message::new(Role::User, "x".repeat(400))], options }
    }

    #[test]
    fn what_is_expected_follows_from_the_request_and_from_earlier_answers() {
        let expectation = Expectation::default();
        let of_endpoint = json!({"max_tokens": 50}).as_object().cloned().unwrap();
        assert_eq!(expectation.of(&request(json!({"max_completion_tokens": 8})), &of_endpoint), 108.0);
        assert_eq!(expectation.of(&request(json!({})), &of_endpoint), 150.0);
        assert_eq!(expectation.of(&request(json!({"max_tokens": -1e9})), &of_endpoint), 100.0);
        assert_eq!(expectation.of(&request(json!({"max_tokens": 1e300})), &of_endpoint), 100.0 + f64::from(u32::MAX));
        assert_eq!(expectation.of(&request(json!({})), &Map::new()), 356.0);
        let usage = Usage::of(r#"{"choices": [], "usage": {"prompt_tokens": 90, "completion_tokens": 20}}"#).unwrap();
        assert_eq!(usage.total(), 110.0);
        expectation.learn(&usage);
        assert_eq!(expectation.of(&request(json!({})), &Map::new()), 120.0);
        assert_eq!(Usage::of(r#"{"usage": null}"#), None);
    }
}
