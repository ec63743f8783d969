//! One attempt at a task, from its prompt to a sample.

use crate::conversation::{Conversation, PromptOptions};
use crate::policy::{ConversationKey, PendingTurn, Policy, Turn, TurnRequest};
use crate::progress::EpisodeProgress;
use crate::row_settings::tool_settings;
use crate::tool_set::{Answers, Sessions, ToolLimits, ToolSet};
use crate::waits_for::WaitsFor;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{
    FinishReason, Message, RolloutFault, RolloutReport, RolloutStage, Sample, Task, TaskError, ToolEnding, ToolStates,
    ToolUse, Trajectory,
};
use gavel_text::TextError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout_at;

/// One attempt at a task, with tools or without.
#[derive(Clone)]
pub struct Episode {
    /// The task.
    pub task: Arc<Task>,
    /// The number of the sample in its group.
    pub index: u32,
    /// Token ids of the task's prompt, which offers the functions of the tools.
    pub prompt: Vec<u32>,
    /// The most tokens after the prompt, including the tokens of tools.
    pub max_tokens: usize,
    /// The seed of the policy's draws.
    pub seed: u64,
    /// The seed of the random numbers that the tools see.
    pub tool_seed: u64,
    /// The key of its conversation, if the policy keeps something of it between turns.
    pub key: Option<ConversationKey>,
    /// The tools that the policy may call; without any, it writes one turn.
    pub tools: Option<Tools>,
}

/// The tools of an episode.
#[derive(Clone)]
pub struct Tools {
    /// The tools that may be called.
    pub set: Arc<ToolSet>,
    /// The limits of the episode.
    pub limits: EpisodeLimits,
}

/// The limits of an episode with tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpisodeLimits {
    /// Turns of the policy.
    pub max_turns: usize,
    /// Time from its start, including the wait for the device.
    pub deadline: Duration,
    /// What the policy reads of its earlier turns.
    pub history: History,
    /// How tools may be used.
    pub tools: ToolLimits,
}

/// What the policy reads of its earlier turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum History {
    /// Its own tokens, in one trajectory.
    #[default]
    Exact,
    /// What the chat template makes of them. Each turn is then a trajectory of its own.
    Split,
}

/// Why an episode has no sample.
#[derive(Debug, thiserror::Error)]
pub enum EpisodeError<E> {
    /// The policy failed or was stopped.
    #[error(transparent)]
    Policy(E),
    /// The tokenizer or the chat template failed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A column of the task's row has a form that is not supported.
    #[error(transparent)]
    Row(#[from] TaskError),
    /// The sandbox of the tools was shut down.
    #[error("the sandbox of the tools was shut down")]
    ShutDown,
}

impl Episode {
    /// The request of its first turn. It is submitted together with the first requests of the other episodes: the
    /// log-probs of a response depend, in their last bits, on what is decoded beside it.
    pub fn first_request(&self) -> TurnRequest {
        self.request(self.prompt.clone(), self.max_tokens, self.seed)
    }

    fn request(&self, prompt: Vec<u32>, max_tokens: usize, seed: u64) -> TurnRequest {
        TurnRequest { prompt, max_tokens, stop: Vec::new(), seed, conversation: self.key.clone() }
    }

    /// Plays the episode to its end, from the turn that [`first_request`](Self::first_request) asked for. `progress`
    /// shows what it waits for.
    ///
    /// # Errors
    /// The policy failed, or its tokens cannot be decoded.
    pub async fn play<P: Policy>(
        self,
        policy: &P,
        first: PendingTurn<P::Error>,
        progress: &EpisodeProgress,
    ) -> Result<Sample, EpisodeError<P::Error>> {
        let (task, index) = (self.task.clone(), self.index);
        let functions = self.tools.as_ref().map_or_else(|| Arc::from([]), |tools| tools.set.definitions());
        let template_kwargs = Arc::new(task.reference.template_kwargs()?);
        let options = PromptOptions { functions, template_kwargs };
        let conversation = Conversation::new(task.prompt.clone(), self.prompt.clone(), options);
        let report = RolloutReport::default();
        let (ended, sessions) = (Vec::new(), None);
        let mut play = Play { episode: self, policy, progress, ended, conversation, report, sessions };
        let (finish_reason, states) = match play.run(first).await? {
            reason @ (FinishReason::Timeout | FinishReason::Error) => (reason, ToolStates::new()),
            reason => play.finish_tools(reason).await,
        };
        let Play { ended: mut trajectories, conversation, report, .. } = play;
        let is_split = !trajectories.is_empty();
        trajectories.push(conversation.end(is_split.then(String::new), finish_reason, report));
        let answer = trajectories.last().filter(|_| is_split).map(Trajectory::response);
        Ok(Sample { answer, states, ..Sample::new(task, index, trajectories) })
    }
}

/// An episode under way.
struct Play<'a, P> {
    episode: Episode,
    policy: &'a P,
    progress: &'a EpisodeProgress,
    /// The trajectories of earlier turns, if each turn is a trajectory.
    ended: Vec<Trajectory>,
    conversation: Conversation,
    report: RolloutReport,
    /// The sessions of the tools, once a tool was called.
    sessions: Option<Sessions>,
}

impl<P: Policy> Play<'_, P> {
    async fn run(&mut self, first: PendingTurn<P::Error>) -> Result<FinishReason, EpisodeError<P::Error>> {
        let Some(Tools { set, limits }) = self.episode.tools.clone() else {
            let turn = self.generate(first, Instant::now()).await?;
            let finish_reason = turn.finish_reason;
            self.conversation.append_turn(turn, self.policy.text())?;
            return Ok(finish_reason);
        };
        let mut deadline = tokio::time::Instant::now() + limits.deadline;
        let (mut pending, mut asked) = (first, Instant::now());
        loop {
            let Ok(turn) = timeout_at(deadline, self.generate(pending, asked)).await else {
                return Ok(self.timed_out(RolloutStage::Generate, &limits));
            };
            let turn = turn?;
            let finish_reason = turn.finish_reason;
            let reply = self.conversation.append_turn(turn, self.policy.text())?;
            if finish_reason != FinishReason::Stop || (reply.tool_calls.is_empty() && reply.malformed.is_empty()) {
                return Ok(finish_reason);
            }
            let turns = self.ended.len() + self.conversation.turns();
            if turns >= limits.max_turns {
                return Ok(FinishReason::MaxTurns);
            }
            let sessions = match &mut self.sessions {
                Some(sessions) => sessions,
                None => {
                    self.progress.wait_for(WaitsFor::Memory);
                    let start = tokio::time::Instant::now();
                    let rooms = set.rooms(None).await.ok_or(EpisodeError::ShutDown)?;
                    // The wait for memory that other trajectories hold does not count against its deadline.
                    deadline += start.elapsed();
                    let settings = tool_settings(&self.episode.task);
                    let waits = self.progress.outside_waits();
                    self.sessions.insert(set.open(Arc::new(rooms), &settings, self.episode.tool_seed, waits))
                }
            };
            let names: Vec<String> = reply.tool_calls.iter().map(|call| call.name.clone()).collect();
            self.progress.wait_for(WaitsFor::Tools(names.clone()));
            let called = Instant::now();
            let answered = sessions.answer(
                &reply.tool_calls,
                &reply.malformed,
                turns as u32 - 1,
                &limits.tools,
                self.policy.text(),
            );
            let answered = timeout_at(deadline, answered).await;
            let seconds = called.elapsed().as_secs_f64();
            self.report.in_tools.push(seconds);
            let Ok(answered) = answered else {
                let cut = |name| ToolUse {
                    name: Some(name),
                    ending: ToolEnding::OutOfBudget,
                    turn: turns as u32 - 1,
                    seconds,
                };
                let known = names.into_iter().filter(|name| set.has(name));
                self.report.tool_uses.extend(known.map(cut));
                return Ok(self.timed_out(RolloutStage::Tools, &limits));
            };
            let Answers { messages, uses, fault } = answered?;
            self.report.tool_uses.extend(uses);
            if fault.is_some() {
                self.report.error = fault;
                return Ok(FinishReason::Error);
            }
            let left = match limits.history {
                History::Exact => self.append(messages)?,
                History::Split => self.split(messages)?,
            };
            if left == 0 {
                return Ok(FinishReason::Length);
            }
            asked = Instant::now();
            pending = self.submit(left, turns).await.map_err(EpisodeError::Policy)?;
        }
    }

    /// Appends messages to the conversation, and gives how many tokens are left; 0 if the messages do not fit.
    fn append(&mut self, messages: Vec<Message>) -> Result<usize, TextError> {
        let ids = self.conversation.continuation(&messages, self.policy.text())?;
        let grown = self.conversation.tokens() + ids.len() - self.episode.prompt.len();
        let left = self.episode.max_tokens.saturating_sub(grown);
        if left > 0 {
            self.conversation.append(messages, ids);
        }
        Ok(left)
    }

    /// Begins a conversation with all messages so far and these, and gives how many tokens are left; 0 if the messages
    /// do not fit.
    fn split(&mut self, messages: Vec<Message>) -> Result<usize, TextError> {
        let history: Vec<Message> = self.conversation.history().cloned().chain(messages).collect();
        let options = self.conversation.options().clone();
        let ids = self.policy.text().prompt_ids_with(&history, &options.asking())?;
        let grown = ids.len().saturating_sub(self.episode.prompt.len());
        let left = self.episode.max_tokens.saturating_sub(grown);
        if left > 0 {
            let next = Conversation::new(history, ids, options);
            let speaker = (!self.ended.is_empty()).then(String::new);
            let ended = std::mem::replace(&mut self.conversation, next);
            self.ended.push(ended.end(speaker, FinishReason::Stop, std::mem::take(&mut self.report)));
        }
        Ok(left)
    }

    /// Waits for a turn, which may be written before the policy confirms that it was `asked` for.
    async fn generate(
        &mut self,
        pending: PendingTurn<P::Error>,
        asked: Instant,
    ) -> Result<Turn, EpisodeError<P::Error>> {
        self.progress.wait_for(WaitsFor::Policy);
        let turn = pending.await.map_err(EpisodeError::Policy)?;
        self.report.generating.push(asked.elapsed().as_secs_f64());
        Ok(turn)
    }

    async fn submit(&mut self, max_tokens: usize, turn: usize) -> Result<PendingTurn<P::Error>, P::Error> {
        let seed = derive(self.episode.seed, turn as u64, 0, Purpose::Turn);
        let request = self.episode.request(self.conversation.ids(), max_tokens, seed);
        let mut pending = self.policy.generate(vec![request]).await?;
        // A request has one turn.
        Ok(pending.remove(0))
    }

    /// Ends the sessions of the tools. Gives why the episode ended, and the states in which they ended.
    async fn finish_tools(&mut self, reason: FinishReason) -> (FinishReason, ToolStates) {
        let Some(sessions) = &mut self.sessions else { return (reason, ToolStates::new()) };
        self.progress.wait_for(WaitsFor::Tools(vec!["finish".to_owned()]));
        match sessions.finish().await {
            Ok(states) => (reason, states),
            Err(fault) => {
                self.report.error = Some(fault);
                (FinishReason::Error, ToolStates::new())
            }
        }
    }

    /// The episode has used up its time.
    fn timed_out(&mut self, stage: RolloutStage, limits: &EpisodeLimits) -> FinishReason {
        let message = format!("the sample was not done after {} s", limits.deadline.as_secs_f64());
        self.report.error = Some(RolloutFault { stage, message, retryable: true, budget: None, diagnosis: None });
        FinishReason::Timeout
    }
}
