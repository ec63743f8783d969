//! The body of a request, encoded while it is sent.

use bytes::Bytes;
use gavel_plugin::{CallMeter, JsonChunks, JsonPieces};
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Sends JSON in pieces and encodes one piece at a time. The time for the
/// encoding is charged to the call.
pub(super) struct Sending {
    chunks: JsonChunks,
    /// Bytes that are not yet sent. The request has their number in its header,
    /// because some servers refuse a body of unknown size.
    left: u64,
    meter: CallMeter,
}

impl Sending {
    pub(super) fn new(json: &JsonPieces, meter: CallMeter) -> Self {
        Self { chunks: json.chunks(), left: json.size(), meter }
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Self { chunks, left, meter } = &mut *self;
        let chunk = meter.work(|| chunks.next());
        Poll::Ready(chunk.map(|chunk| {
            *left = left.saturating_sub(chunk.len() as u64);
            Ok(Frame::data(chunk))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
