//! Responses as they come, as server-sent events.

use super::error::ApiError;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream, StreamExt};
use gavel_data::FinishReason;
use gavel_rollout::RolloutError;
use gavel_rollout::{Completion, Piece};
use serde_json::Value;
use std::convert::Infallible;

/// The progress of one of several responses.
pub enum Progress {
    /// A piece of it.
    Piece(Piece),
    /// Its end, with the number of tokens drawn.
    End(FinishReason, usize),
}

/// The progress of all `completions`, as it comes, with their numbers.
pub(super) fn together(
    completions: Vec<Completion>,
) -> impl Stream<Item = Result<(usize, Progress), RolloutError>> + Send {
    let one = |(index, completion): (usize, Completion)| {
        let steps = stream::try_unfold(Some(completion), move |completion| async move {
            let Some(mut completion) = completion else { return Ok(None) };
            match completion.next().await? {
                Some(piece) => Ok(Some(((index, Progress::Piece(piece)), Some(completion)))),
                None => {
                    let reason = completion.finish_reason().unwrap_or(FinishReason::Stop);
                    Ok(Some(((index, Progress::End(reason, completion.tokens())), None)))
                }
            }
        });
        steps.boxed()
    };
    stream::select_all(completions.into_iter().enumerate().map(one))
}

/// Sends `chunks`, and then `[DONE]`; a failure is a separate event.
pub(super) fn events<E: Into<ApiError>>(chunks: impl Stream<Item = Result<Value, E>> + Send + 'static) -> Response {
    let events = chunks.map(|chunk| match chunk {
        Ok(chunk) => chunk.to_string(),
        Err(error) => error.into().body().to_string(),
    });
    let events = events.chain(stream::iter(["[DONE]".to_owned()]));
    let events = events.map(|data| Ok::<_, Infallible>(Event::default().data(data)));
    // Proxies close connections that are silent for long.
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}
