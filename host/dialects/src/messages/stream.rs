//! A completion as it comes, as the events of a message.

use super::answer::{error, signature, stop, usage};
use crate::deltas::Delta;
use crate::reply::{About, End, Usage};
use crate::sse;
use serde_json::{Value, json};

/// What is written of a message so far.
#[derive(Debug, Default)]
pub(super) struct Stream {
    about: About,
    /// The blocks that are begun.
    blocks: usize,
    open: Option<Open>,
    thought: String,
    calls: bool,
    end: End,
    usage: Usage,
}

/// The block that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Thought,
    Text,
    Call,
}

impl Stream {
    pub(super) fn write(&mut self, delta: Delta, hides_thoughts: bool, out: &mut String) {
        match delta {
            Delta::Begin(about) => self.begin(about, out),
            Delta::Thought(0, thought) => {
                self.open(
                    Open::Thought,
                    hides_thoughts,
                    out,
                    || json!({"type": "thinking", "thinking": "", "signature": ""}),
                );
                self.thought.push_str(&thought);
                if !hides_thoughts {
                    self.delta(json!({"type": "thinking_delta", "thinking": thought}), out);
                }
            }
            Delta::Text(0, text, _) if !text.is_empty() => {
                self.open(Open::Text, hides_thoughts, out, || json!({"type": "text", "text": ""}));
                self.delta(json!({"type": "text_delta", "text": text}), out);
            }
            Delta::Call(0, call) => {
                self.close(hides_thoughts, out);
                self.calls = true;
                self.open(
                    Open::Call,
                    hides_thoughts,
                    out,
                    || json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}}),
                );
            }
            Delta::Arguments(0, json) => self.delta(json!({"type": "input_json_delta", "partial_json": json}), out),
            Delta::End(0, end) => {
                self.close(hides_thoughts, out);
                self.end = end;
            }
            Delta::Usage(usage) => self.usage = usage,
            Delta::Failed(refused) => event(&error(&refused), out),
            // There are no other responses.
            _ => {}
        }
    }

    pub(super) fn end(&mut self, out: &mut String) {
        let (reason, stop) = stop(&self.end, self.calls);
        let delta = json!({"stop_reason": reason, "stop_sequence": stop});
        event(&json!({"type": "message_delta", "delta": delta, "usage": usage(self.usage)}), out);
        event(&json!({"type": "message_stop"}), out);
    }

    fn begin(&mut self, about: About, out: &mut String) {
        self.about = about;
        let message = json!({
            "id": format!("msg_{}", self.about.id), "type": "message", "role": "assistant", "model": self.about.model,
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(Usage::default()),
        });
        event(&json!({"type": "message_start", "message": message}), out);
    }

    /// Begins a block of this kind, unless it is being written.
    fn open(&mut self, kind: Open, hides_thoughts: bool, out: &mut String, block: impl FnOnce() -> Value) {
        if self.open == Some(kind) {
            return;
        }
        self.close(hides_thoughts, out);
        event(&json!({"type": "content_block_start", "index": self.blocks, "content_block": block()}), out);
        self.blocks += 1;
        self.open = Some(kind);
    }

    fn close(&mut self, hides_thoughts: bool, out: &mut String) {
        let Some(open) = self.open else { return };
        if open == Open::Thought {
            let thought = std::mem::take(&mut self.thought);
            let signature = signature(&thought, &self.about.id, hides_thoughts);
            self.delta(json!({"type": "signature_delta", "signature": signature}), out);
        }
        event(&json!({"type": "content_block_stop", "index": self.blocks - 1}), out);
        self.open = None;
    }

    fn delta(&self, delta: Value, out: &mut String) {
        let index = self.blocks.saturating_sub(1);
        event(&json!({"type": "content_block_delta", "index": index, "delta": delta}), out);
    }
}

/// Writes an event, which is named after its type.
fn event(event: &Value, out: &mut String) {
    sse::write(out, event["type"].as_str(), event);
}
