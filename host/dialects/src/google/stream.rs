//! A completion as it comes, as pieces of candidates.

use super::answer::{answer, call, candidate, error, finish, sign};
use super::form::Form;
use crate::deltas::Delta;
use crate::reply::{About, Call, End, Usage};
use crate::sse;
use serde_json::{Value, json};

/// What is written of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Stream {
    about: About,
    candidates: Vec<Candidate>,
    /// Whether the list has an item.
    begun: bool,
    usage: Usage,
}

/// What is not yet written of a candidate.
#[derive(Debug, Default)]
struct Candidate {
    /// A thought that is not shown.
    hidden: String,
    /// A call whose arguments are not whole.
    call: Option<Call>,
    end: Option<End>,
}

impl Stream {
    pub(super) fn write(&mut self, delta: Delta, form: Form, shows_thoughts: bool, out: &mut String) {
        match delta {
            Delta::Begin(about) => self.about = about,
            Delta::Thought(at, thought) if shows_thoughts => {
                self.piece(at, json!({"text": thought, "thought": true}), &[], form, out);
            }
            Delta::Thought(at, thought) => self.candidate(at).hidden.push_str(&thought),
            Delta::Text(at, text, logprobs) => {
                self.made(at, form, out);
                self.piece(at, json!({"text": text}), &logprobs, form, out);
            }
            Delta::Call(at, begun) => {
                self.made(at, form, out);
                self.candidate(at).call = Some(begun);
            }
            Delta::Arguments(at, json) => {
                if let Some(call) = &mut self.candidate(at).call {
                    call.arguments.push_str(&json);
                }
            }
            Delta::End(at, end) => {
                self.made(at, form, out);
                self.candidate(at).end = Some(end);
            }
            Delta::Usage(usage) => self.usage = usage,
            Delta::Failed(refused) => {
                self.item(&error(&refused), form, out);
                if form == Form::List {
                    out.push_str("]\n");
                }
            }
        }
    }

    /// The last piece says how all candidates ended, and what they cost.
    pub(super) fn end(&mut self, form: Form, out: &mut String) {
        let ended = std::mem::take(&mut self.candidates).into_iter().zip(0..).map(|(ended, index)| {
            let mut parts = vec![json!({"text": ""})];
            sign(&mut parts, &ended.hidden);
            let mut candidate = candidate(index, parts, &[]);
            candidate["finishReason"] = finish(&ended.end.unwrap_or_default()).into();
            candidate
        });
        let ended = ended.collect();
        let last = answer(&self.about, ended, Some(self.usage));
        self.item(&last, form, out);
        if form == Form::List {
            out.push_str("]\n");
        }
    }

    fn candidate(&mut self, at: usize) -> &mut Candidate {
        if self.candidates.len() <= at {
            self.candidates.resize_with(at + 1, Candidate::default);
        }
        &mut self.candidates[at]
    }

    /// Writes the call whose arguments are whole now.
    fn made(&mut self, at: usize, form: Form, out: &mut String) {
        if let Some(made) = self.candidate(at).call.take() {
            self.piece(at, call(&made), &[], form, out);
        }
    }

    fn piece(&mut self, at: usize, part: Value, logprobs: &[Value], form: Form, out: &mut String) {
        let mut parts = [part];
        sign(&mut parts, &std::mem::take(&mut self.candidate(at).hidden));
        let piece = candidate(at, parts.to_vec(), logprobs);
        let piece = answer(&self.about, vec![piece], None);
        self.item(&piece, form, out);
    }

    fn item(&mut self, item: &Value, form: Form, out: &mut String) {
        let is_first = !std::mem::replace(&mut self.begun, true);
        match form {
            Form::List => out.extend([if is_first { "[" } else { ",\r\n" }, &item.to_string(), "\n"]),
            _ => sse::write(out, None, item),
        }
    }
}
