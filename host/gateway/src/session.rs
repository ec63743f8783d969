//! The requests of one attempt at a task, answered with turns of the policy.

use crate::answers::{Answered, Answers, Choice, Opening, Stage, ended};
use crate::call::{Call, Retry};
use crate::digest;
use crate::limits::SessionLimits;
use crate::plan::{Located, Refused, check, locate};
use crate::recording::{AfterTurn, Recording, Start};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use blake3::Hash;
use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use gavel_agent::{ConversationKey, EpisodeError, EpisodeProgress, History, Policy, Turn, TurnRequest, WaitsFor};
use gavel_data::seed::{Purpose, derive};
use gavel_data::{FinishReason, Message, Task, TaskError, Trajectory};
use gavel_http::{Size, aside};
use gavel_policy::DrawnToken;
use gavel_serve::openai::{ApiError, ChatRequest, Replies, Whole, now};
use gavel_text::{TextError, TextModel};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

/// A session, whatever draws its turns.
pub trait ChatSession: Send + Sync {
    /// Answers a request for a chat completion.
    fn chat(self: Arc<Self>, call: Call) -> BoxFuture<'static, Response>;

    /// The tokens of the prompt of such a request; nothing is drawn.
    fn count_tokens(self: Arc<Self>, call: Call) -> BoxFuture<'static, Result<usize, ApiError>>;
}

/// One attempt at a task by a program.
pub struct Session<P: Policy> {
    task: Arc<Task>,
    /// The seed of the policy's draws.
    seed: u64,
    limits: SessionLimits,
    policy: Arc<P>,
    /// The variables of the chat template that the task's row sets.
    template_kwargs: Map<String, Value>,
    state: Mutex<State<P::Error>>,
    /// Notified when the episode cannot continue.
    failed: Notify,
}

struct State<E> {
    recording: Recording,
    answers: Answers,
    tasks: Vec<AbortHandle>,
    /// Turns that were asked for.
    turns: usize,
    /// Requests for which the policy writes.
    drawing: usize,
    /// How often each prompt was drawn from.
    drawn: HashMap<Hash, u64>,
    is_exhausted: bool,
    error: Option<EpisodeError<E>>,
    /// Absent once the session has ended.
    progress: Option<EpisodeProgress>,
}

/// How a session ended.
pub(crate) struct EndedSession<E> {
    pub(crate) trajectories: Vec<Trajectory>,
    /// The last text of the policy.
    pub(crate) last_text: Option<String>,
    /// Whether a request was refused because a budget of the sample was used up.
    pub(crate) is_exhausted: bool,
    /// Why the episode could not continue.
    pub(crate) error: Option<EpisodeError<E>>,
}

/// Turns that are about to be drawn.
struct Planned {
    start: Start,
    opening: Opening,
    requests: Vec<TurnRequest>,
    keys: Vec<Option<ConversationKey>>,
    /// Texts that end a turn and that its client does not get.
    stop: Arc<[String]>,
}

/// The tokenizer and the template of a policy.
struct PolicyText<P>(Arc<P>);

impl<P: Policy> AsRef<TextModel> for PolicyText<P> {
    fn as_ref(&self) -> &TextModel {
        self.0.text()
    }
}

impl<P: Policy + 'static> ChatSession for Session<P> {
    fn chat(self: Arc<Self>, call: Call) -> BoxFuture<'static, Response> {
        async move { self.answer(call).await.unwrap_or_else(IntoResponse::into_response) }.boxed()
    }

    fn count_tokens(self: Arc<Self>, Call { body, size, .. }: Call) -> BoxFuture<'static, Result<usize, ApiError>> {
        let count = move || {
            let asked = read(body)?;
            check(&asked)?;
            if self.state().progress.is_none() {
                return Err(ended());
            }
            // A program may count what it will not ask, so that nothing is noted.
            Ok(self.locate(&asked).map_err(Refused::into_error)?.prompt.len())
        };
        async move { aside(size, count).await? }.boxed()
    }
}

impl<P: Policy + 'static> Session<P> {
    /// # Errors
    /// The task's row sets variables of the chat template that are none.
    pub fn new(
        task: Arc<Task>,
        seed: u64,
        limits: SessionLimits,
        policy: Arc<P>,
        progress: EpisodeProgress,
    ) -> Result<Arc<Self>, TaskError> {
        let template_kwargs = task.reference.template_kwargs()?;
        let state = State {
            recording: Recording::default(),
            answers: Answers::default(),
            tasks: Vec::new(),
            turns: 0,
            drawing: 0,
            drawn: HashMap::new(),
            is_exhausted: false,
            error: None,
            progress: Some(progress),
        };
        let (state, failed) = (Mutex::new(state), Notify::new());
        Ok(Arc::new(Self { task, seed, limits, policy, template_kwargs, state, failed }))
    }

    /// Returns once the episode cannot continue.
    pub(crate) async fn failed(&self) {
        self.failed.notified().await;
    }

    /// Ends the session. Requests under way are answered with an error, and so are later ones.
    pub(crate) fn end(&self) -> EndedSession<P::Error> {
        let mut state = self.state();
        state.progress = None;
        let (tasks, recording) = (std::mem::take(&mut state.tasks), std::mem::take(&mut state.recording));
        let (is_exhausted, error) = (state.is_exhausted, state.error.take());
        drop(state);
        tasks.iter().for_each(AbortHandle::abort);
        let last_text = recording.last_text();
        EndedSession { trajectories: recording.end(&self.task.prompt), last_text, is_exhausted, error }
    }

    async fn answer(self: Arc<Self>, Call { body, size, retry }: Call) -> Result<Response, ApiError> {
        let hash = digest::digest(&body.to_string());
        let asked = read(body)?;
        let (is_streamed, include_usage) = (asked.settings().is_streamed(), asked.settings().include_usage());
        let Retry { idempotency_key, count } = retry;
        let text = PolicyText(self.policy.clone());
        let waiting = {
            let mut state = self.state();
            if state.progress.is_none() {
                return Err(ended());
            }
            match state.answers.find(&hash, idempotency_key.as_deref(), count)? {
                Some(waiting) => waiting,
                None => {
                    let session = self.clone();
                    let work = move |stage| session.draw(asked, size, stage);
                    let (waiting, task) = state.answers.start(hash, idempotency_key, self.limits.grace, work);
                    state.tasks.retain(|task| !task.is_finished());
                    state.tasks.push(task);
                    waiting
                }
            }
        };
        // The session may end while a slow client reads.
        drop(self);
        waiting.respond(text, is_streamed, include_usage).await
    }

    /// Plans the turns that a request asks for, draws them and records them.
    async fn draw(
        self: Arc<Self>,
        asked: ChatRequest,
        size: Size,
        stage: Arc<watch::Sender<Stage>>,
    ) -> Result<Answered, ApiError> {
        let session = self.clone();
        let mut planned = aside(size, move || session.plan(&asked)).await??;
        stage.send_replace(Stage::Drawn(planned.opening.clone()));
        let drawing = Drawing::begin(&self);
        let begun = Instant::now();
        let requests = std::mem::take(&mut planned.requests);
        let failed = |error| self.fail(EpisodeError::Policy(error));
        let pending = self.policy.generate(requests).await.map_err(failed)?;
        let timed = pending.into_iter().map(async |turn| Ok((turn.await?, begun.elapsed().as_secs_f64())));
        let turns: Vec<(Turn, f64)> = try_join_all(timed).await.map_err(failed)?;
        drop(drawing);
        self.record(planned, turns)
    }

    /// Where the turns of a request begin, and the requests for them.
    fn plan(&self, asked: &ChatRequest) -> Result<Planned, ApiError> {
        let choices = check(asked)?;
        let located = self.locate(asked).map_err(|refused| self.refuse(refused))?;
        let left = located.tokens_left(&self.limits).map_err(|refused| self.refuse(refused))?;
        let settings = asked.settings();
        let max_tokens = settings.max_tokens().map_or(left, |most| left.min(most));
        let Located { start, prompt, tools } = located;
        let replies = asked.replies(tools, self.policy.text(), start.base.calls());
        self.reserve(start, prompt, choices, max_tokens, settings.stop(), replies, settings.model())
    }

    fn locate(&self, asked: &ChatRequest) -> Result<Located, Refused> {
        let text = self.policy.text();
        let find = |digests: &[Hash]| self.state().recording.find(digests);
        locate(asked, &self.template_kwargs, &self.limits, text, find)
    }

    /// Takes the turns of a request from those that are left.
    #[expect(clippy::too_many_arguments, reason = "a step of the plan")]
    fn reserve(
        &self,
        start: Start,
        prompt: Vec<u32>,
        choices: usize,
        max_tokens: usize,
        stop: Arc<[String]>,
        replies: Replies,
        model: Option<&str>,
    ) -> Result<Planned, ApiError> {
        let bytes: Vec<u8> = prompt.iter().flat_map(|id| id.to_le_bytes()).collect();
        let hash = blake3::hash(&bytes);
        let mut state = self.state();
        if state.progress.is_none() {
            return Err(ended());
        }
        let most = self.limits.max_turns;
        if state.turns + choices > most {
            self.exhaust(&mut state, start.after, FinishReason::MaxTurns);
            let left = most - state.turns.min(most);
            let what = format!(
                "the sample has had its {most} turns (agent.max_turns): {choices} are asked for, and {left} are left"
            );
            return Err(ApiError::coded(StatusCode::FORBIDDEN, "max_turns", what));
        }
        let number = state.turns;
        state.turns += choices;
        // Which seed a turn has follows from its prompt, not from the moment at which parallel requests arrive.
        let drawn = state.drawn.entry(hash).or_default();
        let first = *drawn;
        *drawn += choices as u64;
        let of_prompt = hash.as_bytes().iter().take(8).fold(0u64, |all, byte| (all << 8) | u64::from(*byte));
        let seed = derive(self.seed, of_prompt, 0, Purpose::Turn);
        let mut keys: Vec<Option<ConversationKey>> = Vec::new();
        for _ in 0..choices {
            let own = start.after.filter(|_| keys.is_empty()).and_then(|after| state.recording.take_key(after));
            keys.push(own.or_else(|| self.policy.conversation()));
        }
        drop(state);
        let requests = (first..).zip(&keys).map(|(draw, key)| TurnRequest {
            prompt: prompt.clone(),
            max_tokens,
            stop: stop.to_vec(),
            seed: derive(seed, draw, 0, Purpose::Turn),
            conversation: key.clone(),
        });
        let requests = requests.collect();
        let name = digest::digest(&format!("{}/{}", self.seed, self.task.id)).to_hex();
        let id = format!("chatcmpl-{}{number:08x}", &name[..16]);
        let base = json!({"id": id, "created": now(), "model": model.unwrap_or(MODEL)});
        let opening = Opening { replies, base, prompt_tokens: prompt.len(), choices };
        Ok(Planned { start, opening, requests, keys, stop })
    }

    /// Records turns that were drawn, unless the session has ended.
    fn record(&self, planned: Planned, turns: Vec<(Turn, f64)>) -> Result<Answered, ApiError> {
        let Planned { start, opening, keys, stop, .. } = planned;
        let text = self.policy.text();
        let mut choices = Vec::new();
        let mut written = Vec::new();
        for ((turn, seconds), key) in turns.into_iter().zip(keys) {
            let choice = choice(&turn, &opening, &stop, text).map_err(|error| self.fail(error.into()))?;
            // It is the message that the replies write.
            let message: Message = serde_json::from_value(choice.message.0.clone())
                .map_err(|error| ApiError::internal(error.to_string()))?;
            choices.push(choice);
            written.push((turn, seconds, key, message));
        }
        let mut state = self.state();
        if state.progress.is_none() {
            return Err(ended());
        }
        for (turn, seconds, key, message) in written {
            let recorded = state.recording.record(&start, turn, seconds, key, &message, text);
            if let Err(error) = recorded {
                drop(state);
                return Err(self.fail(error.into()));
            }
        }
        Ok(Answered { opening, choices })
    }

    /// The error of a request that is refused; notes that a conversation has no room.
    fn refuse(&self, refused: Refused) -> ApiError {
        if let Refused::TooLong { after, .. } = &refused {
            self.exhaust(&mut self.state(), *after, FinishReason::Length);
        }
        refused.into_error()
    }

    /// Notes that a budget of the sample is used up, and that the conversation after this turn cannot continue. Turns that
    /// are trajectories of their own continue the last one.
    fn exhaust(&self, state: &mut State<P::Error>, after: Option<AfterTurn>, why: FinishReason) {
        state.is_exhausted = true;
        match self.limits.history {
            History::Exact => state.recording.cannot_continue(after, why),
            History::Split => state.recording.last_cannot_continue(why),
        }
    }

    /// Ends the episode, which cannot continue.
    fn fail(&self, error: EpisodeError<P::Error>) -> ApiError {
        let what = format!("the run draws nothing more: {error}");
        self.state().error.get_or_insert(error);
        self.failed.notify_one();
        ApiError::unavailable(what)
    }

    fn state(&self) -> MutexGuard<'_, State<P::Error>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The request in a body.
fn read(body: Value) -> Result<ChatRequest, ApiError> {
    serde_json::from_value(body).map_err(|error| ApiError::invalid(format!("the body: {error}")))
}

/// The name of the policy, if a request names no model.
pub(crate) const MODEL: &str = "policy";

/// A turn as its client gets it.
fn choice(turn: &Turn, opening: &Opening, stop: &[String], text: &TextModel) -> Result<Choice, TextError> {
    let mut written = text.tokenizer.decode(&turn.ids)?;
    if let Some(end) = stop.iter().filter_map(|stop| written.find(stop)).min() {
        written.truncate(end);
    }
    let ends = |id: &u32| text.tokenizer.stop_ids().contains(id);
    let shown = turn.ids.len() - usize::from(turn.ids.last().is_some_and(ends));
    let drawn = turn.ids.iter().zip(&turn.logprobs).take(shown);
    let tokens: Vec<DrawnToken> =
        drawn.map(|(token, logprob)| DrawnToken { id: 0, token: *token, logprob: *logprob, top: Vec::new() }).collect();
    let ids = tokens.iter().map(|drawn| drawn.token).collect();
    let message = opening.replies.message(text, Whole { text: written.clone(), ids })?;
    Ok(Choice { text: written, tokens, count: turn.ids.len(), message, finish_reason: turn.finish_reason })
}

/// A request for which the policy writes, until this is dropped.
struct Drawing<'s, P: Policy + 'static>(&'s Session<P>);

impl<'s, P: Policy + 'static> Drawing<'s, P> {
    fn begin(session: &'s Session<P>) -> Self {
        let mut state = session.state();
        state.drawing += 1;
        if let Some(progress) = state.progress.as_ref().filter(|_| state.drawing == 1) {
            progress.wait_for(WaitsFor::Policy);
        }
        Self(session)
    }
}

impl<P: Policy + 'static> Drop for Drawing<'_, P> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.drawing -= 1;
        if let Some(progress) = state.progress.as_ref().filter(|_| state.drawing == 0) {
            progress.wait_for(WaitsFor::Agent);
        }
    }
}
