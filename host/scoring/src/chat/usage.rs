//! The tokens of a request: an expectation, and the count that a server
//! reports.

use gavel_data::ContentPart;
use gavel_plugin::ChatRequest;
use serde::{Deserialize, Deserializer};
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

/// The number of tokens, as a server counts them. A number that cannot be one counts as not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Usage {
    #[serde(default, deserialize_with = "count")]
    pub(super) prompt_tokens: Option<u32>,
    #[serde(default, deserialize_with = "count")]
    pub(super) completion_tokens: Option<u32>,
}

impl Usage {
    /// The usage that the server reports with an answer.
    pub(super) fn of(json: &str) -> Self {
        #[derive(Deserialize)]
        struct Body {
            usage: Option<Usage>,
        }
        serde_json::from_str::<Body>(json).ok().and_then(|body| body.usage).unwrap_or_default()
    }

    /// The tokens that `answer` cost, estimated where the server does not report them: a budget must count every answer.
    pub(super) fn or_estimated(self, prompt_tokens: f64, answer: &str) -> TokenCost {
        TokenCost {
            prompt: self.prompt_tokens.map_or(prompt_tokens, f64::from),
            completion: self.completion_tokens.map_or(answer.len() as f64 / BYTES_PER_TOKEN, f64::from),
        }
    }
}

/// The count of a server: `None` where it is not from 0 to 2^32. Some servers write `12.0`.
fn count<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u32>, D::Error> {
    let number = Value::deserialize(value)?.as_f64();
    Ok(number.filter(|number| (0.0..=f64::from(u32::MAX)).contains(number)).map(|number| number.ceil() as u32))
}

/// The number of tokens that a request will cost, or did cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TokenCost {
    pub(super) prompt: f64,
    pub(super) completion: f64,
}

impl TokenCost {
    /// The tokens of prompt and answer together.
    pub(super) fn total(&self) -> f64 {
        self.prompt + self.completion
    }
}

/// Estimates the tokens of a request from the lengths of earlier answers.
#[derive(Default)]
pub(super) struct Expectation {
    answers: AtomicU64,
    answer_tokens: AtomicU64,
}

impl Expectation {
    /// The tokens that a request will cost. `options` are the endpoint's options.
    pub(super) fn of(&self, request: &ChatRequest, options: &Map<String, Value>) -> TokenCost {
        let parts = request.messages.iter().flat_map(|message| &message.content);
        let prompt = parts
            .map(|part| match part {
                ContentPart::Text(text) => text.len() as f64 / BYTES_PER_TOKEN,
                ContentPart::Media(_) => MEDIA_TOKENS,
            })
            .sum();
        let limit = |options: &Map<String, Value>| LIMITS.iter().find_map(|field| options.get(*field)?.as_f64());
        let answers = self.answers.load(Ordering::Relaxed);
        let completion = match (limit(&request.options).or_else(|| limit(options)), answers) {
            // A plugin sets it as it likes.
            (Some(limit), _) => limit.clamp(0.0, f64::from(u32::MAX)),
            (None, 0) => ANSWER_TOKENS,
            (None, answers) => self.answer_tokens.load(Ordering::Relaxed) as f64 / answers as f64,
        };
        TokenCost { prompt, completion }
    }

    /// Learns the length of an answer.
    pub(super) fn learn(&self, cost: &TokenCost) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.answer_tokens.fetch_add(cost.completion as u64, Ordering::Relaxed);
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
        let expected = |request, options: &Map<String, Value>| expectation.of(&request, options).total();
        let of_endpoint = json!({"max_tokens": 50}).as_object().cloned().unwrap();
        assert_eq!(expected(request(json!({"max_completion_tokens": 8})), &of_endpoint), 108.0);
        assert_eq!(expected(request(json!({})), &of_endpoint), 150.0);
        assert_eq!(expected(request(json!({"max_tokens": -1e9})), &of_endpoint), 100.0);
        assert_eq!(expected(request(json!({"max_tokens": 1e300})), &of_endpoint), 100.0 + f64::from(u32::MAX));
        assert_eq!(expected(request(json!({})), &Map::new()), 356.0);
        expectation.learn(&TokenCost { prompt: 90.0, completion: 20.0 });
        assert_eq!(expected(request(json!({})), &Map::new()), 120.0);
    }

    #[test]
    fn no_answer_is_free_whatever_its_server_reports() {
        let cost = |usage: &str| {
            let answer = format!(r#"{{"choices": [], "usage": {usage}}}"#);
            let TokenCost { prompt, completion } = Usage::of(&answer).or_estimated(7.0, &"x".repeat(40));
            (prompt, completion)
        };
        assert_eq!(cost(r#"{"prompt_tokens": 90, "completion_tokens": 20}"#), (90.0, 20.0));
        assert_eq!(cost(r#"{"prompt_tokens": 90.0, "completion_tokens": 0}"#), (90.0, 0.0));
        assert_eq!(cost(r#"{"prompt_tokens": 4294967296, "completion_tokens": 20.5}"#), (7.0, 21.0));
        assert_eq!(cost(r#"{"prompt_tokens": -1, "completion_tokens": 1e300}"#), (7.0, 10.0));
        assert_eq!(cost(r#"{"prompt_tokens": "90", "completion_tokens": [20]}"#), (7.0, 10.0));
        for nothing in ["null", "{}", "3", "[]", r#"{"prompt_tokens": null}"#] {
            assert_eq!(cost(nothing), (7.0, 10.0), "{nothing}");
        }
    }
}
