//! A completion as it comes: what each chunk of `/v1/chat/completions` adds.

use crate::refused::Refused;
use crate::reply::{About, Call, End, Usage, logprobs, reasoning, text};
use axum::http::StatusCode;
use serde_json::Value;

/// What is added. The first number is that of the response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Delta {
    Begin(About),
    Thought(usize, String),
    /// Text, with the log-probabilities of its tokens. Either may be empty.
    Text(usize, String, Vec<Value>),
    /// A call begins; its arguments follow.
    Call(usize, Call),
    Arguments(usize, String),
    End(usize, End),
    Usage(Usage),
    Failed(Refused),
}

/// Reads the chunks of an answer.
#[derive(Debug, Default)]
pub(crate) struct Deltas {
    begun: bool,
    /// The number of the call that is written last, of each response.
    calls: Vec<(usize, u64)>,
    /// The responses that have begun, and those that have ended.
    seen: usize,
    ended: usize,
    done: bool,
}

impl Deltas {
    /// What an event's data adds.
    pub(crate) fn read(&mut self, data: &str, names: &[(&str, &str)]) -> Vec<Delta> {
        if self.done {
            return Vec::new();
        }
        if data == "[DONE]" {
            return self.finish();
        }
        let Ok(chunk) = serde_json::from_str::<Value>(data) else { return self.fail("is not JSON") };
        if !chunk["error"].is_null() {
            self.done = true;
            let status = match chunk["error"]["type"].as_str() {
                Some("invalid_request_error") => StatusCode::BAD_REQUEST,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            return vec![Delta::Failed(Refused::of_chat(status, &chunk, names))];
        }
        let mut deltas = Vec::new();
        if !self.begun {
            self.begun = true;
            deltas.push(Delta::Begin(About::read(&chunk)));
        }
        for choice in chunk["choices"].as_array().into_iter().flatten() {
            self.choice(choice, &mut deltas);
        }
        if chunk["usage"].is_object() {
            deltas.push(Delta::Usage(Usage::read(&chunk["usage"])));
        }
        deltas
    }

    fn choice(&mut self, choice: &Value, deltas: &mut Vec<Delta>) {
        let index = choice["index"].as_u64().unwrap_or(0) as usize;
        self.seen = self.seen.max(index.saturating_add(1));
        let delta = &choice["delta"];
        let (thought, said, logprobs) = (reasoning(delta), text(&delta["content"]), logprobs(choice));
        if !thought.is_empty() {
            deltas.push(Delta::Thought(index, thought));
        }
        if !said.is_empty() || !logprobs.is_empty() {
            deltas.push(Delta::Text(index, said, logprobs));
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let (number, part) = (call["index"].as_u64().unwrap_or(0), Call::read(call));
            let last = self.calls.iter_mut().find(|(of, _)| *of == index);
            let begins = match last {
                Some((_, last)) => std::mem::replace(last, number) != number,
                None => {
                    self.calls.push((index, number));
                    true
                }
            };
            if begins {
                deltas.push(Delta::Call(index, Call { arguments: String::new(), ..part.clone() }));
            }
            if !part.arguments.is_empty() {
                deltas.push(Delta::Arguments(index, part.arguments));
            }
        }
        if let Some(end) = End::read(choice) {
            self.ended += 1;
            deltas.push(Delta::End(index, end));
        }
    }

    /// The stream has ended. One that ends early has failed.
    pub(crate) fn finish(&mut self) -> Vec<Delta> {
        match self.ended > 0 && self.ended >= self.seen {
            true => {
                self.done = true;
                Vec::new()
            }
            false => self.fail("ended early"),
        }
    }

    /// The stream broke off.
    pub(crate) fn fail(&mut self, what: &str) -> Vec<Delta> {
        match std::mem::replace(&mut self.done, true) {
            true => Vec::new(),
            false => vec![Delta::Failed(Refused::no_answer(what))],
        }
    }
}
