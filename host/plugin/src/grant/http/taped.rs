//! Records exchanges on the call's tape, and reads them from it. Each replay
//! checks anew which requests are refused; the resolved addresses and the
//! responses come from the tape.

use super::access::HttpAccess;
use super::charged::{Answer, Connection, EXCHANGE_BYTES, charged, out_of_budget};
use super::in_turn;
use super::refusal::{Refusal, Refusals};
use super::secrets::{SECRET_HEADERS, Secrets};
use super::send::Failure;
use super::target::Target;
use crate::budget::NoMemory;
use crate::grant::call_outside::{CallOutside, NotedCall};
use crate::outside::{CallMeter, Held};
use crate::tape::{QueueTime, RequestHash, TapeError};
use bytes::Bytes;
use gavel_data::{OutsideCallEnding, OutsideCallKind};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::Arc;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

/// The most bytes of a body on a tape. The body is held in memory, which is charged to the call.
const BODY_BYTES: usize = 64 << 20;

/// The result of an exchange; a response's body follows it.
#[derive(Serialize, Deserialize)]
enum Exchange {
    Answered { status: u16, headers: Vec<(String, Vec<u8>)> },
    Refused(IpAddr),
    Failed(Failed),
}

/// The errors of [`send`] that the guest can tell apart.
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
    /// The call had no memory for the body.
    NoMemory,
}

/// [`send::send`] with the tape.
pub(super) async fn exchange(
    outside: &CallOutside,
    access: &HttpAccess,
    refusals: &Refusals,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Answer {
    let (target, meter) = (Target::of(request.uri())?, &outside.meter);
    if let Err(refusal) = access.admit(&target) {
        let error = refusal.error();
        refusals.note(refusal);
        return Err(error);
    }
    let (head, body) = request.into_parts();
    let (mut sent, mut upload) = (Vec::new(), meter.hold(0).map_err(out_of_budget)?);
    collect(body, &mut sent, &mut upload).await.map_err(|error| match error {
        NotCollected::NoMemory(error) => out_of_budget(error),
        NotCollected::TooLarge | NotCollected::Broken(_) => Error::HttpRequestBodySize(Some(BODY_BYTES as u64)),
    })?;
    let name = format!("{} {}", head.method, without_query(&head.uri));
    let (hash, secrets) = (hash(&head, &sent), Secrets::of(&head, &access.variables));
    let mut held = meter.hold(EXCHANGE_BYTES).map_err(out_of_budget)?;
    let mut replayed = true;
    let live = async {
        replayed = false;
        let queued = Arc::<QueueTime>::default();
        let public = secrets.remove_from(name.clone().into_bytes());
        let mut noted = outside.note(OutsideCallKind::Http, &String::from_utf8_lossy(&public), &queued);
        if let Some(noted) = &mut noted {
            let text = noted.has_texts().then(|| secrets.remove_from(sent.clone()).into());
            noted.ask(sent.len() as u64, text);
        }
        let body = Full::new(sent.into()).map_err(|never| match never {}).boxed_unsync();
        let sent = in_turn::send(access, meter, Request::from_parts(head, body), options, &queued).await;
        let received = receive(sent, &secrets, &mut held).await;
        if let Some(noted) = noted {
            note_end(noted, &received);
        }
        received
    };
    let bytes = outside.tape.answer(hash, &name, live).await.map_err(|error: TapeError| {
        // This error decides the call's outcome, whatever the guest does with it.
        Error::InternalError(Some(error.to_string()))
    })?;
    drop(upload);
    let response = read(bytes.into(), target, refusals, meter)?;
    if replayed {
        held.grow(response.body().len()).map_err(out_of_budget)?;
    }
    let response = response.map(|body| Full::new(body).map_err(|never| match never {}).boxed_unsync());
    Ok(charged((response, Box::new(async { Ok(()) })), held))
}

/// Why a body is not whole.
enum NotCollected {
    TooLarge,
    NoMemory(NoMemory),
    Broken(Error),
}

/// Puts a body, without its trailers, at the end of `bytes`.
async fn collect(mut body: WasiBody, bytes: &mut Vec<u8>, held: &mut Held) -> Result<(), NotCollected> {
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(NotCollected::Broken)?.into_data() else { continue };
        size += data.len();
        if size > BODY_BYTES {
            return Err(NotCollected::TooLarge);
        }
        held.grow(data.len()).map_err(NotCollected::NoMemory)?;
        bytes.extend_from_slice(&data);
    }
    Ok(())
}

fn without_query(uri: &http::Uri) -> String {
    // A query may hold a key, and a user a password, which must not be in the logs.
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let server = authority.rsplit_once('@').map_or(authority, |(_, server)| server);
    format!("{}://{server}{}", uri.scheme_str().unwrap_or("http"), uri.path())
}

/// The hash of a request; equal requests have the same hash.
fn hash(head: &http::request::Parts, body: &[u8]) -> RequestHash {
    let mut hash = RequestHash::new("http");
    hash.update(format!("{} {}\n", head.method, head.uri).as_bytes());
    let mut headers: Vec<(&str, &[u8])> = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()))
        .filter(|(name, _)| !SECRET_HEADERS.contains(name))
        .collect();
    headers.sort();
    for (name, value) in headers {
        for part in [name.as_bytes(), b":", value, b"\n"] {
            hash.update(part);
        }
    }
    hash.update(b"\n");
    hash.update(body);
    hash
}

/// Waits for the whole response, in its form on the tape: a line of JSON, then the body. A server that repeats a key is
/// answered for without it.
async fn receive(
    sent: Result<(Response<WasiBody>, Connection), Failure>,
    secrets: &Secrets,
    held: &mut Held,
) -> Vec<u8> {
    let (response, _connection) = match sent {
        Ok(sent) => sent,
        Err(Failure::Refused(Refusal::Address(_, address))) => return line(&Exchange::Refused(address)),
        Err(Failure::Refused(refusal)) => return line(&Exchange::Failed(Failed::Other(refusal.to_string()))),
        Err(Failure::Failed(error)) => return line(&Exchange::Failed(failed(error))),
    };
    let (head, body) = response.into_parts();
    let mut whole = Vec::new();
    match collect(body, &mut whole, held).await {
        Ok(()) => {
            let length = whole.len();
            let mut bytes = secrets.remove_from(whole);
            let is_kept = |name: &HeaderName| bytes.len() == length || *name != CONTENT_LENGTH;
            let headers = head.headers.iter().filter(|(name, _)| is_kept(name) && !secrets.are_in_name(name));
            let clean = |value: &HeaderValue| secrets.remove_from(value.as_bytes().to_vec());
            let headers = headers.map(|(name, value)| (name.to_string(), clean(value))).collect();
            let head = line(&Exchange::Answered { status: head.status.as_u16(), headers });
            bytes.splice(0..0, head);
            bytes
        }
        Err(NotCollected::TooLarge) => line(&Exchange::Failed(Failed::BodySize)),
        Err(NotCollected::NoMemory(_)) => line(&Exchange::Failed(Failed::NoMemory)),
        Err(NotCollected::Broken(error)) => line(&Exchange::Failed(failed(error))),
    }
}

/// Notes how an exchange ended, by its form on the tape.
fn note_end(noted: NotedCall, received: &[u8]) {
    let end = received.iter().position(|byte| *byte == b'\n').unwrap_or(received.len());
    let (ending, error) = match serde_json::from_slice(&received[..end]) {
        Ok(Exchange::Answered { status, .. }) => {
            let body = received.get(end + 1..).unwrap_or_default();
            let text = noted.has_texts().then(|| Bytes::copy_from_slice(body));
            return noted.answer(Some(status), body.len() as u64, text);
        }
        Ok(Exchange::Refused(address)) => {
            (OutsideCallEnding::Refused, Some(format!("its address {address} is not granted")))
        }
        Ok(Exchange::Failed(Failed::NoMemory)) => (OutsideCallEnding::OutOfBudget, Some(NoMemory.to_string())),
        Ok(Exchange::Failed(failed)) => (OutsideCallEnding::Unavailable, Some(format!("{:?}", Error::from(failed)))),
        // Not reached: it was just written.
        Err(_) => (OutsideCallEnding::Unavailable, None),
    };
    noted.end(ending, error);
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
            Failed::NoMemory => Error::InternalError(Some(NoMemory.to_string())),
        }
    }
}

fn line(exchange: &Exchange) -> Vec<u8> {
    // Cannot fail: an exchange has no map whose keys are not strings.
    let mut bytes = serde_json::to_vec(exchange).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Reads a response from its form on the tape, so the guest sees the same whether
/// it was just recorded or is replayed.
fn read(bytes: Bytes, target: Target, refusals: &Refusals, meter: &CallMeter) -> Result<Response<Bytes>, Error> {
    let broken = || Error::InternalError(Some("the tape has an exchange that cannot be parsed".into()));
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(broken)?;
    match serde_json::from_slice(&bytes[..end]).map_err(|_| broken())? {
        Exchange::Answered { status, headers } => {
            let mut response = Response::new(bytes.slice(end + 1..));
            *response.status_mut() = status.try_into().map_err(|_| broken())?;
            let map: &mut HeaderMap = response.headers_mut();
            for (name, value) in headers {
                let name: http::HeaderName = name.parse().map_err(|_| broken())?;
                map.append(name, value.try_into().map_err(|_| broken())?);
            }
            Ok(response)
        }
        Exchange::Refused(address) => {
            let refusal = Refusal::Address(target, address);
            let error = refusal.error();
            refusals.note(refusal);
            Err(error)
        }
        Exchange::Failed(Failed::NoMemory) => Err(out_of_budget(meter.refuse())),
        Exchange::Failed(failed) => Err(failed.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_that_a_server_repeats_is_not_on_the_tape() {
        let sent = Request::builder()
            .header("authorization", "Bearer sk-s3cret")
            .header("cookie", "theme=dark; session=c00kie-s3cret")
            .header("x-api-key", "none");
        let secrets = Secrets::of(&sent.body(()).unwrap().into_parts().0, &[]);
        let body = r#"{"error": "no access with Bearer sk-s3cret or c00kie-s3cret, none of them"}"#;
        let answered = |body: &'static str| {
            let response = Response::builder().header("content-length", body.len()).header("x-asked-with", "sk-s3cret");
            let response = response.header("x-sk-s3cret", "1");
            let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
            Ok((response.body(body).unwrap(), Box::new(async { Ok(()) }) as Connection))
        };
        let meter = CallMeter::alone();
        let mut held = meter.hold(0).unwrap();
        let text = String::from_utf8(receive(answered(body), &secrets, &mut held).await).unwrap();
        let (head, body) = text.split_once('\n').unwrap();
        assert_eq!(body, r#"{"error": "no access with Bearer $authorization or $cookie, none of them"}"#);
        let Exchange::Answered { headers, .. } = serde_json::from_str(head).unwrap() else { panic!("{head}") };
        // The length of the body is another one now.
        assert_eq!(headers, [("x-asked-with".to_owned(), b"$authorization".to_vec())]);
        let text = receive(answered("hello"), &secrets, &mut held).await;
        assert!(text.ends_with(b"\nhello") && String::from_utf8(text).unwrap().contains("content-length"));
    }
}
