//! A completion as it comes, as the events of a response.

use super::answer::{begun, call, ended, error, logprobs, message, reasoning, status, text_part};
use super::told::Told;
use crate::deltas::Delta;
use crate::reply::{About, Call, End, Usage};
use crate::sse;
use serde_json::{Map, Value, json};

/// What is written of a response so far.
#[derive(Debug, Default)]
pub(super) struct Stream {
    about: About,
    /// The number of the next event.
    number: u64,
    /// The items that are whole.
    output: Vec<Value>,
    open: Open,
    /// Log-probabilities of tokens whose text, if they have any, comes later.
    pending: Vec<Value>,
    end: End,
    usage: Usage,
}

/// The item that is written.
#[derive(Debug, Default)]
enum Open {
    #[default]
    None,
    Thought(String),
    Text(String, Vec<Value>),
    Call(Call),
}

impl Stream {
    pub(super) fn write(&mut self, delta: Delta, told: &Told, out: &mut String) {
        match delta {
            Delta::Begin(about) => {
                self.about = about;
                let response = begun(&self.about, told);
                self.event("response.created", json!({"response": response}), out);
                self.event("response.in_progress", json!({"response": response}), out);
            }
            Delta::Thought(0, thought) => {
                if !matches!(self.open, Open::Thought(_)) {
                    self.close("completed", told, out);
                    let item = reasoning(&self.about.id, self.output.len(), "", told);
                    self.add(item, out);
                    self.part("response.content_part.added", json!({"type": "reasoning_text", "text": ""}), out);
                    self.open = Open::Thought(String::new());
                }
                self.of_part("response.reasoning_text.delta", json!({"delta": thought}), out);
                if let Open::Thought(whole) = &mut self.open {
                    whole.push_str(&thought);
                }
            }
            Delta::Text(0, text, tokens) => {
                let tokens = logprobs(&tokens, told);
                match text.is_empty() && !matches!(self.open, Open::Text(..)) {
                    true => self.pending.extend(tokens),
                    false => self.text(&text, tokens, told, out),
                }
            }
            Delta::Call(0, begun) => {
                self.close("completed", told, out);
                let item = call(&self.about.id, self.output.len(), "in_progress", &begun);
                self.add(item, out);
                self.open = Open::Call(begun);
            }
            Delta::Arguments(0, json) => {
                self.of_item("response.function_call_arguments.delta", json!({"delta": json}), out);
                if let Open::Call(call) = &mut self.open {
                    call.arguments.push_str(&json);
                }
            }
            Delta::End(0, end) => {
                // A response has a message, which may be empty.
                if self.output.is_empty() && matches!(self.open, Open::None | Open::Thought(_)) {
                    self.text("", Vec::new(), told, out);
                }
                self.close(status(&end), told, out);
                self.end = end;
            }
            Delta::Usage(usage) => self.usage = usage,
            Delta::Failed(refused) => {
                let mut error = error(&refused);
                // As the event that the client reads, and as the error that it raises.
                error["code"] = "server_error".into();
                error["message"] = refused.message.into();
                error["param"] = Value::Null;
                self.event("error", error, out);
            }
            // There are no other responses.
            _ => {}
        }
    }

    pub(super) fn end(&mut self, told: &Told, out: &mut String) {
        let output = std::mem::take(&mut self.output);
        let response = ended(&self.about, told, &self.end, output, self.usage);
        let name = if status(&self.end) == "completed" { "response.completed" } else { "response.incomplete" };
        self.event(name, json!({"response": response}), out);
    }

    fn text(&mut self, text: &str, tokens: Vec<Value>, told: &Told, out: &mut String) {
        if !matches!(self.open, Open::Text(..)) {
            self.close("completed", told, out);
            let item = message(&self.about.id, self.output.len(), "in_progress", Vec::new());
            self.add(item, out);
            self.part("response.content_part.added", text_part("", Vec::new()), out);
            self.open = Open::Text(String::new(), Vec::new());
        }
        let tokens = [std::mem::take(&mut self.pending), tokens].concat();
        if !text.is_empty() || !tokens.is_empty() {
            self.of_part("response.output_text.delta", json!({"delta": text, "logprobs": tokens}), out);
        }
        if let Open::Text(whole, all) = &mut self.open {
            whole.push_str(text);
            all.extend(tokens);
        }
    }

    /// Ends the item that is written.
    fn close(&mut self, status: &str, told: &Told, out: &mut String) {
        let (id, at) = (self.about.id.clone(), self.output.len());
        let item = match std::mem::take(&mut self.open) {
            Open::None => return,
            Open::Thought(thought) => {
                self.of_part("response.reasoning_text.done", json!({"text": thought}), out);
                self.part("response.content_part.done", json!({"type": "reasoning_text", "text": thought}), out);
                reasoning(&id, at, &thought, told)
            }
            Open::Text(text, tokens) => {
                self.of_part("response.output_text.done", json!({"text": text, "logprobs": tokens}), out);
                let part = text_part(&text, tokens);
                self.part("response.content_part.done", part.clone(), out);
                message(&id, at, status, vec![part])
            }
            Open::Call(made) => {
                let done = json!({"name": made.name, "arguments": made.arguments});
                self.of_item("response.function_call_arguments.done", done, out);
                call(&id, at, "completed", &made)
            }
        };
        self.event("response.output_item.done", json!({"output_index": at, "item": item}), out);
        self.output.push(item);
    }

    fn add(&mut self, item: Value, out: &mut String) {
        self.event("response.output_item.added", json!({"output_index": self.output.len(), "item": item}), out);
    }

    fn part(&mut self, name: &str, part: Value, out: &mut String) {
        self.of_part(name, json!({"part": part}), out);
    }

    /// An event of the only part of the item that is written.
    fn of_part(&mut self, name: &str, mut data: Value, out: &mut String) {
        data["content_index"] = 0.into();
        self.of_item(name, data, out);
    }

    fn of_item(&mut self, name: &str, mut data: Value, out: &mut String) {
        let at = self.output.len();
        let prefix = match name.split('.').nth(1) {
            Some("reasoning_text") => "rs",
            Some("function_call_arguments") => "fc",
            Some("content_part") if data["part"]["type"] == "reasoning_text" => "rs",
            _ => "msg",
        };
        data["item_id"] = format!("{prefix}_{}_{at}", self.about.id).into();
        data["output_index"] = at.into();
        self.event(name, data, out);
    }

    fn event(&mut self, name: &str, data: Value, out: &mut String) {
        let mut event =
            Map::from_iter([("type".to_owned(), name.into()), ("sequence_number".to_owned(), self.number.into())]);
        self.number += 1;
        if let Value::Object(data) = data {
            event.extend(data);
        }
        sse::write(out, Some(name), &event.into());
    }
}
