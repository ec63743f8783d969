//! Requests to the servers of a reward model, with retries.

use super::super::wrong::Wrong;
use crate::config::RewardEndpointConfig;
use futures::future::join_all;
use gavel_limiter::Servers;
use gavel_plugin::{ChatError, tls_client_config};
use gavel_scoring::chat::{Attempts, Key, NoAttempt, excerpt, may_help, reason, retry_after};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::redirect::Policy;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// The most bytes of an answer that are read.
const BODY_BYTES: usize = 1 << 20;

/// Asks the servers of a reward model. It has no `Debug`: its headers hold the key.
pub(super) struct Asker {
    config: RewardEndpointConfig,
    /// One for each server.
    urls: Vec<String>,
    servers: Servers,
    http: reqwest::Client,
    key: Option<Key>,
    places: Semaphore,
}

/// A failed attempt.
pub(super) struct Failed {
    pub(super) error: ChatError,
    /// The shortest pause before another attempt; `None` where another attempt cannot help.
    again: Option<Duration>,
    /// Whether the server failed, and not the request.
    pub(super) is_of_server: bool,
}

/// The place of a request among those that are asked at once.
pub(super) struct Place<'a>(#[expect(dead_code, reason = "it is held")] SemaphorePermit<'a>);

impl Asker {
    /// Reads the key; nothing is sent yet.
    pub(super) fn new(config: RewardEndpointConfig) -> Result<Self, Wrong> {
        let (mut headers, mut key) = (HeaderMap::new(), None);
        if let Some(variable) = &config.api_key_env {
            let read = Key::read(variable).map_err(|_| {
                Wrong::new("api_key_env", format!("the variable {variable} is not set\nhint: set it in the environment of gavel, or remove api_key_env if the server needs no key"))
            })?;
            let value = read.bearer().map_err(|_| {
                Wrong::new(
                    "api_key_env",
                    format!("the variable {variable} has characters that an HTTP header cannot have"),
                )
            })?;
            headers.insert(AUTHORIZATION, value);
            key = Some(read);
        }
        let tls = tls_client_config().map_err(|error| Wrong::new("url", error))?;
        let builder = reqwest::Client::builder();
        let builder = if config.is_direct { builder.no_proxy() } else { builder };
        let http = builder
            .default_headers(headers)
            .timeout(config.timeout)
            // A redirect would carry the key elsewhere.
            .redirect(Policy::none())
            .tls_backend_preconfigured(tls)
            .build()
            .map_err(|error| Wrong::new("url", format!("cannot make an HTTP client: {error}")))?;
        let urls = config.url.of_path(config.protocol.path());
        let name = format!("the reward model at {}", config.url);
        let servers = Servers::new(name, urls.len(), config.on_endpoint_down);
        let places = Semaphore::new(config.concurrency.get().min(Semaphore::MAX_PERMITS));
        Ok(Self { config, urls, servers, http, key, places })
    }

    /// Waits for a place.
    pub(super) async fn place(&self) -> Result<Place<'_>, ChatError> {
        let place = self.places.acquire().await;
        place.map(Place).map_err(|_| self.unavailable("it was shut down"))
    }

    /// What each server answers to one attempt.
    pub(super) async fn ask_all_once<T>(
        &self,
        body: &[u8],
        read: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Vec<Result<T, Failed>> {
        join_all(self.urls.iter().map(|url| self.attempt(url, body, &read))).await
    }

    /// What `read` makes of the answer of one of the servers. `place` is held until then.
    pub(super) async fn ask<T>(
        &self,
        place: Place<'_>,
        body: &[u8],
        read: impl Fn(&[u8]) -> Result<T, String>,
    ) -> Result<T, ChatError> {
        let _place = place;
        // Waits for the servers do not count.
        let all = || Attempts::new(self.config.retries, self.config.deadline);
        let mut attempts = all();
        loop {
            if self.servers.until_up().await.map_err(|down| self.unavailable(&down.to_string()))? {
                attempts = all();
            }
            // They may have gone down meanwhile.
            let Ok(server) = self.servers.choose() else { continue };
            let (start, url) = (Instant::now(), &self.urls[server.number]);
            let answer = timeout(attempts.left(), self.attempt(url, body, &read)).await;
            let answer = answer.unwrap_or_else(|_| {
                Err(Failed { error: self.unavailable(&self.too_late()), again: None, is_of_server: true })
            });
            match &answer {
                Err(Failed { error, is_of_server: true, .. }) => server.failed(error),
                _ => server.answered(),
            }
            let failed = match answer {
                Ok(read) => return Ok(read),
                Err(failed) => failed,
            };
            if failed.is_of_server && self.servers.hold_requests() {
                continue;
            }
            match attempts.pause(&failed.error, failed.again, start.elapsed()).await {
                Ok(()) => {}
                Err(NoAttempt::Last) => return Err(failed.error),
                Err(NoAttempt::TooLate) => return Err(self.unavailable(&self.too_late())),
            }
        }
    }

    /// Sends a request once.
    async fn attempt<T>(&self, url: &str, body: &[u8], read: impl Fn(&[u8]) -> Result<T, String>) -> Result<T, Failed> {
        let unavailable = |what: &str| ChatError::Unavailable(format!("{url}: {what}"));
        let lost = |error: reqwest::Error| Failed {
            error: unavailable(&reason(&error)),
            again: Some(Duration::ZERO),
            is_of_server: true,
        };
        // An answer that cannot be read is not the end of its server: it may be of this request alone.
        let broken = |what: &str| Failed { error: unavailable(what), again: None, is_of_server: false };
        let request = self.http.post(url).header("content-type", "application/json").body(body.to_vec());
        let mut response = request.send().await.map_err(lost)?;
        let (status, after) = (response.status(), retry_after(response.headers(), SystemTime::now()));
        let mut bytes = Vec::new();
        while bytes.len() <= BODY_BYTES
            && let Some(chunk) = response.chunk().await.map_err(lost)?
        {
            bytes.extend_from_slice(&chunk);
        }
        if let Some(key) = &self.key {
            bytes = key.remove_from(bytes);
        }
        if bytes.len() > BODY_BYTES {
            return Err(broken(&format!("its answer has more than {BODY_BYTES} bytes")));
        }
        if status.is_success() {
            return read(&bytes).map_err(|what| broken(&what));
        }
        let what = format!("it answered {status}: {}", excerpt(&bytes));
        Err(match may_help(status) {
            true => Failed {
                error: unavailable(&what),
                again: Some(after.unwrap_or_default()),
                is_of_server: status.is_server_error(),
            },
            false => Failed { error: ChatError::Refused(format!("{url}: {what}")), again: None, is_of_server: false },
        })
    }

    fn too_late(&self) -> String {
        format!("no answer in {} s, with all attempts", self.config.deadline.as_secs_f64())
    }

    fn unavailable(&self, what: &str) -> ChatError {
        ChatError::Unavailable(format!("{}: {what}", self.urls.join(", ")))
    }
}
