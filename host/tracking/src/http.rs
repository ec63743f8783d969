//! Requests to the server of a tracker. Each has its time, and nothing shows a key.

use crate::error::{Result, SendError, TrackingError};
use crate::table::{TrackerTable, check_scheme};
use gavel_endpoint::{Key, excerpt, is_of_this_machine, reason, tls_client_config};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Method, Response, Url};
use serde_json::Value;
use std::time::Duration;

/// The most bytes of an answer.
const ANSWER_BYTES: usize = 1 << 20;

/// How a server is given the key.
#[derive(Clone, Copy)]
pub(crate) enum KeyHeader {
    /// `Authorization: Bearer KEY`
    Bearer,
    /// The key alone, in a header of this name.
    Named(&'static str),
}

/// The server of a tracker.
pub(crate) struct Server {
    http: reqwest::Client,
    /// Its address, which may be a secret.
    url: String,
    /// How messages call it.
    shown: String,
    secrets: Vec<Key>,
}

impl Server {
    /// The server of a table. Each request to it may take `timeout`.
    ///
    /// # Errors
    /// A variable is not set, or there can be no connection.
    pub(crate) fn new(
        table: &TrackerTable,
        header: KeyHeader,
        timeout: Duration,
    ) -> std::result::Result<Self, TrackingError> {
        let tracker = || table.name().to_owned();
        let (url, shown) = address(table)?;
        let (mut headers, mut secrets) = (HeaderMap::new(), Vec::new());
        if let Some(variable) = &table.url_env {
            secrets.push(read("url_env", variable, table)?);
        }
        if let Some(variable) = &table.api_key_env {
            let key = read("api_key_env", variable, table)?;
            let (name, value) = match header {
                KeyHeader::Bearer => (AUTHORIZATION, key.bearer()),
                KeyHeader::Named(name) => (HeaderName::from_static(name), key.header()),
            };
            let value = value.map_err(|_| TrackingError::BadVariable {
                tracker: tracker(),
                key: "api_key_env",
                variable: variable.clone(),
                what: "has characters that an HTTP header cannot have".into(),
            })?;
            headers.insert(name, value);
            secrets.push(key);
        }
        let client = |what: String| TrackingError::Client { tracker: tracker(), what };
        // A redirect would carry the key elsewhere, and a server of this machine is not behind a proxy.
        let http = reqwest::Client::builder().default_headers(headers).timeout(timeout).redirect(Policy::none());
        let http = if is_of_this_machine(&url) { http.no_proxy() } else { http };
        let http = http
            .tls_backend_preconfigured(tls_client_config().map_err(|error| client(error.to_string()))?)
            .build()
            .map_err(|error| client(format!("cannot make an HTTP client: {error}")))?;
        Ok(Self { http, url, shown, secrets })
    }

    /// How messages call it.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// Posts JSON to `path` below the address, and returns the JSON of the answer.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let body = serde_json::to_vec(body).unwrap_or_default();
        self.parsed(path, self.ask(Method::POST, path, Some(("application/json", body))).await?)
    }

    /// Posts JSON to the address itself. Its answer may be anything.
    pub(crate) async fn tell(&self, body: &Value) -> Result<()> {
        let body = serde_json::to_vec(body).unwrap_or_default();
        self.ask(Method::POST, "", Some(("application/json", body))).await.map(drop)
    }

    /// Puts bytes at `path`. The answer may be anything.
    pub(crate) async fn put(&self, path: &str, bytes: Vec<u8>) -> Result<()> {
        self.ask(Method::PUT, path, Some(("application/octet-stream", bytes))).await.map(drop)
    }

    /// Gets the JSON at `path`.
    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        self.parsed(path, self.ask(Method::GET, path, None).await?)
    }

    async fn ask(&self, method: Method, path: &str, body: Option<(&'static str, Vec<u8>)>) -> Result<Vec<u8>> {
        let url = format!("{}{path}", self.url);
        let mut request = self.http.request(method, &url);
        if let Some((kind, body)) = body {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static(kind)).body(body);
        }
        let no_answer = |error: reqwest::Error| SendError::NoAnswer {
            url: self.name(path),
            why: self.clean(reason(&error).into_bytes()),
        };
        let response = request.send().await.map_err(no_answer)?;
        let status = response.status();
        let answer = read_answer(response).await.map_err(no_answer)?;
        match status.is_success() {
            true => Ok(answer),
            false => {
                Err(SendError::Refused { url: self.name(path), status: status.as_u16(), answer: self.clean(answer) })
            }
        }
    }

    fn parsed(&self, path: &str, answer: Vec<u8>) -> Result<Value> {
        serde_json::from_slice(&answer)
            .map_err(|_| SendError::Nonsense { url: self.name(path), what: self.clean(answer) })
    }

    /// An answer that lacks what is needed of it.
    pub(crate) fn lacks(&self, path: &str, what: &str) -> SendError {
        SendError::Nonsense { url: self.name(path), what: format!("it has no {what}") }
    }

    fn name(&self, path: &str) -> String {
        let path = path.split('?').next().unwrap_or_default();
        format!("{}{path}", self.shown)
    }

    /// The beginning of a text without keys.
    fn clean(&self, text: Vec<u8>) -> String {
        let text = self.secrets.iter().fold(text, |text, key| key.remove_from_beginning(text));
        match text.is_empty() {
            true => "nothing".to_owned(),
            false => excerpt(&text),
        }
    }
}

/// The address of a table's server, and how messages call it.
fn address(table: &TrackerTable) -> std::result::Result<(String, String), TrackingError> {
    let (Some(variable), None) = (&table.url_env, &table.url) else {
        let url = table.url.as_deref().unwrap_or_default().trim_end_matches('/').to_owned();
        return Ok((url.clone(), url));
    };
    read("url_env", variable, table)?;
    let url = std::env::var(variable).unwrap_or_default();
    let url = url.trim().trim_end_matches('/').to_owned();
    let bad = |what: String| TrackingError::BadVariable {
        tracker: table.name().to_owned(),
        key: "url_env",
        variable: variable.clone(),
        what,
    };
    let parsed = Url::parse(&url).map_err(|error| bad(format!("is no address: {error}")))?;
    check_scheme(&parsed).map_err(bad)?;
    Ok((url, format!("${variable}")))
}

fn read(key: &'static str, variable: &str, table: &TrackerTable) -> std::result::Result<Key, TrackingError> {
    Key::read(variable).map_err(|_| TrackingError::NoVariable {
        tracker: table.name().to_owned(),
        key,
        variable: variable.to_owned(),
    })
}

/// The answer, as far as it is not too long.
async fn read_answer(mut response: Response) -> std::result::Result<Vec<u8>, reqwest::Error> {
    let mut answer = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        answer.extend_from_slice(&chunk);
        if answer.len() > ANSWER_BYTES {
            answer.truncate(ANSWER_BYTES);
            break;
        }
    }
    Ok(answer)
}
