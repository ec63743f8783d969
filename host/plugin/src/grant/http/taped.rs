//! A request of a call whose answers are kept, or come from a tape: whole on
//! both sides, since what is kept has an end.

use super::access::{HttpAccess, Target};
use super::refusal::Refusal;
use super::send::{self, Failure};
use super::{Answered, Connection};
use crate::tape::CallTape;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

/// Parts of a message in the order in which they came.
type Headers = Vec<(String, Vec<u8>)>;

/// What makes two requests the same.
#[derive(Serialize)]
struct Asked<'a> {
    method: &'a str,
    uri: String,
    headers: Headers,
    body: &'a [u8],
}

/// What came of a request.
#[derive(Serialize, Deserialize)]
enum Kept {
    Response {
        status: u16,
        headers: Headers,
        body: Vec<u8>,
    },
    /// The name led to this address, which is not granted.
    Refused(IpAddr),
    Failed(Trouble),
}

/// Why there was no response, as far as a guest can act on it.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum Trouble {
    Name,
    Connection,
    Timeout,
    Tls,
    Protocol,
    Denied,
    Host,
}

/// Sends a request that the grants cover, or takes what came of it last time.
pub(super) async fn send(
    access: &HttpAccess,
    tape: &CallTape,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Answered {
    let target = Target::of(request.uri())?;
    access.admit(&target)?;
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let asked = Asked {
        method: parts.method.as_str(),
        uri: parts.uri.to_string(),
        headers: written(&parts.headers),
        body: &body,
    };
    let name = format!("{} {}", asked.method, asked.uri);
    // Neither side has anything that JSON cannot hold.
    let asked = serde_json::to_vec(&asked).unwrap_or_default();
    let live = async {
        let kept = match whole(access, Request::from_parts(parts, whole_body(body.clone())), options).await {
            Ok(kept) => kept,
            Err(Failure::Refused(Refusal::Address(_, address))) => Kept::Refused(address),
            Err(Failure::Refused(Refusal::NotGranted(_))) => Kept::Failed(Trouble::Denied),
            Err(Failure::Failed(error)) => Kept::Failed(Trouble::of(&error)),
        };
        serde_json::to_vec(&kept).unwrap_or_default()
    };
    let answer = tape
        .answer("http", &name, &asked, live)
        .await
        .map_err(|error| Error::InternalError(Some(error.to_string())))?;
    let damaged = |_| Error::InternalError(Some("the answer on the tape is damaged".into()));
    match serde_json::from_slice(&answer).map_err(damaged)? {
        Kept::Response { status, headers, body } => {
            let mut response = Response::new(whole_body(body.into()));
            *response.status_mut() = status.try_into().map_err(|_| Error::HttpProtocolError)?;
            for (name, value) in headers {
                let name = HeaderName::try_from(name).map_err(|_| Error::HttpProtocolError)?;
                let value = HeaderValue::try_from(value).map_err(|_| Error::HttpProtocolError)?;
                response.headers_mut().append(name, value);
            }
            Ok((response, nothing_left()))
        }
        Kept::Refused(address) => Err(Refusal::Address(target, address).into()),
        Kept::Failed(trouble) => Err(trouble.error().into()),
    }
}

/// The response with all of its body.
async fn whole(access: &HttpAccess, request: Request<WasiBody>, options: RequestOptions) -> Result<Kept, Failure> {
    let (response, _connection) = send::send(access, request, options).await?;
    let (parts, body) = response.into_parts();
    let body = body.collect().await?.to_bytes().to_vec();
    Ok(Kept::Response { status: parts.status.as_u16(), headers: written(&parts.headers), body })
}

fn whole_body(bytes: Bytes) -> WasiBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

fn nothing_left() -> Connection {
    Box::new(std::future::ready(Ok(())))
}

fn written(headers: &HeaderMap) -> Headers {
    headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
}

impl Trouble {
    fn of(error: &Error) -> Self {
        match error {
            Error::DnsTimeout | Error::DnsError { .. } => Self::Name,
            Error::Connect(_) | Error::ConnectionRefused | Error::ConnectionTerminated => Self::Connection,
            Error::ConnectionTimeout | Error::ConnectionReadTimeout | Error::HttpResponseTimeout => Self::Timeout,
            Error::Tls(_) | Error::TlsProtocolError | Error::TlsCertificateError => Self::Tls,
            Error::HttpRequestDenied => Self::Denied,
            Error::ConfigurationError | Error::InternalError(_) => Self::Host,
            _ => Self::Protocol,
        }
    }

    fn error(self) -> Error {
        match self {
            Self::Name => Error::DnsError { rcode: None, info_code: None },
            Self::Connection => Error::ConnectionRefused,
            Self::Timeout => Error::HttpResponseTimeout,
            Self::Tls => Error::TlsProtocolError,
            Self::Protocol => Error::HttpProtocolError,
            Self::Denied => Error::HttpRequestDenied,
            Self::Host => Error::InternalError(None),
        }
    }
}
