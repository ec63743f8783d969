//! `http`: servers that a plugin may ask.
//!
//! Each request is checked by itself, so a redirect, which the guest follows
//! or not, is a request like any other. A name is resolved here, once, and the
//! connection goes to an address that was checked: what the name says a moment
//! later does not matter.

mod access;
mod address;
mod refusal;
mod rule;
mod send;
mod taped;

pub(super) use access::HttpAccess;
pub(crate) use refusal::Refusals;
pub(super) use rule::Rule;

use super::GrantError;
use crate::call_meter::{CallMeter, Held};
use crate::state::State;
use crate::tape::CallTape;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use wasmtime::component::Linker;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpCtxView, WasiHttpHooks, WasiHttpView};

/// What an exchange may hold in the buffers of its connection and of TLS, and
/// is charged for as long as it lasts.
const EXCHANGE_BYTES: usize = 256 << 10;
/// Most of a response's head, and what is read ahead of a body.
const READ_BYTES: usize = 64 << 10;
/// What a guest may write of a body at once. A body that nobody reads holds two
/// of these, and is not charged: it is a handle.
const WRITE_BYTES: usize = 32 << 10;
/// Most of a list of headers, which is a handle as well; servers take 8 KB.
const FIELDS_BYTES: usize = 32 << 10;

/// The limits on what handles hold.
pub(super) fn context() -> WasiHttpCtx {
    let mut context = WasiHttpCtx::new();
    context.set_field_size_limit(FIELDS_BYTES);
    context
}

pub(super) fn parse_all(grants: &[String]) -> Result<Vec<Rule>, GrantError> {
    let parse = |grant: &String| Rule::parse(grant).map_err(|what| GrantError::Http { grant: grant.clone(), what });
    grants.iter().map(parse).collect()
}

/// Stands in for all servers, in a test say. What a plugin may ask is decided
/// as ever.
pub trait HttpResponder: Send + Sync {
    /// The response to a request, or none where nobody listens.
    fn respond(&self, request: http::Request<Bytes>) -> Option<http::Response<Bytes>>;
}

/// The requests of one call.
pub(super) struct HttpCalls {
    access: Arc<HttpAccess>,
    refusals: Refusals,
    tape: CallTape,
    meter: CallMeter,
}

impl HttpCalls {
    pub(super) fn new(access: Arc<HttpAccess>, refusals: Refusals, tape: CallTape, meter: CallMeter) -> Self {
        Self { access, refusals, tape, meter }
    }
}

/// The call is over, whatever the guest makes of this.
fn out_of_budget(error: impl std::error::Error) -> Error {
    Error::InternalError(Some(error.to_string()))
}

/// An answer that counts as the call's memory until its connection and its
/// body are gone.
fn charged(
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

type Connection = Box<dyn Future<Output = Result<(), Error>> + Send>;
type Answer = Result<(http::Response<WasiBody>, Connection), Error>;

impl WasiHttpHooks for HttpCalls {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Connection,
    ) -> Box<dyn Future<Output = Answer> + Send> {
        let (access, refusals, tape) = (self.access.clone(), self.refusals.clone(), self.tape.clone());
        let meter = self.meter.clone();
        // Here, and not when it is sent: a guest may drop it before.
        let counted = meter.request(1);
        Box::new(async move {
            let options = options.unwrap_or_default();
            counted.map_err(out_of_budget)?;
            if !tape.is_off() {
                return taped::exchange(&tape, &access, &refusals, &meter, request, options).await;
            }
            let held = meter.hold(EXCHANGE_BYTES).map_err(out_of_budget)?;
            match send::send(&access, request, options).await {
                Ok(answer) => Ok(charged(answer, held)),
                Err(send::Failure::Refused(refusal)) => {
                    let error = refusal.error();
                    refusals.note(refusal);
                    Err(error)
                }
                Err(send::Failure::Failed(error)) => Err(error),
            }
        })
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        WRITE_BYTES
    }

    // The next three only translate: the defaults would log a line for each failed request, and the guest has the error.

    fn p2_error_from_hyper(&mut self, error: &hyper::Error) -> ErrorCode {
        if error.is_timeout() { ErrorCode::HttpResponseTimeout } else { ErrorCode::HttpProtocolError }
    }

    fn p2_error_from_connect(&mut self, _: &std::io::Error) -> ErrorCode {
        ErrorCode::ConnectionRefused
    }

    fn p2_error_from_tls(&mut self, _: &std::io::Error) -> ErrorCode {
        ErrorCode::TlsProtocolError
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        let grants = &mut self.grants;
        WasiHttpCtxView { hooks: &mut grants.http, table: &mut self.table, ctx: &mut grants.http_ctx }
    }
}

/// The interfaces are there for all; a plugin that imports them without a
/// grant is refused before it is linked.
pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(linker)
}
