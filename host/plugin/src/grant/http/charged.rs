//! Charges a call for the host's memory of an exchange.

use crate::outside::Held;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use wasmtime_wasi_http::{Error, WasiBody};

/// The charge for the buffers of an exchange's connection and of TLS, as long as
/// it lasts.
pub(super) const EXCHANGE_BYTES: usize = 256 << 10;

/// The connection, which runs until a response's body is complete.
pub(super) type Connection = Box<dyn Future<Output = Result<(), Error>> + Send>;
/// A response, or why there is none.
pub(super) type Answer = Result<(http::Response<WasiBody>, Connection), Error>;

/// The error of a call that has failed, whatever the guest does with it.
pub(super) fn out_of_budget(error: impl std::error::Error) -> Error {
    Error::InternalError(Some(error.to_string()))
}

/// An answer that is charged to the call until its connection and its body are
/// dropped.
pub(super) fn charged(
    (response, connection): (http::Response<WasiBody>, Connection),
    held: Held,
) -> (http::Response<WasiBody>, Connection) {
    let held = Arc::new(held);
    let response = response.map(|body| Charged { body, _held: held.clone() }.boxed_unsync());
    let connection = async move {
        let _held = held;
        Box::into_pin(connection).await
    };
    (response, Box::new(connection))
}

struct Charged {
    body: WasiBody,
    _held: Arc<Held>,
}

impl Body for Charged {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
