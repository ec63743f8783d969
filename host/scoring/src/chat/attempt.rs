//! A request to a server, sent once.

use super::body::Sending;
use super::cache::BODY_BYTES;
use super::endpoint::ChatEndpoint;
use super::error::ChatEndpointError;
use bytes::Bytes;
use gavel_endpoint::{Key, Reported, excerpt, may_help, reason, tls_client_config};
use gavel_plugin::{CallMeter, ChatBody, ChatError, JsonPieces};
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::redirect::Policy;
use std::time::{Duration, SystemTime};

/// The most bytes of an error response that are read.
const TOLD_BYTES: usize = 500;

/// A failed attempt.
pub(super) type Failed = gavel_endpoint::Failed<ChatError>;

/// Sends requests to servers. It has no `Debug`: its headers hold the key.
pub(super) struct Sender {
    /// The endpoint's name in errors.
    pub(super) name: String,
    api_key_env: Option<String>,
    key: Option<Key>,
    http: reqwest::Client,
}

/// The result of a request, and the limits that the server reported.
pub(super) struct Answered {
    pub(super) answer: Result<ChatBody, Failed>,
    pub(super) reported: Reported,
}

impl Sender {
    /// Reads the key and checks the endpoint.
    pub(super) fn new(name: &str, endpoint: &ChatEndpoint) -> Result<Self, ChatEndpointError> {
        let name = name.to_owned();
        endpoint.check().map_err(|what| ChatEndpointError::Field { name: name.clone(), what })?;
        let (mut headers, mut key) = (HeaderMap::new(), None);
        if let Some(variable) = &endpoint.api_key_env {
            let (name, variable) = (name.clone(), variable.clone());
            let Ok(read) = Key::read(&variable) else {
                return Err(ChatEndpointError::NoKey { name, variable });
            };
            let value = read.bearer().map_err(|_| ChatEndpointError::Key { name, variable })?;
            headers.insert(AUTHORIZATION, value);
            key = Some(read);
        }
        let tls = tls_client_config().map_err(|source| ChatEndpointError::Tls { name: name.clone(), source })?;
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .timeout(endpoint.timeout)
            // A redirect would carry the key elsewhere.
            .redirect(Policy::none())
            .tls_backend_preconfigured(tls)
            .build()
            .map_err(|source| ChatEndpointError::Client { name: name.clone(), source })?;
        Ok(Self { name, api_key_env: endpoint.api_key_env.clone(), key, http })
    }

    /// The same sender, with another name in errors.
    pub(super) fn shown_as(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    pub(super) fn unavailable(&self, what: &str) -> ChatError {
        ChatError::Unavailable(format!("the endpoint `{}`: {what}", self.name))
    }

    /// Sends a request once.
    pub(super) async fn send(&self, url: &str, body: &JsonPieces, meter: &CallMeter) -> Answered {
        let request = self.http.post(url).header("content-type", "application/json");
        let sending = reqwest::Body::wrap(Sending::new(body, meter.clone()));
        match request.body(sending).send().await {
            Ok(response) => {
                let reported = Reported::read(response.headers(), SystemTime::now());
                // Other failures tell nothing about a limit.
                let is_of_limit = response.status().is_success() || response.status() == StatusCode::TOO_MANY_REQUESTS;
                let answer = self.read(url, response, &reported, meter).await;
                Answered { answer, reported: if is_of_limit { reported } else { Reported::default() } }
            }
            Err(error) => Answered { answer: Err(self.lost(url, &error)), reported: Reported::default() },
        }
    }

    fn lost(&self, url: &str, error: &reqwest::Error) -> Failed {
        let error = self.unavailable(&format!("{url}: {}", reason(error)));
        Failed { again: Some(Duration::ZERO), is_of_server: true, ..error.into() }
    }

    async fn read(
        &self,
        url: &str,
        mut response: reqwest::Response,
        reported: &Reported,
        meter: &CallMeter,
    ) -> Result<ChatBody, Failed> {
        let status = response.status();
        let most = if status.is_success() { BODY_BYTES } else { TOLD_BYTES };
        let mut held = meter.hold(0).map_err(ChatError::from)?;
        let mut bytes = Vec::new();
        while bytes.len() <= most
            && let Some(chunk) = response.chunk().await.map_err(|error| self.lost(url, &error))?
        {
            held.grow(chunk.len()).map_err(ChatError::from)?;
            bytes.extend_from_slice(&chunk);
        }
        if let Some(key) = &self.key {
            let is_cut = bytes.len() > most;
            bytes = if is_cut { key.remove_from_beginning(bytes) } else { key.remove_from(bytes) };
        }
        if status.is_success() {
            if bytes.len() > BODY_BYTES {
                let error = self.unavailable(&format!("its answer has more than {BODY_BYTES} bytes"));
                return Err(error.into());
            }
            let bytes = Bytes::from(bytes);
            return meter.work(|| ChatBody::parse(bytes.clone(), held)).map_err(|error| {
                let error = self.unavailable(&format!("its answer is not JSON ({error}): {}", excerpt(&bytes)));
                Failed { again: Some(Duration::ZERO), is_of_server: true, ..error.into() }
            });
        }
        let what = format!("it answered {status}: {}", excerpt(&bytes));
        if may_help(status) {
            let again = Some(reported.retry_after().unwrap_or_default());
            let (is_of_server, is_answer) = (status.is_server_error(), status == StatusCode::INTERNAL_SERVER_ERROR);
            return Err(Failed { again, is_of_server, is_answer, ..self.unavailable(&what).into() });
        }
        let hint = match (status.as_u16(), &self.api_key_env) {
            (401 | 403, Some(variable)) => format!(" (the key was read from {variable})"),
            (401 | 403, None) => " (no api_key_env is set)".to_owned(),
            (404 | 405, _) => format!(" (asked at {url})"),
            _ => String::new(),
        };
        let error = ChatError::Refused(format!("the endpoint `{}`: {what}{hint}", self.name));
        let is_bad_request = matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY);
        Err(Failed { is_bad_request, ..error.into() })
    }
}
