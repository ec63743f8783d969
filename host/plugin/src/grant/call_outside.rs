//! The way of a call to what is outside: its tape, its meter, and the record of each request, without the values of
//! granted variables.

use super::environment::Environment;
use crate::outside::CallMeter;
use crate::tape::{CallTape, OpenCall, QueueTime};
use bytes::Bytes;
use gavel_data::{OutsideCallEnding, OutsideCallKind};
use std::sync::Arc;

/// What the requests of one call go through.
#[derive(Clone)]
pub(super) struct CallOutside {
    pub(super) tape: CallTape,
    pub(super) meter: CallMeter,
    pub(super) env: Arc<Environment>,
}

impl CallOutside {
    /// Begins the record of a request to `endpoint`, if requests are noted; `queued` has the time that it waits for its
    /// turn.
    pub(super) fn note(&self, kind: OutsideCallKind, endpoint: &str, queued: &Arc<QueueTime>) -> Option<NotedCall> {
        let open = self.tape.open_call(kind, self.env.redact(endpoint.to_owned()), queued.clone())?;
        Some(NotedCall { open, env: self.env.clone() })
    }
}

/// A request under way. Its record is complete when this is dropped.
pub(super) struct NotedCall {
    open: OpenCall,
    env: Arc<Environment>,
}

impl NotedCall {
    /// Whether questions and answers are recorded.
    pub(super) fn has_texts(&self) -> bool {
        self.open.text_bytes() > 0
    }

    /// Notes the question, which has `bytes`. Its text is read only where texts are recorded.
    pub(super) fn ask(&mut self, bytes: u64, text: impl IntoIterator<Item = Bytes>) {
        let question = self.text(text);
        self.open.note(|call| (call.question_bytes, call.question) = (bytes, question));
    }

    /// Notes that it was answered with `bytes`. Their text is read only where texts are recorded.
    pub(super) fn answer(mut self, status: Option<u16>, bytes: u64, text: impl IntoIterator<Item = Bytes>) {
        let answer = self.text(text);
        self.open.note(|call| {
            (call.answer_bytes, call.answer) = (bytes, answer);
            (call.ended, call.status) = (OutsideCallEnding::Answered, status);
        });
    }

    /// Notes the end of a request without an answer.
    pub(super) fn end(mut self, ending: OutsideCallEnding, error: Option<String>) {
        let error = error.map(|error| self.env.redact(error));
        self.open.note(|call| (call.ended, call.error) = (ending, error));
    }

    fn text(&self, pieces: impl IntoIterator<Item = Bytes>) -> Option<String> {
        let most = self.open.text_bytes();
        if most == 0 {
            return None;
        }
        let mut text = Vec::new();
        let mut is_cut = false;
        for piece in pieces {
            let room = most - text.len();
            text.extend_from_slice(&piece[..piece.len().min(room)]);
            is_cut = piece.len() > room;
            if is_cut {
                break;
            }
        }
        let mut text = match is_cut {
            true => self.env.redact_beginning(text),
            false => self.env.redact(String::from_utf8_lossy(&text).into_owned()),
        };
        // The log counts what is used.
        text.shrink_to_fit();
        Some(text)
    }
}
