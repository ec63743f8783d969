//! The paths of the dialects, over a server of chat completions.

use crate::deltas::{Delta, Deltas};
use crate::dialect::Dialect;
use crate::google::{self, Google};
use crate::messages::{self, Messages};
use crate::refused::Refused;
use crate::reply::Reply;
use crate::responses::{self, Responses};
use crate::sse::{Event, Reader};
use axum::body::{Body, BodyDataStream, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures::stream::{self, StreamExt};
use gavel_http::{Size, VALUES, aside_with, read_json};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::convert::Infallible;

/// What answers the translated requests. `parts` is the request as it came: its headers with the client's key, and its
/// extensions. A key in the query is added to them as `x-goog-api-key`.
pub trait ChatServer: Clone + Send + Sync + 'static {
    /// Answers a body of `/v1/chat/completions`, as this path does: a completion or an error as JSON, or the chunks of a
    /// completion as server-sent events.
    fn chat(&self, parts: &Parts, body: Value, size: Size) -> impl Future<Output = Response> + Send;

    /// Counts the tokens of the prompt that such a body has, or answers as [`Self::chat`] would refuse it.
    fn count_tokens(
        &self,
        parts: &Parts,
        body: Value,
        size: Size,
    ) -> impl Future<Output = Result<usize, Response>> + Send;
}

/// `/v1/responses` and `/v1/responses/input_tokens`, `/v1/messages` and `/v1/messages/count_tokens`, and Google's
/// `/v1beta/models/{model}:generateContent`, `:streamGenerateContent` and `:countTokens`, which are also under `/v1` and
/// `/v1alpha`. The router that it is merged into bounds the bytes of bodies; a `GET` of models at
/// `/v1/models/{*name}` goes beside it.
pub fn router<S: ChatServer>(server: S) -> Router {
    Router::new()
        .route("/v1/responses", post(of_responses::<S>))
        .route("/v1/responses/input_tokens", post(count_responses::<S>))
        .route("/v1/messages", post(of_messages::<S>))
        .route("/v1/messages/count_tokens", post(count_messages::<S>))
        .route("/v1beta/models/{*name}", post(of_google::<S>))
        .route("/v1alpha/models/{*name}", post(of_google::<S>))
        .route("/v1/models/{*name}", post(of_google::<S>))
        .with_state(server)
}

async fn of_responses<S: ChatServer>(State(server): State<S>, request: Request) -> Response {
    answer(&server, request, responses::read).await
}

async fn count_responses<S: ChatServer>(State(server): State<S>, request: Request) -> Response {
    let written = |tokens: usize| json!({"object": "response.input_tokens", "input_tokens": tokens});
    count::<Responses, S>(&server, request, |body| Ok(responses::read(body)?.0), written).await
}

async fn of_messages<S: ChatServer>(State(server): State<S>, request: Request) -> Response {
    answer(&server, request, messages::read).await
}

async fn count_messages<S: ChatServer>(State(server): State<S>, request: Request) -> Response {
    let written = |tokens: usize| json!({"input_tokens": tokens});
    count::<Messages, S>(&server, request, |body| Ok(messages::read(body)?.0), written).await
}

/// Google's paths end with what is asked for.
async fn of_google<S: ChatServer>(
    State(server): State<S>,
    // A router around this one may have parameters of its own.
    Path(parameters): Path<HashMap<String, String>>,
    request: Request,
) -> Response {
    let name = parameters.get("name").map_or("", String::as_str);
    let (model, action) = name.rsplit_once(':').unwrap_or((name, ""));
    let model = model.to_owned();
    let is_sse = query(&request, "alt").is_some_and(|alt| alt.eq_ignore_ascii_case("sse"));
    match action.to_ascii_lowercase().as_str() {
        "generatecontent" => {
            answer(&server, request, move |body| google::read(body, &model, google::Form::Whole)).await
        }
        "streamgeneratecontent" => {
            let form = if is_sse { google::Form::Events } else { google::Form::List };
            answer(&server, request, move |body| google::read(body, &model, form)).await
        }
        "counttokens" => {
            let written = |tokens: usize| json!({"totalTokens": tokens});
            count::<Google, S>(&server, request, move |body| google::read_counted(body, &model), written).await
        }
        _ => {
            let what = "there is no such method: generateContent, streamGenerateContent and countTokens are";
            refuse::<Google>(&Refused::new(StatusCode::NOT_FOUND, what), HeaderMap::new())
        }
    }
}

/// The request with the key of its query in `x-goog-api-key` too.
pub fn with_key_of_query(mut request: Request) -> Request {
    let key = query(&request, "key").and_then(|key| HeaderValue::from_str(&key).ok());
    if let Some(key) = key {
        request.headers_mut().append("x-goog-api-key", key);
    }
    request
}

/// The request without its body, and with it.
fn parts(request: Request) -> (Parts, Request) {
    let (parts, body) = with_key_of_query(request).into_parts();
    // What reads the body looks for the client among the extensions.
    (parts.clone(), Request::from_parts(parts, body))
}

/// The value of `name` in the query.
fn query(request: &Request, name: &str) -> Option<String> {
    let mut pairs = request.uri().query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| unescaped(value))
}

/// A text with `%2B` and such decoded.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads and translates a request.
async fn translated<T: Send + 'static>(
    request: Request,
    read: impl FnOnce(Value) -> Result<T, Refused> + Send + 'static,
) -> Result<(Parts, T, Size), Refused> {
    let (parts, request) = parts(request);
    let (body, size) = read_json::<Value>(request, VALUES).await?;
    let (read, size) = aside_with(size, move || read(body)).await?;
    Ok((parts, read?, size))
}

async fn answer<D: Dialect, S: ChatServer>(
    server: &S,
    request: Request,
    read: impl FnOnce(Value) -> Result<(Value, D), Refused> + Send + 'static,
) -> Response {
    let (parts, (chat, dialect), size) = match translated(request, read).await {
        Ok(read) => read,
        Err(refused) => return refuse::<D>(&refused, HeaderMap::new()),
    };
    let answer = server.chat(&parts, chat, size).await;
    let is_stream =
        answer.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    match answer.status().is_success() && is_stream && dialect.is_streamed() {
        true => streamed(dialect, answer),
        false => whole(dialect, answer).await,
    }
}

async fn count<D: Dialect, S: ChatServer>(
    server: &S,
    request: Request,
    read: impl FnOnce(Value) -> Result<Value, Refused> + Send + 'static,
    written: fn(usize) -> Value,
) -> Response {
    let (parts, chat, size) = match translated(request, read).await {
        Ok(read) => read,
        Err(refused) => return refuse::<D>(&refused, HeaderMap::new()),
    };
    match server.count_tokens(&parts, chat, size).await {
        Ok(tokens) => Json(written(tokens)).into_response(),
        Err(refused) => {
            let (status, headers, body) = read_answer(refused).await;
            refuse::<D>(&Refused::of_chat(status, &body, D::NAMES), headers)
        }
    }
}

/// The status, the headers that go on, and the body of an answer.
async fn read_answer(answer: Response) -> (StatusCode, HeaderMap, Value) {
    let (mut parts, body) = answer.into_parts();
    for name in [CONTENT_TYPE, CONTENT_LENGTH, TRANSFER_ENCODING] {
        parts.headers.remove(name);
    }
    // The answer comes from this process, which has bounded it.
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    (parts.status, parts.headers, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

fn refuse<D: Dialect>(refused: &Refused, headers: HeaderMap) -> Response {
    (refused.status, headers, Json(D::error(refused))).into_response()
}

async fn whole<D: Dialect>(dialect: D, answer: Response) -> Response {
    let (status, headers, body) = read_answer(answer).await;
    if !status.is_success() {
        return refuse::<D>(&Refused::of_chat(status, &body, D::NAMES), headers);
    }
    match Reply::read(&body) {
        Ok(reply) => (headers, Json(dialect.answer(reply))).into_response(),
        Err(refused) => refuse::<D>(&refused, headers),
    }
}

/// A stream that is translated piece by piece.
struct Translation<D> {
    dialect: D,
    reader: Reader,
    deltas: Deltas,
    failed: bool,
}

impl<D: Dialect> Translation<D> {
    fn new(dialect: D) -> Self {
        Self { dialect, reader: Reader::default(), deltas: Deltas::default(), failed: false }
    }

    /// What a piece of the chat's stream becomes.
    fn piece(&mut self, bytes: &[u8]) -> String {
        let mut out = String::new();
        for event in self.reader.push(bytes) {
            match event {
                Event::Comment if self.failed => {}
                Event::Comment => out.push_str(D::ALIVE),
                Event::Data(data) => {
                    let deltas = self.deltas.read(&data, D::NAMES);
                    self.write(deltas, &mut out);
                }
            }
        }
        out
    }

    /// What its end becomes; `broke` says that it broke off.
    fn end(&mut self, broke: bool) -> String {
        let mut out = String::new();
        let deltas = if broke { self.deltas.fail("broke off") } else { self.deltas.finish() };
        self.write(deltas, &mut out);
        if !self.failed {
            self.dialect.end(&mut out);
        }
        out
    }

    fn write(&mut self, deltas: Vec<Delta>, out: &mut String) {
        for delta in deltas {
            self.failed |= matches!(delta, Delta::Failed(_));
            self.dialect.write(delta, out);
        }
    }
}

fn streamed<D: Dialect>(dialect: D, answer: Response) -> Response {
    let (mut parts, body) = answer.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(TRANSFER_ENCODING);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(dialect.stream_type()));
    parts.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    let state = Some((body.into_data_stream(), Translation::new(dialect)));
    let pieces = stream::unfold(state, |state: Option<(BodyDataStream, Translation<D>)>| async move {
        let (mut body, mut translation) = state?;
        loop {
            let (text, state) = match body.next().await {
                Some(Ok(bytes)) => (translation.piece(&bytes), Some((body, translation))),
                Some(Err(_)) => (translation.end(true), None),
                None => (translation.end(false), None),
            };
            match state {
                // A piece may add nothing.
                Some((same, next)) if text.is_empty() => (body, translation) = (same, next),
                state => return Some((Ok::<_, Infallible>(text), state)),
            }
        }
    });
    Response::from_parts(parts, Body::from_stream(pieces))
}
