//! Requests to the servers of a reward model, with retries.

use super::super::wrong::Wrong;
use futures::future::join_all;
use gavel_config::RewardEndpointConfig;
use gavel_endpoint::{Down, Key, Request, Servers, ask, excerpt, may_help, reason, retry_after, tls_client_config};
use gavel_plugin::ChatError;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use reqwest::redirect::Policy;
use std::time::{Duration, SystemTime};
use tokio::sync::{Semaphore, SemaphorePermit};

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
pub(super) type Failed = gavel_endpoint::Failed<ChatError>;

/// The place of a request among those that are asked at once.
pub(super) struct Place<'a>(#[expect(dead_code, reason = "it is held")] SemaphorePermit<'a>);

impl Asker {
    /// Reads the key; nothing is sent yet.
    pub(super) fn new(config: RewardEndpointConfig, max_pause: Option<Duration>) -> Result<Self, Wrong> {
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
        let servers = Servers::new(name, urls.len(), config.on_endpoint_down).with_max_pause(max_pause);
        let places = Semaphore::new(config.concurrency.get().min(Semaphore::MAX_PERMITS));
        Ok(Self { config, urls, servers, http, key, places })
    }

    /// Why a run must stop: no server has answered for too long.
    pub(super) fn must_stop(&self) -> Option<String> {
        self.servers.must_stop()
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
        let answers = join_all(self.urls.iter().map(|url| self.attempt(url, body, &read))).await;
        if answers.iter().any(Result::is_ok) {
            self.servers.note_answer();
        }
        answers
    }

    /// What `read` makes of the answer of one of the servers. `place` is held until then.
    pub(super) async fn ask<T: Send>(
        &self,
        place: Place<'_>,
        body: &[u8],
        read: impl Fn(&[u8]) -> Result<T, String> + Sync,
    ) -> Result<T, ChatError> {
        let _place = place;
        let sent = Sent { asker: self, body, read };
        let answer = ask(&self.servers, &self.urls, self.config.retries, self.config.deadline, &sent).await;
        answer.map_err(|failed| failed.error)
    }

    /// Sends a request once.
    async fn attempt<T>(&self, url: &str, body: &[u8], read: impl Fn(&[u8]) -> Result<T, String>) -> Result<T, Failed> {
        let unavailable = |what: &str| ChatError::Unavailable(format!("{url}: {what}"));
        let lost = |error: reqwest::Error| Failed {
            again: Some(Duration::ZERO),
            is_of_server: true,
            ..unavailable(&reason(&error)).into()
        };
        // An answer that cannot be read is not the end of its server: it may be of this request alone.
        let broken = |what: &str| Failed::from(unavailable(what));
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
                again: Some(after.unwrap_or_default()),
                is_of_server: status.is_server_error(),
                is_answer: status == StatusCode::INTERNAL_SERVER_ERROR,
                ..unavailable(&what).into()
            },
            false => ChatError::Refused(format!("{url}: {what}")).into(),
        })
    }

    fn unavailable(&self, what: &str) -> ChatError {
        ChatError::Unavailable(format!("{}: {what}", self.urls.join(", ")))
    }
}

/// A request as it is sent, and what is made of its answer.
struct Sent<'a, R> {
    asker: &'a Asker,
    body: &'a [u8],
    read: R,
}

impl<T: Send, R: Fn(&[u8]) -> Result<T, String> + Sync> Request for Sent<'_, R> {
    type Answer = T;
    type Error = ChatError;
    /// A place is held for all attempts.
    type Turn = ();

    async fn turn(&self) {}

    async fn attempt(&self, url: &str, (): &mut ()) -> Result<T, Failed> {
        self.asker.attempt(url, self.body, &self.read).await
    }

    async fn until_up(&self, servers: &Servers) -> Result<bool, Down> {
        servers.until_up().await
    }

    fn down(&self, down: &Down) -> ChatError {
        self.asker.unavailable(&down.to_string())
    }

    fn too_late(&self, _: &str) -> ChatError {
        let seconds = self.asker.config.deadline.as_secs_f64();
        self.asker.unavailable(&format!("no answer in {seconds} s, with all attempts"))
    }
}
