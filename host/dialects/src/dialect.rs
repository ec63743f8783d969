//! What each dialect has to say.

use crate::deltas::Delta;
use crate::refused::Refused;
use crate::reply::Reply;
use serde_json::Value;

/// How one dialect writes what it answers.
pub(crate) trait Dialect: Send + 'static {
    /// The fields of a chat request, and what the dialect calls them.
    const NAMES: &[(&str, &str)];
    /// What keeps the connection of a stream alive.
    const ALIVE: &str;
    /// The type of a stream.
    fn stream_type(&self) -> &'static str {
        "text/event-stream"
    }
    /// Whether the answer is streamed.
    fn is_streamed(&self) -> bool;
    /// The whole answer.
    fn answer(&self, reply: Reply) -> Value;
    /// Writes what a chunk adds to a stream.
    fn write(&mut self, delta: Delta, out: &mut String);
    /// Writes the end of a stream that has not failed.
    fn end(&mut self, out: &mut String);
    /// The body of an error.
    fn error(refused: &Refused) -> Value;
}
