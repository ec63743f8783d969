//! Exchanges on the call's tape. Which requests are refused is decided anew in
//! each replay; what a name led to, and what a server said, comes from the tape.

use super::access::{HttpAccess, Target};
use super::refusal::{Refusal, Refusals};
use super::send::{self, Failure};
use super::{Answer, Connection};
use crate::tape::{CallTape, TapeError};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

/// A body that is taped is held in memory, where a plugin's own limits do not
/// count it.
const BODY_BYTES: usize = 64 << 20;
/// Keys change, and belong on no tape: two requests that differ only here are
/// the same.
const SECRET_HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];

/// What an exchange came to; a response's body follows it.
#[derive(Serialize, Deserialize)]
enum Exchange {
    Answered { status: u16, headers: Vec<(String, Vec<u8>)> },
    Refused(IpAddr),
    Failed(Failed),
}

/// The errors that [`send`] ends with, as the guest can tell them apart.
#[derive(Serialize, Deserialize)]
enum Failed {
    Dns(Option<String>),
    Refused,
    Tls,
    ConnectTimeout,
    ReadTimeout,
    ResponseTimeout,
    BodySize,
    Protocol,
    Other(String),
}

/// [`send::send`] by way of the tape.
pub(super) async fn exchange(
    tape: &CallTape,
    access: &HttpAccess,
    refusals: &Refusals,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Answer {
    let target = Target::of(request.uri())?;
    if let Err(refusal) = access.admit(&target) {
        let error = refusal.error();
        refusals.note(refusal);
        return Err(error);
    }
    let (head, body) = request.into_parts();
    let too_large = |_| Error::HttpRequestBodySize(Some(BODY_BYTES as u64));
    let body = Limited::new(body, BODY_BYTES).collect().await.map_err(too_large)?.to_bytes();
    let name = format!("{} {}", head.method, without_query(&head.uri));
    let text = request_bytes(&head, &body);
    let live = async {
        let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
        let sent = send::send(access, Request::from_parts(head, body), options).await;
        written(receive(sent).await)
    };
    let bytes = tape.answer("http", &name, &text, live).await.map_err(|error: TapeError| {
        // The call's outcome says so, whatever the guest makes of this.
        Error::InternalError(Some(error.to_string()))
    })?;
    read(&bytes, target, refusals)
}

fn without_query(uri: &http::Uri) -> String {
    // A query may hold a key; the name goes into logs.
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    format!("{}://{authority}{}", uri.scheme_str().unwrap_or("http"), uri.path())
}

/// What makes two requests equal.
fn request_bytes(head: &http::request::Parts, body: &Bytes) -> Vec<u8> {
    let mut text = format!("{} {}\n", head.method, head.uri).into_bytes();
    let mut headers: Vec<(&str, &[u8])> = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .filter(|(name, _)| !SECRET_HEADERS.contains(name))
        .collect();
    headers.sort();
    for (name, value) in headers {
        text.extend_from_slice(name.as_bytes());
        text.push(b':');
        text.extend_from_slice(value);
        text.push(b'\n');
    }
    text.push(b'\n');
    text.extend_from_slice(body);
    text
}

/// Waits for the whole response; its trailers are left out.
async fn receive(sent: Result<(Response<WasiBody>, Connection), Failure>) -> (Exchange, Bytes) {
    let (response, _connection) = match sent {
        Ok(sent) => sent,
        Err(Failure::Refused(Refusal::Address(_, address))) => return (Exchange::Refused(address), Bytes::new()),
        Err(Failure::Refused(refusal)) => return (Exchange::Failed(Failed::Other(refusal.to_string())), Bytes::new()),
        Err(Failure::Failed(error)) => return (Exchange::Failed(failed(error)), Bytes::new()),
    };
    let (head, body) = response.into_parts();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
    match Limited::new(body, BODY_BYTES).collect().await {
        Ok(body) => (Exchange::Answered { status: head.status.as_u16(), headers }, body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => (Exchange::Failed(Failed::BodySize), Bytes::new()),
        Err(error) => {
            let failed = error.downcast::<Error>().map_or(Failed::Protocol, |error| failed(*error));
            (Exchange::Failed(failed), Bytes::new())
        }
    }
}

fn failed(error: Error) -> Failed {
    match error {
        Error::DnsError { rcode, .. } => Failed::Dns(rcode),
        Error::Connect(_) | Error::ConnectionRefused => Failed::Refused,
        Error::Tls(_) | Error::TlsProtocolError => Failed::Tls,
        Error::ConnectionTimeout => Failed::ConnectTimeout,
        Error::ConnectionReadTimeout => Failed::ReadTimeout,
        Error::Hyper(error) if error.is_timeout() => Failed::ResponseTimeout,
        Error::Hyper(_) | Error::HttpProtocolError => Failed::Protocol,
        other => Failed::Other(format!("{other:?}")),
    }
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Dns(rcode) => Error::DnsError { rcode, info_code: None },
            Failed::Refused => Error::ConnectionRefused,
            Failed::Tls => Error::TlsProtocolError,
            Failed::ConnectTimeout => Error::ConnectionTimeout,
            Failed::ReadTimeout => Error::ConnectionReadTimeout,
            Failed::ResponseTimeout => Error::HttpResponseTimeout,
            Failed::BodySize => Error::HttpResponseBodySize(Some(BODY_BYTES as u64)),
            Failed::Protocol => Error::HttpProtocolError,
            Failed::Other(what) => Error::InternalError(Some(what)),
        }
    }
}

/// One line of JSON, then the body.
fn written((exchange, body): (Exchange, Bytes)) -> Vec<u8> {
    // An exchange has no map whose keys are not strings: this cannot fail.
    let mut bytes = serde_json::to_vec(&exchange).unwrap_or_default();
    bytes.push(b'\n');
    bytes.extend_from_slice(&body);
    bytes
}

/// The same whether it was just recorded or is replayed: the guest sees what
/// the tape has.
fn read(bytes: &[u8], target: Target, refusals: &Refusals) -> Answer {
    let broken = || Error::InternalError(Some("the tape has an exchange that is not understood".into()));
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(broken)?;
    match serde_json::from_slice(&bytes[..end]).map_err(|_| broken())? {
        Exchange::Answered { status, headers } => {
            let body = Full::new(Bytes::copy_from_slice(&bytes[end + 1..])).map_err(|never| match never {});
            let mut response = Response::new(body.boxed_unsync());
            *response.status_mut() = status.try_into().map_err(|_| broken())?;
            let map: &mut HeaderMap = response.headers_mut();
            for (name, value) in headers {
                let name: http::HeaderName = name.parse().map_err(|_| broken())?;
                map.append(name, value.try_into().map_err(|_| broken())?);
            }
            Ok((response, Box::new(async { Ok(()) })))
        }
        Exchange::Refused(address) => {
            let refusal = Refusal::Address(target, address);
            let error = refusal.error();
            refusals.note(refusal);
            Err(error)
        }
        Exchange::Failed(failed) => Err(failed.into()),
    }
}
