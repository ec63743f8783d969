//! How the dialect answers.

use super::answer;
use super::stream::Stream;
use crate::deltas::Delta;
use crate::dialect::Dialect;
use crate::refused::Refused;
use crate::reply::Reply;
use serde_json::Value;

/// A request under way.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    pub(crate) is_streamed: bool,
    /// Thoughts are not shown, and come back sealed.
    pub(crate) hides_thoughts: bool,
    pub(super) stream: Stream,
}

impl Dialect for Messages {
    const NAMES: &[(&str, &str)] = &[
        ("stop", "stop_sequences"),
        ("response_format", "output_config.format"),
        ("reasoning_effort", "output_config.effort"),
    ];
    const ALIVE: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

    fn is_streamed(&self) -> bool {
        self.is_streamed
    }

    fn answer(&self, reply: Reply) -> Value {
        answer::whole(reply, self.hides_thoughts)
    }

    fn write(&mut self, delta: Delta, out: &mut String) {
        self.stream.write(delta, self.hides_thoughts, out);
    }

    fn end(&mut self, out: &mut String) {
        self.stream.end(out);
    }

    fn error(refused: &Refused) -> Value {
        answer::error(refused)
    }
}
