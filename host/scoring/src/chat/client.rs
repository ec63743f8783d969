//! Sends requests to an endpoint, with retries.

use super::attempt::{Answered, Failed, Sender};
use super::cache::AnswerCache;
use super::endpoint::{ChatEndpoint, RESERVED};
use super::error::ChatEndpointError;
use super::retry::{Attempts, NoAttempt};
use super::spending::Spending;
use super::usage::{Expectation, TokenCost, Usage};
use crate::outside_use::EndpointUse;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_limiter::{Limiter, OnEndpointDown, Servers, Turn};
use gavel_plugin::{CallMeter, ChatBody, ChatError, ChatModel, ChatRequest, JsonPieces, Sandbox};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::time::timeout;

/// An endpoint.
pub(super) struct Client {
    endpoint: ChatEndpoint,
    sender: Sender,
    /// The URLs of requests, one for each server.
    urls: Vec<String>,
    servers: Servers,
    limiter: Limiter,
    expectation: Expectation,
    cache: Option<AnswerCache>,
    spending: Arc<Spending>,
    /// Whether it has refused a JSON schema, and answered the same request without it.
    refuses_schema: AtomicBool,
}

/// The field of a request that asks for a form of the answer.
const FORMAT: &str = "response_format";

impl Client {
    /// Reads the key and checks the endpoint without a request. It shares the limiters of the sandbox.
    pub(super) fn new(
        name: &str,
        endpoint: &ChatEndpoint,
        sandbox: &Sandbox,
        spending: Arc<Spending>,
    ) -> Result<Self, ChatEndpointError> {
        Self::of_path("chat/completions", name, endpoint, sandbox, spending)
    }

    /// The same for requests to `path`.
    pub(super) fn of_path(
        path: &str,
        name: &str,
        endpoint: &ChatEndpoint,
        sandbox: &Sandbox,
        spending: Arc<Spending>,
    ) -> Result<Self, ChatEndpointError> {
        let sender = Sender::new(name, endpoint)?;
        let limiter = match &endpoint.limit {
            Some(limiter) => sandbox.limiter(limiter).map_err(|known| {
                let (name, limiter) = (name.to_owned(), limiter.clone());
                ChatEndpointError::NoLimiter { name, limiter, known }
            })?,
            None => Limiter::open(&endpoint.limits())
                .map_err(|source| ChatEndpointError::Limits { name: name.to_owned(), source })?,
        };
        let (endpoint, urls, expectation) = (endpoint.clone(), endpoint.base_url.of_path(path), Expectation::default());
        let servers = Servers::new(format!("the endpoint `{name}`"), urls.len(), endpoint.on_endpoint_down);
        let cache = endpoint.cache.as_ref().map(|table| {
            AnswerCache::open(table).map_err(|source| {
                let folder = table.folder.clone().unwrap_or_default();
                ChatEndpointError::Cache { name: name.to_owned(), folder, source }
            })
        });
        let cache = cache.transpose()?;
        let refuses_schema = AtomicBool::new(false);
        Ok(Self { endpoint, sender, urls, servers, limiter, expectation, cache, spending, refuses_schema })
    }

    /// The fields of a request's body beside the messages.
    fn fields(&self, request: &ChatRequest) -> Result<Map<String, Value>, ChatError> {
        if let Some(field) = RESERVED.iter().find(|field| request.options.contains_key(**field)) {
            return Err(ChatError::InvalidRequest(format!(
                "a request to the endpoint `{}` cannot set `{field}`",
                self.sender.name
            )));
        }
        let mut fields = Map::new();
        fields.insert("model".into(), Value::String(self.endpoint.model.clone()));
        fields.extend(self.endpoint.options.clone());
        fields.extend(request.options.clone());
        Ok(fields)
    }

    /// The same client, with another name in errors.
    pub(super) fn shown_as(self, name: &str) -> Self {
        Self { sender: self.sender.shown_as(name), ..self }
    }

    pub(super) fn unavailable(&self, what: &str) -> ChatError {
        self.sender.unavailable(what)
    }

    /// Sends a request once, and records its cost.
    async fn attempt(
        &self,
        url: &str,
        body: &JsonPieces,
        expected: &TokenCost,
        meter: &CallMeter,
        turn: &mut Turn,
    ) -> Result<ChatBody, Failed> {
        let Answered { answer, reported } = self.sender.send(url, body, meter).await;
        turn.report(reported.at_most(self.endpoint.deadline));
        let answer = answer?;
        let cost = meter.work(|| Usage::of(answer.json())).or_estimated(expected.prompt, answer.json());
        turn.spend(cost.total());
        self.expectation.learn(&cost);
        self.spending.add(&meter.asker().plugin, &cost, self.endpoint.price.as_ref());
        Ok(answer)
    }

    /// Sends a request. An endpoint that refuses its JSON schema gets it, and later ones, without.
    pub(super) async fn ask(&self, mut request: ChatRequest, meter: &CallMeter) -> Result<ChatBody, ChatError> {
        let has_schema = request.options.get(FORMAT).is_some_and(|format| format["type"] == "json_schema");
        if !has_schema {
            return Ok(self.ask_as_it_is(&request, meter).await?);
        }
        let mut refusal = None;
        if !self.refuses_schema.load(Ordering::Relaxed) {
            match self.ask_as_it_is(&request, meter).await {
                Err(Failed { error, is_bad_request: true, .. }) => refusal = Some(error),
                other => return Ok(other?),
            }
        }
        request.options.remove(FORMAT);
        let answer = self.ask_as_it_is(&request, meter).await?;
        if let Some(error) = refusal
            && !self.refuses_schema.swap(true, Ordering::Relaxed)
        {
            tracing::warn!("requests are sent without their JSON schema (`{FORMAT}`), which is refused: {error}");
        }
        Ok(answer)
    }

    /// Sends a request with all of its fields, unless the cache has the answer.
    async fn ask_as_it_is(&self, request: &ChatRequest, meter: &CallMeter) -> Result<ChatBody, Failed> {
        let fields = self.fields(request)?;
        let body = meter.work(|| request.body(&fields));
        let body = body.map_err(|error| ChatError::InvalidRequest(error.to_string()))?;
        let expected = self.expectation.of(request, &self.endpoint.options);
        let Some(cache) = self.cache.as_ref().filter(|cache| cache.is_for(&fields)) else {
            return self.try_servers(&body, &expected, meter).await;
        };
        let key = meter.work(|| AnswerCache::key(&body));
        let turn = cache.turn(&key);
        // Another call may be sending the same request.
        let _asking = meter.uncharged(turn.lock()).await;
        if let Some(json) = cache.get(&key) {
            let held = meter.hold(json.len())?;
            if let Ok(answer) = meter.work(|| ChatBody::parse(json, held)) {
                return Ok(answer);
            }
        }
        let answer = self.try_servers(&body, &expected, meter).await?;
        cache.keep(&key, answer.json());
        Ok(answer)
    }

    /// Sends a request that will cost about `expected`, until a server answers it.
    pub(super) async fn ask_servers(
        &self,
        body: &JsonPieces,
        expected: &TokenCost,
        meter: &CallMeter,
    ) -> Result<ChatBody, ChatError> {
        Ok(self.try_servers(body, expected, meter).await?)
    }

    async fn try_servers(
        &self,
        body: &JsonPieces,
        expected: &TokenCost,
        meter: &CallMeter,
    ) -> Result<ChatBody, Failed> {
        // Waits for turns and for the endpoint do not count.
        let all = || Attempts::new(self.endpoint.retries, self.endpoint.deadline);
        let mut attempts = all();
        loop {
            let waited = match self.servers.down() {
                Some(_) => meter.uncharged(self.servers.until_up()).await,
                None => Ok(false),
            };
            if waited.map_err(|down| self.unavailable(&down.to_string()))? {
                attempts = all();
            }
            let mut turn = meter.turn(&self.limiter, expected.total()).await;
            // The endpoint may have gone down meanwhile.
            let Ok(server) = self.servers.choose() else { continue };
            let (start, url) = (Instant::now(), &self.urls[server.number]);
            let answer = timeout(attempts.left(), self.attempt(url, body, expected, meter, &mut turn)).await;
            drop(turn);
            let answer = answer.unwrap_or_else(|_| Err(Failed { is_of_server: true, ..self.too_late(url).into() }));
            match &answer {
                Err(Failed { error, is_of_server: true, .. }) => server.failed(error),
                _ => server.answered(),
            }
            let failed = match answer {
                Ok(body) => return Ok(body),
                Err(failed) => failed,
            };
            if failed.is_of_server && self.servers.hold_requests() {
                continue;
            }
            match attempts.pause(&failed.error, failed.again, start.elapsed()).await {
                Ok(()) => {}
                Err(NoAttempt::Last) => return Err(failed),
                Err(NoAttempt::TooLate) => return Err(self.too_late(url).into()),
            }
        }
    }

    /// Why the run must stop: the endpoint is down, and the run cannot continue without it.
    pub(super) fn must_stop(&self) -> Option<String> {
        let down = self.servers.down().filter(|_| self.servers.on_endpoint_down() == OnEndpointDown::Stop)?;
        Some(format!("the endpoint `{}`: {down}", self.sender.name))
    }

    /// Its name, and what it has done since the last call of this.
    pub(super) fn take_use(&self) -> (String, EndpointUse) {
        let (hits, misses) = self.cache.as_ref().map(AnswerCache::take_counts).unwrap_or_default();
        // Several endpoints may share a limiter with a name.
        let waits = self.endpoint.limit.is_none().then(|| self.limiter.take_waits());
        (self.sender.name.clone(), EndpointUse { waits, hits, misses })
    }

    fn too_late(&self, url: &str) -> ChatError {
        let seconds = self.endpoint.deadline.as_secs_f64();
        self.unavailable(&format!("{url}: no answer in {seconds} s, with all attempts"))
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
