//! Sends requests to an endpoint, with retries.

use super::attempt::{Answered, Failed, Sender};
use super::cache::AnswerCache;
use super::endpoint::{ChatEndpoint, RESERVED};
use super::error::ChatEndpointError;
use super::spending::Spending;
use super::usage::{Expectation, TokenCost, Usage};
use crate::outside_use::EndpointUse;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_endpoint::{Down, Limiter, Request, Servers, Turn, ask};
use gavel_plugin::{CallMeter, ChatBody, ChatError, ChatModel, ChatRequest, JsonPieces, Sandbox};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
        let on_endpoint_down = endpoint.on_endpoint_down.unwrap_or_default();
        let servers = Servers::new(format!("the endpoint `{name}`"), urls.len(), on_endpoint_down)
            .with_max_pause(sandbox.max_pause());
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

    /// Sends a request. An endpoint that refuses its JSON schema gets it, and later ones, without.
    pub(super) async fn ask(&self, mut request: ChatRequest, meter: &CallMeter) -> Result<ChatBody, ChatError> {
        let has_schema = request.options.get(FORMAT).is_some_and(|format| format["type"] == "json_schema");
        if !has_schema {
            return self.ask_as_it_is(&request, meter).await.map_err(|failed| failed.error);
        }
        let mut refusal = None;
        if !self.refuses_schema.load(Ordering::Relaxed) {
            match self.ask_as_it_is(&request, meter).await {
                Err(Failed { error, is_bad_request: true, .. }) => refusal = Some(error),
                other => return other.map_err(|failed| failed.error),
            }
        }
        request.options.remove(FORMAT);
        let answer = self.ask_as_it_is(&request, meter).await.map_err(|failed| failed.error)?;
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
            let held = meter.hold(json.len()).map_err(ChatError::from)?;
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
        self.try_servers(body, expected, meter).await.map_err(|failed| failed.error)
    }

    async fn try_servers(
        &self,
        body: &JsonPieces,
        expected: &TokenCost,
        meter: &CallMeter,
    ) -> Result<ChatBody, Failed> {
        let request = Sent { client: self, body, expected, meter };
        ask(&self.servers, &self.urls, self.endpoint.retries, self.endpoint.deadline, &request).await
    }

    /// Notes that it has answered another process.
    pub(super) fn note_answer(&self) {
        self.servers.note_answer();
    }

    /// Why the run must stop: the endpoint is down, and the run does not wait for it, or no longer.
    pub(super) fn must_stop(&self) -> Option<String> {
        self.servers.must_stop()
    }

    /// Its name, and what it has done since the last call of this.
    pub(super) fn take_use(&self) -> (String, EndpointUse) {
        let (hits, misses) = self.cache.as_ref().map(AnswerCache::take_counts).unwrap_or_default();
        // Several endpoints may share a limiter with a name.
        let waits = self.endpoint.limit.is_none().then(|| self.limiter.take_waits());
        (self.sender.name.clone(), EndpointUse { waits, hits, misses })
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

/// A request that will cost about `expected`, as it is sent.
struct Sent<'a> {
    client: &'a Client,
    body: &'a JsonPieces,
    expected: &'a TokenCost,
    meter: &'a CallMeter,
}

impl Request for Sent<'_> {
    type Answer = ChatBody;
    type Error = ChatError;
    type Turn = Turn;

    async fn turn(&self) -> Turn {
        self.meter.turn(&self.client.limiter, self.expected.total()).await
    }

    /// Sends the request once, and records its cost.
    async fn attempt(&self, url: &str, turn: &mut Turn) -> Result<ChatBody, Failed> {
        let Self { client, body, expected, meter } = self;
        let Answered { answer, reported } = client.sender.send(url, body, meter).await;
        turn.report(reported.at_most(client.endpoint.deadline));
        let answer = answer?;
        let cost = meter.work(|| Usage::of(answer.json())).or_estimated(expected.prompt, answer.json());
        turn.spend(cost.total());
        client.expectation.learn(&cost);
        client.spending.add(&meter.asker().plugin, &cost, client.endpoint.price.as_ref());
        Ok(answer)
    }

    async fn until_up(&self, servers: &Servers) -> Result<bool, Down> {
        match servers.down() {
            Some(_) => self.meter.uncharged(servers.until_up()).await,
            None => Ok(false),
        }
    }

    fn down(&self, down: &Down) -> ChatError {
        self.client.unavailable(&down.to_string())
    }

    fn too_late(&self, url: &str) -> ChatError {
        let seconds = self.client.endpoint.deadline.as_secs_f64();
        self.client.unavailable(&format!("{url}: no answer in {seconds} s, with all attempts"))
    }
}
