//! Sends requests to an endpoint, with retries.

use super::body::Sending;
use super::endpoint::{ChatEndpoint, RESERVED};
use super::retry::{FIRST_PAUSE, LONGEST_PAUSE, may_help, retry_after};
use backon::{ExponentialBuilder, Retryable};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_plugin::{
    CallMeter, ChatBody, ChatError, ChatModel, ChatRequest, JsonPieces, NoMemory, NoRootCertificates, tls_client_config,
};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;

/// The most bytes of an answer that are read.
const BODY_BYTES: usize = 16 << 20;
/// The most bytes of an error response that are read.
const TOLD_BYTES: usize = 500;

/// An endpoint that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ChatEndpointError {
    /// A field is wrong.
    #[error("chat.{name}.{what}")]
    Field {
        /// The endpoint.
        name: String,
        /// The field, and what is wrong.
        what: String,
    },
    /// The variable with the key is not set.
    #[error(
        "chat.{name}.api_key_env: the variable {variable} is not set\nhint: set it in the environment of gavel, or remove api_key_env if the endpoint needs no key"
    )]
    NoKey {
        /// The endpoint.
        name: String,
        /// The variable.
        variable: String,
    },
    /// The key cannot be sent in a header.
    #[error("chat.{name}.api_key_env: the variable {variable} has characters that an HTTP header cannot have")]
    Key {
        /// The endpoint.
        name: String,
        /// The variable.
        variable: String,
    },
    /// There are no certificates to check the server's certificate with.
    #[error("chat.{name}: {source}")]
    Tls {
        /// The endpoint.
        name: String,
        /// Why.
        source: NoRootCertificates,
    },
    /// The HTTP client does not start.
    #[error("chat.{name}: cannot make an HTTP client: {source}")]
    Client {
        /// The endpoint.
        name: String,
        /// Why.
        source: reqwest::Error,
    },
}

/// One endpoint. It has no `Debug`: its headers hold the key.
pub(super) struct Client {
    name: String,
    endpoint: ChatEndpoint,
    http: reqwest::Client,
}

/// A failed attempt.
struct Failed {
    error: ChatError,
    /// The shortest wait before another attempt; `None` where another attempt cannot help.
    again: Option<Duration>,
}

impl From<NoMemory> for Failed {
    fn from(error: NoMemory) -> Self {
        Self { error: error.into(), again: None }
    }
}

impl Client {
    /// Reads the key and checks the endpoint without a request.
    pub(super) fn new(name: &str, endpoint: &ChatEndpoint) -> Result<Self, ChatEndpointError> {
        let name = name.to_owned();
        endpoint.check().map_err(|what| ChatEndpointError::Field { name: name.clone(), what })?;
        let mut headers = HeaderMap::new();
        if let Some(variable) = &endpoint.api_key_env {
            let (name, variable) = (name.clone(), variable.clone());
            let Ok(key) = std::env::var(&variable) else {
                return Err(ChatEndpointError::NoKey { name, variable });
            };
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.trim()))
                .map_err(|_| ChatEndpointError::Key { name, variable })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
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
        Ok(Self { name, endpoint: endpoint.clone(), http })
    }

    fn body(&self, request: &ChatRequest) -> Result<JsonPieces, ChatError> {
        if let Some(field) = RESERVED.iter().find(|field| request.options.contains_key(**field)) {
            return Err(ChatError::InvalidRequest(format!(
                "a request to the endpoint `{}` cannot set `{field}`",
                self.name
            )));
        }
        let mut fields = Map::new();
        fields.insert("model".into(), Value::String(self.endpoint.model.clone()));
        fields.extend(self.endpoint.options.clone());
        fields.extend(request.options.clone());
        request.body(&fields).map_err(|error| ChatError::InvalidRequest(error.to_string()))
    }

    async fn attempt(&self, body: &JsonPieces, meter: &CallMeter) -> Result<ChatBody, Failed> {
        let request = self.http.post(self.endpoint.url()).header("content-type", "application/json");
        let again = Some(Duration::ZERO);
        let url = self.endpoint.url();
        let lost =
            |error: reqwest::Error| Failed { error: self.unavailable(&format!("{url}: {}", reason(&error))), again };
        let sending = reqwest::Body::wrap(Sending::new(body, meter.clone()));
        let mut response = request.body(sending).send().await.map_err(lost)?;
        let (status, after) = (response.status(), retry_after(response.headers(), SystemTime::now()));
        let most = if status.is_success() { BODY_BYTES } else { TOLD_BYTES };
        let mut held = meter.hold(0)?;
        let mut bytes = Vec::new();
        while bytes.len() <= most
            && let Some(chunk) = response.chunk().await.map_err(lost)?
        {
            held.grow(chunk.len())?;
            bytes.extend_from_slice(&chunk);
        }
        if status.is_success() {
            if bytes.len() > BODY_BYTES {
                let error = self.unavailable(&format!("its answer has more than {BODY_BYTES} bytes"));
                return Err(Failed { error, again: None });
            }
            let bytes = Bytes::from(bytes);
            return meter.work(|| ChatBody::parse(bytes.clone(), held)).map_err(|error| {
                let error = self.unavailable(&format!("its answer is not JSON ({error}): {}", excerpt(&bytes)));
                Failed { error, again }
            });
        }
        let what = format!("it answered {status}: {}", excerpt(&bytes));
        Err(match may_help(status) {
            true => Failed { error: self.unavailable(&what), again: Some(after.unwrap_or_default()) },
            false => {
                let hint = match (status.as_u16(), &self.endpoint.api_key_env) {
                    (401 | 403, Some(variable)) => format!(" (the key was read from {variable})"),
                    (401 | 403, None) => " (no api_key_env is set)".to_owned(),
                    (404 | 405, _) => format!(" (asked at {url})"),
                    _ => String::new(),
                };
                Failed { error: ChatError::Refused(format!("the endpoint `{}`: {what}{hint}", self.name)), again: None }
            }
        })
    }

    /// The same client, with another name in errors.
    pub(super) fn shown_as(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    pub(super) fn unavailable(&self, what: &str) -> ChatError {
        ChatError::Unavailable(format!("the endpoint `{}`: {what}", self.name))
    }

    pub(super) async fn ask(&self, request: ChatRequest, meter: &CallMeter) -> Result<ChatBody, ChatError> {
        let body = meter.work(|| self.body(&request))?;
        let pauses = ExponentialBuilder::default()
            .with_min_delay(FIRST_PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .with_max_times(self.endpoint.retries)
            .with_jitter();
        let attempts = (|| self.attempt(&body, meter))
            .retry(pauses)
            .when(|failed: &Failed| failed.again.is_some())
            .adjust(|failed, pause| Some(pause?.max(failed.again?)))
            .notify(|failed, pause| {
                tracing::debug!("{}; again in {:.1} s", failed.error, pause.as_secs_f64());
            });
        match timeout(self.endpoint.deadline, attempts).await {
            Ok(answer) => answer.map_err(|failed| failed.error),
            Err(_) => {
                let seconds = self.endpoint.deadline.as_secs_f64();
                Err(self.unavailable(&format!("{}: no answer in {seconds} s, with all attempts", self.endpoint.url())))
            }
        }
    }
}

impl ChatModel for Client {
    fn complete(
        self: Arc<Self>,
        request: ChatRequest,
        meter: CallMeter,
    ) -> BoxFuture<'static, Result<ChatBody, ChatError>> {
        async move { self.ask(request, &meter).await }.boxed()
    }
}

/// The innermost cause of a failed request, which explains the failure.
pub fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".into();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The beginning of an answer in one line.
pub fn excerpt(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(TOLD_BYTES)]);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if bytes.len() > TOLD_BYTES { format!("{line}…") } else { line }
}
