//! What an exchange holds in the host counts as the memory of its call.

use crate::call_meter::Held;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use wasmtime_wasi_http::{Error, WasiBody};

/// What an exchange may hold in the buffers of its connection and of TLS, and
/// is charged for as long as it lasts.
pub(super) const EXCHANGE_BYTES: usize = 256 << 10;

/// What runs until a response's body is there.
pub(super) type Connection = Box<dyn Future<Output = Result<(), Error>> + Send>;
/// A response, or why there is none.
pub(super) type Answer = Result<(http::Response<WasiBody>, Connection), Error>;

/// The call is over, whatever the guest makes of this.
pub(super) fn out_of_budget(error: impl std::error::Error) -> Error {
    Error::InternalError(Some(error.to_string()))
}

/// An answer that counts as the call's memory until its connection and its
/// body are gone.
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
