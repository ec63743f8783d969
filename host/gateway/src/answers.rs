//! The answers of a session, each of which is drawn once, however often its request is sent.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use blake3::Hash;
use futures::stream::{self, Stream, StreamExt};
use gavel_data::FinishReason;
use gavel_policy::DrawnToken;
use gavel_rollout::Piece;
use gavel_serve::openai::{ApiError, Progress, Replies, completion};
use gavel_text::TextModel;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// What is known of an answer before it is drawn.
#[derive(Clone)]
pub(crate) struct Opening {
    pub(crate) replies: Replies,
    /// Its id, its time and its model.
    pub(crate) base: Value,
    pub(crate) prompt_tokens: usize,
    pub(crate) choices: usize,
}

/// A choice of an answer.
pub(crate) struct Choice {
    pub(crate) text: String,
    /// Its tokens, without a token that only ends it.
    pub(crate) tokens: Vec<DrawnToken>,
    /// How many tokens were drawn.
    pub(crate) count: usize,
    /// The message, and whether it calls tools.
    pub(crate) message: (Value, bool),
    pub(crate) finish_reason: FinishReason,
}

/// An answer that was drawn.
pub(crate) struct Answered {
    pub(crate) opening: Opening,
    pub(crate) choices: Vec<Choice>,
}

/// How far an answer is.
#[derive(Clone)]
pub(crate) enum Stage {
    Planned,
    Drawn(Opening),
    Done(Result<Arc<Answered>, ApiError>),
}

/// The answers of a session.
#[derive(Default)]
pub(crate) struct Answers(Vec<Kept>);

struct Kept {
    body: Hash,
    idempotency_key: Option<String>,
    /// How many requests it answers.
    requests: usize,
    answer: Answer,
}

#[derive(Clone)]
struct Answer {
    stage: watch::Receiver<Stage>,
    clients: Arc<watch::Sender<usize>>,
}

/// A client that waits for an answer. Once the last one is gone, the answer is drawn for some time, and then given up.
pub(crate) struct Waiting(Answer);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.clients.send_modify(|clients| *clients -= 1);
    }
}

impl Answers {
    /// The answer to a request that was sent before.
    ///
    /// # Errors
    /// Its key belongs to another request.
    pub(crate) fn find(
        &mut self,
        body: &Hash,
        idempotency_key: Option<&str>,
        count: usize,
    ) -> Result<Option<Waiting>, ApiError> {
        // A request whose answer failed may be asked anew.
        self.0.retain(|kept| !kept.answer.has_failed());
        let found = match idempotency_key {
            Some(key) => self.0.iter_mut().find(|kept| kept.idempotency_key.as_deref() == Some(key)),
            None if count == 0 => None,
            // Of equal requests, it is the last one that was sent as often before.
            None => {
                let is_equal = |kept: &&mut Kept| kept.body == *body && kept.idempotency_key.is_none();
                self.0.iter_mut().rev().filter(is_equal).min_by_key(|kept| kept.requests.abs_diff(count))
            }
        };
        let Some(kept) = found else { return Ok(None) };
        if kept.body != *body {
            let what = "another request of this session had this Idempotency-Key";
            return Err(ApiError::coded(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", what));
        }
        kept.requests += 1;
        Ok(Some(kept.answer.wait()))
    }

    /// Starts to draw an answer. `work` reports when it is planned. After `grace` without a client, it is given up.
    pub(crate) fn start<W>(
        &mut self,
        body: Hash,
        idempotency_key: Option<String>,
        grace: Duration,
        work: impl FnOnce(Arc<watch::Sender<Stage>>) -> W,
    ) -> (Waiting, AbortHandle)
    where
        W: Future<Output = Result<Answered, ApiError>> + Send + 'static,
    {
        let (sender, stage) = watch::channel(Stage::Planned);
        let (clients, of_clients) = watch::channel(0);
        let answer = Answer { stage, clients: Arc::new(clients) };
        let waiting = answer.wait();
        let sender = Arc::new(sender);
        let work = work(sender.clone());
        let task = tokio::spawn(async move {
            let done = tokio::select! {
                done = work => done.map(Arc::new),
                () = abandoned(of_clients, grace) => Err(ApiError::unavailable("no client waits for this answer")),
            };
            sender.send_replace(Stage::Done(done));
        });
        self.0.push(Kept { body, idempotency_key, requests: 1, answer });
        (waiting, task.abort_handle())
    }
}

/// Returns once no client has waited for as long as `grace`.
async fn abandoned(mut clients: watch::Receiver<usize>, grace: Duration) {
    loop {
        // Without its sender, nobody can wait.
        if clients.wait_for(|clients| *clients == 0).await.is_err() {
            return;
        }
        match timeout(grace, clients.wait_for(|clients| *clients > 0)).await {
            Err(_) | Ok(Err(_)) => return,
            Ok(Ok(_)) => {}
        }
    }
}

impl Answer {
    fn wait(&self) -> Waiting {
        self.clients.send_modify(|clients| *clients += 1);
        Waiting(self.clone())
    }

    fn has_failed(&self) -> bool {
        matches!(*self.stage.borrow(), Stage::Done(Err(_)))
    }
}

impl Waiting {
    /// The answer as a response.
    ///
    /// # Errors
    /// It cannot be drawn, or the session ended before.
    pub(crate) async fn respond(
        self,
        text: impl AsRef<TextModel> + Send + 'static,
        is_streamed: bool,
        include_usage: bool,
    ) -> Result<Response, ApiError> {
        if is_streamed {
            let Opening { replies, base, prompt_tokens, choices } = self.opening().await?;
            return Ok(replies.stream(text, base, choices, self.progress(), prompt_tokens, include_usage));
        }
        let answered = self.done().await?;
        let Answered { opening: Opening { replies, base, prompt_tokens, .. }, choices } = &*answered;
        let drawn = choices.iter().map(|choice| choice.count).sum();
        let written = choices.iter().enumerate().map(|(index, choice)| {
            let Choice { tokens, message, finish_reason, .. } = choice;
            replies.choice(text.as_ref(), index, message.clone(), tokens, *finish_reason)
        });
        Ok(Json(completion(base.clone(), written.collect(), *prompt_tokens, drawn)).into_response())
    }

    async fn opening(&self) -> Result<Opening, ApiError> {
        let mut stage = self.0.stage.clone();
        let known = stage.wait_for(|stage| !matches!(stage, Stage::Planned)).await.map_err(|_| ended())?;
        match &*known {
            Stage::Planned => Err(ended()),
            Stage::Drawn(opening) => Ok(opening.clone()),
            Stage::Done(done) => done.as_ref().map(|answered| answered.opening.clone()).map_err(Clone::clone),
        }
    }

    async fn done(&self) -> Result<Arc<Answered>, ApiError> {
        let mut stage = self.0.stage.clone();
        let done = stage.wait_for(|stage| matches!(stage, Stage::Done(_))).await.map_err(|_| ended())?;
        match &*done {
            Stage::Done(done) => done.clone(),
            _ => Err(ended()),
        }
    }

    /// The answer as a server streams it: each choice in one piece for each of its tokens, of which the first has the
    /// text.
    fn progress(self) -> impl Stream<Item = Result<(usize, Progress), ApiError>> + Send {
        stream::once(async move { self.done().await }).flat_map(|done| stream::iter(steps(done)))
    }
}

fn steps(done: Result<Arc<Answered>, ApiError>) -> Vec<Result<(usize, Progress), ApiError>> {
    let answered = match done {
        Ok(answered) => answered,
        Err(error) => return vec![Err(error)],
    };
    let mut steps = Vec::new();
    for (index, Choice { text, tokens, count, finish_reason, .. }) in answered.choices.iter().enumerate() {
        let mut text = Some(text.clone());
        let mut pieces: Vec<Piece> = tokens
            .iter()
            .map(|token| Piece { text: text.take().unwrap_or_default(), token: Some(token.clone()) })
            .collect();
        if let Some(text) = text {
            pieces.push(Piece { text, token: None });
        }
        steps.extend(pieces.into_iter().map(|piece| Ok((index, Progress::Piece(piece)))));
        steps.push(Ok((index, Progress::End(*finish_reason, *count))));
    }
    steps
}

/// The answer to requests after the end of their session.
pub(crate) fn ended() -> ApiError {
    let what = "the session has ended: its program is over, or has used up its time";
    ApiError::coded(StatusCode::GONE, "session_ended", what)
}
