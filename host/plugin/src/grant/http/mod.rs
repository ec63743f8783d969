//! `http`: servers that a plugin may ask.
//!
//! Each request is checked by itself. A redirect that the guest follows is a
//! request like any other. A name is resolved here, once, and the connection goes
//! to an address that was checked, so a later change of the name does not matter.

mod access;
mod address;
mod charged;
mod in_turn;
mod limit;
mod refusal;
mod rule;
mod secrets;
mod send;
mod servers;
mod taped;
mod target;

pub(super) use access::HttpAccess;
pub(super) use limit::HttpLimit;
pub(crate) use refusal::Refusals;
pub use servers::HttpServers;
pub(super) use servers::{ServerPool, check as check_servers};

use super::call_outside::CallOutside;
use super::error::GrantError;
use crate::tape::QueueTime;
use charged::{Answer, Connection, EXCHANGE_BYTES, charged, out_of_budget};
use rule::Rule;
use std::sync::Arc;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{RequestOptions, WasiBody, WasiHttpCtx, WasiHttpHooks};

/// The most bytes of a body that a guest may write at once. A body that nobody
/// reads holds two of these and is not charged, since it counts as a handle.
const WRITE_BYTES: usize = 32 << 10;
/// The most bytes of a list of headers, which counts as a handle too; servers accept 8 KB.
const FIELDS_BYTES: usize = 32 << 10;

/// The limits of what handles hold.
pub(super) fn context() -> WasiHttpCtx {
    let mut context = WasiHttpCtx::new();
    context.set_field_size_limit(FIELDS_BYTES);
    context
}

pub(super) fn parse_all(grants: &[String]) -> Result<Vec<Rule>, GrantError> {
    let parse = |grant: &String| Rule::parse(grant).map_err(|what| GrantError::Http { grant: grant.clone(), what });
    grants.iter().map(parse).collect()
}

/// The requests of one call.
pub(super) struct HttpCalls {
    access: Arc<HttpAccess>,
    refusals: Refusals,
    outside: CallOutside,
}

impl HttpCalls {
    pub(super) fn new(access: Arc<HttpAccess>, refusals: Refusals, outside: CallOutside) -> Self {
        Self { access, refusals, outside }
    }
}

impl WasiHttpHooks for HttpCalls {
    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Connection,
    ) -> Box<dyn Future<Output = Answer> + Send> {
        let (access, refusals, outside) = (self.access.clone(), self.refusals.clone(), self.outside.clone());
        // Counted here and not when it is sent, since a guest may drop it before.
        let counted = outside.meter.request(1);
        Box::new(async move {
            let options = options.unwrap_or_default();
            counted.map_err(out_of_budget)?;
            if !outside.tape.is_off() {
                return taped::exchange(&outside, &access, &refusals, request, options).await;
            }
            let held = outside.meter.hold(EXCHANGE_BYTES).map_err(out_of_budget)?;
            match in_turn::send(&access, &outside.meter, request, options, &QueueTime::default()).await {
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

    // The next three only convert errors. The defaults would also log each failed request, though the guest has the
    // error.

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
