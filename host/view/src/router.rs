//! What the server answers.

use crate::access::{Access, Admitted, Refusal};
use crate::answer::{data, file, guarded, refused};
use crate::assets::{ASSETS, PAGE};
use crate::curves::SeriesRequest;
use crate::error::{Result, ViewError};
use crate::evaluation::RowRequest;
use crate::page::PageRequest;
use crate::scores::HistogramRequest;
use crate::view::View;
use crate::vocabulary::TokensRequest;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// The most bytes of a request.
const BODY: usize = 64 * 1024;

/// The server of a view.
pub fn router(view: Arc<View>, access: Arc<Access>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/web/{*name}", get(asset))
        .route("/api/runs", get(runs))
        .route("/api/runs/{run}", get(details))
        .route("/api/runs/{run}/series", post(series))
        .route("/api/runs/{run}/samples", post(samples))
        .route("/api/runs/{run}/samples/{id}", get(sample))
        .route("/api/runs/{run}/histogram", post(histogram))
        .route("/api/runs/{run}/tokens", post(tokens))
        .route("/api/runs/{run}/findings", get(findings))
        .route("/api/runs/{run}/steps/{step}", get(step))
        .route("/api/evaluations", get(evaluations))
        .route("/api/evaluations/{number}", get(answers).post(answers_to))
        .route("/api/runs/{run}/difference/{other}", get(difference))
        .fallback(nothing)
        .method_not_allowed_fallback(nothing)
        .layer(DefaultBodyLimit::max(BODY))
        .with_state(view)
        .layer(from_fn_with_state(access, admit))
}

/// Refuses strangers before anything else is done, and gives every answer its headers.
async fn admit(State(access): State<Arc<Access>>, mut request: Request, next: Next) -> Response {
    let admitted = match access.admit(request.uri(), request.headers()) {
        Ok(admitted) => admitted,
        Err(refusal) => return guarded(refuse(refusal)),
    };
    request.extensions_mut().insert(admitted);
    let mut answer = guarded(next.run(request).await);
    if admitted == Admitted::ByLink
        && let Ok(cookie) = HeaderValue::from_str(&access.cookie())
    {
        answer.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    answer
}

fn refuse(refusal: Refusal) -> Response {
    match refusal {
        Refusal::Host => refused(
            StatusCode::MISDIRECTED_REQUEST,
            "this server answers under 127.0.0.1 and localhost alone\nhint: open the link that gavel view printed",
        ),
        Refusal::Origin => refused(StatusCode::FORBIDDEN, "a page of another site asked, and gets no answer"),
        Refusal::Token => refused(
            StatusCode::UNAUTHORIZED,
            "the token is missing or is not this server's\nhint: open the link that gavel view printed last",
        ),
    }
}

async fn page(Extension(_): Extension<Admitted>) -> Response {
    file("text/html; charset=utf-8", PAGE.as_bytes())
}

async fn asset(Path(name): Path<String>) -> Response {
    match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => file(asset.kind, asset.bytes),
        None => nothing().await,
    }
}

async fn nothing() -> Response {
    refused(StatusCode::NOT_FOUND, "there is nothing here")
}

async fn runs(State(view): State<Arc<View>>) -> Response {
    answer(move || Ok(view.list())).await
}

async fn details(State(view): State<Arc<View>>, Path(run): Path<usize>) -> Response {
    answer(move || view.details(run)).await
}

async fn series(State(view): State<Arc<View>>, Path(run): Path<usize>, body: Bytes) -> Response {
    answer(move || view.series(run, &parsed::<SeriesRequest>(&body)?)).await
}

async fn samples(State(view): State<Arc<View>>, Path(run): Path<usize>, body: Bytes) -> Response {
    answer(move || view.samples(run, &parsed::<PageRequest>(&body)?)).await
}

async fn sample(State(view): State<Arc<View>>, Path((run, id)): Path<(usize, String)>) -> Response {
    answer(move || view.sample(run, &id)).await
}

async fn histogram(State(view): State<Arc<View>>, Path(run): Path<usize>, body: Bytes) -> Response {
    answer(move || view.histogram(run, &parsed::<HistogramRequest>(&body)?)).await
}

async fn step(State(view): State<Arc<View>>, Path((run, step)): Path<(usize, u64)>) -> Response {
    answer(move || view.step(run, step)).await
}

async fn evaluations(State(view): State<Arc<View>>) -> Response {
    answer(move || Ok(view.evaluations())).await
}

async fn answers(State(view): State<Arc<View>>, Path(number): Path<usize>) -> Response {
    answer(move || view.answers(number)).await
}

async fn answers_to(State(view): State<Arc<View>>, Path(number): Path<usize>, body: Bytes) -> Response {
    answer(move || view.answers_to(number, &parsed::<RowRequest>(&body)?)).await
}

async fn findings(State(view): State<Arc<View>>, Path(run): Path<usize>) -> Response {
    answer(move || view.findings(run)).await
}

async fn tokens(State(view): State<Arc<View>>, Path(run): Path<usize>, body: Bytes) -> Response {
    answer(move || view.tokens(run, &parsed::<TokensRequest>(&body)?)).await
}

async fn difference(State(view): State<Arc<View>>, Path((one, other)): Path<(usize, usize)>) -> Response {
    answer(move || view.difference(one, other)).await
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| ViewError::bad(format!("the request cannot be read: {error}"), "load the page again"))
}

/// Reads files away from the threads that answer requests.
async fn answer<T: Serialize + Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Response {
    let done = tokio::task::spawn_blocking(move || data(work())).await;
    done.unwrap_or_else(|lost| data::<()>(Err(ViewError::Lost(lost.to_string()))))
}
