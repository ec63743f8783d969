//! A request to the server.

use gavel_sdk::Failure;
use std::time::Duration;
use wasip2::clocks::monotonic_clock;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{ErrorCode, Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme};
use wasip2::io::streams::StreamError;

/// The most bytes of an error response that are shown.
const SHOWN: usize = 300;

/// A server, and the path on it.
#[derive(Debug)]
pub(crate) struct Server {
    scheme: Scheme,
    authority: String,
    path: String,
    api_key_env: Option<String>,
}

/// The result of a request.
pub(crate) enum Exchange {
    /// The body of an answer with the status 200.
    Answered(Vec<u8>),
    /// No answer, or one that asks for another attempt later.
    Lost {
        what: String,
        /// The shortest wait before another attempt.
        after: Duration,
    },
}

impl Server {
    /// The server of an `http://` or `https://` URL.
    pub(crate) fn parse(url: &str, api_key_env: Option<String>) -> Result<Self, String> {
        let parts = match url.split_once("://") {
            Some(("http", rest)) => Some((Scheme::Http, rest)),
            Some(("https", rest)) => Some((Scheme::Https, rest)),
            _ => None,
        };
        let Some((scheme, rest)) = parts.filter(|(_, rest)| !rest.is_empty() && !rest.starts_with('/')) else {
            return Err(format!("`url` must be like http://127.0.0.1:8000/score, not {url:?}"));
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err("`url` must not have a password\nhint: name the variable with the key in `api_key_env`".into());
        }
        let path = if path.is_empty() { "/" } else { path };
        Ok(Self { scheme, authority: authority.into(), path: path.into(), api_key_env })
    }

    fn url(&self) -> String {
        let scheme = if matches!(self.scheme, Scheme::Https) { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// Sends a body of JSON and reads the answer.
    ///
    /// # Errors
    /// The server refuses the request and would refuse it again, or it may not
    /// be asked.
    pub(crate) fn post(&self, body: &[u8]) -> Result<Exchange, Failure> {
        let lost = |what: String| Exchange::Lost { what: format!("{}: {what}", self.url()), after: Duration::ZERO };
        let response = match self.send(body)? {
            Ok(response) => response,
            Err(ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited) => {
                let what = format!("{} is not granted\nhint: add it to `http` of the reward's grant", self.url());
                return Err(Failure::internal(what));
            }
            Err(error) => return Ok(lost(format!("no answer ({error:?})"))),
        };
        let (status, after) = (response.status(), retry_after(&response));
        let answer = match read(&response) {
            Ok(answer) => answer,
            Err(error) => return Ok(lost(format!("the answer broke off ({error})"))),
        };
        if status == 200 {
            return Ok(Exchange::Answered(answer));
        }
        let what = format!("{} answered with the status {status}: {}", self.url(), excerpt(&answer));
        match status {
            408 | 409 | 425 | 429 | 500.. => Ok(Exchange::Lost { what, after }),
            401 | 403 => {
                let key = self.api_key_env.as_deref();
                let hint = key.map_or("no `api_key_env` is set".into(), |name| format!("the key was read from {name}"));
                Err(Failure::internal(format!("{what} ({hint})")))
            }
            _ => Err(Failure::internal(what)),
        }
    }

    fn send(&self, body: &[u8]) -> Result<Result<IncomingResponse, ErrorCode>, Failure> {
        let request = OutgoingRequest::new(self.headers(body.len())?);
        let is_set = request.set_method(&Method::Post).is_ok()
            && request.set_scheme(Some(&self.scheme)).is_ok()
            && request.set_authority(Some(&self.authority)).is_ok()
            && request.set_path_with_query(Some(&self.path)).is_ok();
        let outgoing = request.body().ok().filter(|_| is_set);
        let Some(outgoing) = outgoing else {
            return Err(Failure::internal(format!("`url` is no address of a server: {}", self.url())));
        };
        let answer = match outgoing_handler::handle(request, None) {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(error)),
        };
        // Where the server ends the exchange early, its answer says why.
        let _ = write(&outgoing, body);
        let _ = OutgoingBody::finish(outgoing, None);
        answer.subscribe().block();
        match answer.get() {
            Some(Ok(response)) => Ok(response),
            _ => Err(Failure::internal("the answer was read twice")),
        }
    }

    fn headers(&self, length: usize) -> Result<Fields, Failure> {
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json".to_owned()),
            ("content-length", length.to_string()),
        ];
        if let Some(name) = &self.api_key_env {
            let key = std::env::var(name).map_err(|_| {
                Failure::internal(format!(
                    "the variable {name} is not granted\nhint: add it to `env` of the reward's grant"
                ))
            })?;
            headers.push(("authorization", format!("Bearer {}", key.trim())));
        }
        let headers: Vec<(String, Vec<u8>)> =
            headers.into_iter().map(|(name, value)| (name.to_owned(), value.into_bytes())).collect();
        Fields::from_list(&headers).map_err(|error| Failure::internal(format!("the key cannot be sent: {error:?}")))
    }
}

/// Waits, in real time where the clock is granted.
pub(crate) fn sleep(time: Duration) {
    monotonic_clock::subscribe_duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)).block();
}

fn write(outgoing: &OutgoingBody, mut body: &[u8]) -> Result<(), StreamError> {
    let Ok(stream) = outgoing.write() else { return Err(StreamError::Closed) };
    let ready = stream.subscribe();
    while !body.is_empty() {
        ready.block();
        let room = usize::try_from(stream.check_write()?).unwrap_or(usize::MAX);
        let (now, rest) = body.split_at(room.min(body.len()));
        stream.write(now)?;
        body = rest;
    }
    stream.flush()?;
    ready.block();
    Ok(())
}

fn read(response: &IncomingResponse) -> Result<Vec<u8>, String> {
    let body = response.consume().map_err(|()| "it was taken")?;
    let stream = body.stream().map_err(|()| "it was read")?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(65_536) {
            Ok(part) => bytes.extend(part),
            Err(StreamError::Closed) => return Ok(bytes),
            Err(StreamError::LastOperationFailed(error)) => return Err(error.to_debug_string()),
        }
    }
}

/// The wait that the server asks for, if it is in seconds.
fn retry_after(response: &IncomingResponse) -> Duration {
    let values = response.headers().get("retry-after");
    let seconds = values.first().and_then(|value| std::str::from_utf8(value).ok()?.trim().parse().ok());
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or_default()
}

/// The beginning of an answer in one line.
fn excerpt(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(&answer[..answer.len().min(SHOWN)]);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if answer.len() > SHOWN { format!("{line}…") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_server_and_a_path() {
        let parse = |url: &str| Server::parse(url, None).map(|server| (server.authority.clone(), server.url()));
        for (url, authority, whole) in [
            ("http://127.0.0.1:8000/score?x=1", "127.0.0.1:8000", "http://127.0.0.1:8000/score?x=1"),
            ("https://lean.example", "lean.example", "https://lean.example/"),
        ] {
            assert_eq!(parse(url), Ok((authority.to_owned(), whole.to_owned())));
        }
        for url in ["lean.example", "ftp://lean.example", "http://", "http:///score"] {
            assert_eq!(parse(url), Err(format!("`url` must be like http://127.0.0.1:8000/score, not {url:?}")));
        }
        assert!(parse("http://user:secret@lean.example").is_err_and(|error| !error.contains("secret")));
    }
}
