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
use crate::state::State;
use crate::tape::CallTape;
use bytes::Bytes;
use std::sync::Arc;
use wasmtime::component::Linker;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpCtxView, WasiHttpHooks, WasiHttpView};

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
}

impl HttpCalls {
    pub(super) fn new(access: Arc<HttpAccess>, refusals: Refusals, tape: CallTape) -> Self {
        Self { access, refusals, tape }
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
        Box::new(async move {
            let options = options.unwrap_or_default();
            if !tape.is_off() {
                return taped::exchange(&tape, &access, &refusals, request, options).await;
            }
            send::send(&access, request, options).await.map_err(|failure| match failure {
                send::Failure::Refused(refusal) => {
                    let error = refusal.error();
                    refusals.note(refusal);
                    error
                }
                send::Failure::Failed(error) => error,
            })
        })
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
