//! How the dialect answers.

use super::answer;
use super::stream::Stream;
use super::told::Told;
use crate::deltas::Delta;
use crate::dialect::Dialect;
use crate::refused::Refused;
use crate::reply::Reply;
use serde_json::Value;

/// A request under way.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    pub(crate) is_streamed: bool,
    pub(crate) told: Told,
    pub(super) stream: Stream,
}

impl Dialect for Responses {
    const NAMES: &[(&str, &str)] = &[
        ("max_tokens", "max_output_tokens"),
        ("messages", "input"),
        ("response_format", "text.format"),
        ("reasoning_effort", "reasoning.effort"),
    ];
    const ALIVE: &str = ":\n\n";

    fn is_streamed(&self) -> bool {
        self.is_streamed
    }

    fn answer(&self, reply: Reply) -> Value {
        answer::whole(reply, &self.told)
    }

    fn write(&mut self, delta: Delta, out: &mut String) {
        self.stream.write(delta, &self.told, out);
    }

    fn end(&mut self, out: &mut String) {
        self.stream.end(&self.told, out);
    }

    fn error(refused: &Refused) -> Value {
        answer::error(refused)
    }
}
