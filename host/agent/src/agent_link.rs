//! The conversations of an agent, and its tools: what stands behind its imports `policy` and `tools`.

use crate::agent_episode::AgentEpisode;
use crate::conversation::Conversation;
use crate::episode::{EpisodeError, History};
use crate::policy::{ConversationKey, Policy, Turn, TurnRequest};
use crate::progress::EpisodeProgress;
use crate::tool_set::Sessions;
use crate::waits_for::WaitsFor;
use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use gavel_data::seed::{Purpose, derive};
use gavel_data::{ContentPart, FinishReason, Message, Role, RolloutReport, ToolCall, ToolEnding, ToolUse, Trajectory};
use gavel_plugin::{AgentTurn, EpisodeLink, EpisodeOver, PolicyRefusal, ToolFunction, ToolSpec, TurnOptions};
use gavel_text::{RenderOptions, TextError};
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// An episode, as its agent asks it.
pub(crate) struct AgentLink<P: Policy> {
    episode: AgentEpisode,
    policy: Arc<P>,
    progress: EpisodeProgress,
    sessions: tokio::sync::Mutex<Sessions>,
    state: Mutex<State<P>>,
}

struct State<P: Policy> {
    conversations: Vec<Open>,
    /// Turns of the policy in all of them.
    turns: usize,
    /// The conversation that the policy wrote in last; what tools are called for counts to it.
    last: Option<usize>,
    /// Whether a turn was refused since a budget of the sample was used up.
    exhausted: bool,
    /// Why the episode cannot continue.
    error: Option<EpisodeError<P::Error>>,
}

/// A conversation of an agent.
struct Open {
    speaker: String,
    functions: Arc<[Value]>,
    /// Messages since the last turn, or since the beginning.
    pending: Vec<Message>,
    /// Absent before the first turn.
    conversation: Option<Conversation>,
    /// Tokens of the prompt of the first turn.
    prompt_tokens: usize,
    /// The trajectories of earlier turns, where each is one.
    ended: Vec<Trajectory>,
    key: Option<ConversationKey>,
    finish_reason: FinishReason,
    report: RolloutReport,
}

impl<P: Policy> AgentLink<P> {
    pub(crate) fn new(episode: AgentEpisode, policy: Arc<P>, sessions: Sessions, progress: EpisodeProgress) -> Self {
        let state = State { conversations: Vec::new(), turns: 0, last: None, exhausted: false, error: None };
        Self { episode, policy, progress, sessions: tokio::sync::Mutex::new(sessions), state: Mutex::new(state) }
    }

    /// The trajectories: the conversations in which the policy wrote.
    ///
    /// # Errors
    /// The episode could not continue.
    pub(crate) fn end(&self) -> Result<Vec<Trajectory>, EpisodeError<P::Error>> {
        let mut state = self.state();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        let prompt = &self.episode.task.prompt;
        let conversations = std::mem::take(&mut state.conversations).into_iter();
        Ok(conversations.flat_map(|open| open.end(prompt)).collect())
    }

    /// What the policy said last, if the agent has met the end of a budget of tokens or turns.
    pub(crate) fn exhausted(&self) -> Option<String> {
        let state = self.state();
        let open = state.conversations.get(state.last.filter(|_| state.exhausted)?)?;
        let said = open.conversation.iter().flat_map(Conversation::history);
        said.filter(|message| message.role == Role::Assistant).last().map(Message::text)
    }

    fn state(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn draw(
        &self,
        numbers: &[usize],
        options: &TurnOptions,
    ) -> Result<Vec<Result<AgentTurn, PolicyRefusal>>, EpisodeError<P::Error>> {
        let requests: Vec<_> = numbers.iter().map(|number| self.request(*number, options)).collect();
        let is_exhausted = |request: &Result<_, _>| matches!(request, Err(PolicyRefusal::Exhausted(_)));
        self.state().exhausted |= requests.iter().any(is_exhausted);
        self.progress.wait_for(WaitsFor::Policy);
        let accepted = requests.iter().flatten().cloned().collect();
        let pending = self.policy.generate(accepted).await.map_err(EpisodeError::Policy)?;
        let start = Instant::now();
        let timed = pending.into_iter().map(async |turn| Ok((turn.await?, start.elapsed().as_secs_f64())));
        let turns: Vec<(Turn, f64)> = try_join_all(timed).await.map_err(EpisodeError::Policy)?;
        self.progress.wait_for(WaitsFor::Agent);
        let mut turns = turns.into_iter();
        let mut answers = Vec::with_capacity(numbers.len());
        for (number, request) in numbers.iter().zip(requests) {
            answers.push(match request {
                Err(refusal) => Err(refusal),
                Ok(_) => match turns.next() {
                    Some((turn, seconds)) => self.append_turn(*number, turn, seconds)?,
                    None => Err(unknown(*number)),
                },
            });
        }
        Ok(answers)
    }

    /// The request for the next turn of a conversation.
    fn request(&self, number: usize, options: &TurnOptions) -> Result<TurnRequest, PolicyRefusal> {
        let (episode, text) = (&self.episode, self.policy.text());
        let mut state = self.state();
        let State { conversations, turns, last, .. } = &mut *state;
        let open = conversations.get_mut(number).ok_or_else(|| unknown(number))?;
        let most = episode.tools.limits.max_turns;
        if *turns >= most {
            open.finish_reason = FinishReason::MaxTurns;
            return Err(PolicyRefusal::Exhausted(format!("the sample has had its {most} turns (agent.max_turns)")));
        }
        if open.pending.is_empty() {
            return Err(invalid("there is no message to answer; append one"));
        }
        let refused = |error: TextError| invalid(&error.to_string());
        let left = match &mut open.conversation {
            None => {
                let ids = text.prompt_ids_with(&open.pending, &RenderOptions::prompt(&open.functions));
                let ids = ids.map_err(refused)?;
                let (long, most) = (ids.len(), episode.max_prompt_tokens);
                if long > most {
                    let what = format!("the conversation begins with {long} tokens, and at most {most} fit");
                    return Err(PolicyRefusal::Exhausted(what));
                }
                let prompt = std::mem::take(&mut open.pending);
                open.prompt_tokens = long;
                open.conversation = Some(Conversation::new(prompt, ids, open.functions.clone()));
                episode.max_tokens
            }
            Some(conversation) => {
                let (ids, after) = match episode.tools.limits.history {
                    History::Exact => {
                        let ids = conversation.continuation(&open.pending, text).map_err(refused)?;
                        let after = conversation.tokens() + ids.len();
                        (ids, after)
                    }
                    History::Split => {
                        let all: Vec<Message> = conversation.history().chain(&open.pending).cloned().collect();
                        let ids = text.prompt_ids_with(&all, &RenderOptions::prompt(&open.functions));
                        let ids = ids.map_err(refused)?;
                        let after = ids.len();
                        (ids, after)
                    }
                };
                let left = episode.max_tokens.saturating_sub(after.saturating_sub(open.prompt_tokens));
                if left == 0 {
                    open.finish_reason = FinishReason::Length;
                    let most = episode.max_tokens;
                    let what = format!("the conversation has used up its {most} tokens (rollout.max_tokens)");
                    return Err(PolicyRefusal::Exhausted(what));
                }
                let pending = std::mem::take(&mut open.pending);
                match episode.tools.limits.history {
                    History::Exact => conversation.append(pending, ids),
                    History::Split => open.split(&episode.task.prompt, pending, ids),
                }
                left
            }
        };
        let prompt = open.conversation.as_ref().map(Conversation::ids).unwrap_or_default();
        let seed = derive(episode.seed, *turns as u64, number as u64, Purpose::Turn);
        *turns += 1;
        *last = Some(number);
        let max_tokens = options.max_tokens.map_or(left, |most| left.min(most.get()));
        let conversation = open.key.clone();
        Ok(TurnRequest { prompt, max_tokens, stop: options.stop.clone(), seed, conversation })
    }

    fn append_turn(
        &self,
        number: usize,
        turn: Turn,
        seconds: f64,
    ) -> Result<Result<AgentTurn, PolicyRefusal>, TextError> {
        let mut state = self.state();
        let number_of_turn = state.turns.saturating_sub(1) as u32;
        let Some(Open { conversation: Some(conversation), finish_reason, report, .. }) =
            state.conversations.get_mut(number)
        else {
            return Ok(Err(unknown(number)));
        };
        report.generating.push(seconds);
        *finish_reason = turn.finish_reason;
        let (tokens, finish_reason) = (turn.ids.len(), turn.finish_reason);
        let reply = conversation.append_turn(turn, self.policy.text())?;
        let malformed_calls: Vec<String> = reply.malformed.iter().map(|call| call.why.clone()).collect();
        let ending = ToolEnding::CalledWrongly;
        let unread = malformed_calls.iter().map(|_| ToolUse { name: None, ending, turn: number_of_turn, seconds: 0.0 });
        report.tool_uses.extend(unread);
        Ok(Ok(AgentTurn { message: reply.into_message(), malformed_calls, finish_reason, tokens }))
    }

    async fn answer(&self, calls: &[ToolCall]) -> Result<Vec<Message>, EpisodeError<P::Error>> {
        let episode = &self.episode;
        self.progress.wait_for(WaitsFor::Tools(calls.iter().map(|call| call.name.clone()).collect()));
        let turn = self.state().turns.saturating_sub(1) as u32;
        let asked = Instant::now();
        let limits = &episode.tools.limits.tools;
        let answered = self.sessions.lock().await.answer(calls, &[], turn, limits, self.policy.text()).await;
        self.progress.wait_for(WaitsFor::Agent);
        let (messages, uses) = answered?;
        let mut state = self.state();
        let State { conversations, last, .. } = &mut *state;
        if let Some(open) = last.and_then(|last| conversations.get_mut(last)) {
            open.report.in_tools.push(asked.elapsed().as_secs_f64());
            open.report.tool_uses.extend(uses);
        }
        Ok(messages)
    }

    /// Ends the episode where it cannot continue.
    fn or_over<T>(&self, result: Result<T, EpisodeError<P::Error>>) -> Result<T, EpisodeOver> {
        result.map_err(|error| {
            self.state().error.get_or_insert(error);
            EpisodeOver
        })
    }
}

impl<P: Policy> EpisodeLink for AgentLink<P> {
    fn open(
        &self,
        speaker: String,
        messages: Vec<Message>,
        functions: Vec<ToolFunction>,
    ) -> Result<usize, PolicyRefusal> {
        check_text(&messages)?;
        let functions: Arc<[Value]> = functions.iter().map(ToolFunction::definition).collect();
        let (finish_reason, report) = (FinishReason::Stop, RolloutReport::default());
        let (pending, conversation, key) = (messages, None, self.policy.conversation());
        let (prompt_tokens, ended) = (0, Vec::new());
        let open = Open { speaker, functions, pending, conversation, prompt_tokens, ended, key, finish_reason, report };
        Ok(self.state().add(open))
    }

    fn append(&self, conversation: usize, messages: Vec<Message>) -> Result<(), PolicyRefusal> {
        check_text(&messages)?;
        let mut state = self.state();
        let open = state.conversations.get_mut(conversation).ok_or_else(|| unknown(conversation))?;
        open.pending.extend(messages);
        Ok(())
    }

    fn fork(&self, conversation: usize, speaker: String) -> Result<usize, PolicyRefusal> {
        let mut state = self.state();
        let open = state.conversations.get(conversation).ok_or_else(|| unknown(conversation))?;
        let fork = Open {
            speaker,
            functions: open.functions.clone(),
            pending: open.pending.clone(),
            conversation: open.conversation.as_ref().map(Conversation::fork),
            prompt_tokens: open.prompt_tokens,
            ended: Vec::new(),
            key: self.policy.conversation(),
            finish_reason: FinishReason::Stop,
            report: RolloutReport::default(),
        };
        Ok(state.add(fork))
    }

    fn size(&self, conversation: usize) -> usize {
        let state = self.state();
        let Some(open) = state.conversations.get(conversation) else { return 0 };
        let history = open.conversation.iter().flat_map(Conversation::history);
        history.chain(&open.pending).map(|message| message.text().len()).sum()
    }

    fn tokens_left(&self, conversation: usize) -> usize {
        let state = self.state();
        let grown = state.conversations.get(conversation).map_or(0, Open::grown);
        self.episode.max_tokens.saturating_sub(grown)
    }

    fn generate(
        &self,
        conversations: Vec<usize>,
        options: TurnOptions,
    ) -> BoxFuture<'_, Result<Vec<Result<AgentTurn, PolicyRefusal>>, EpisodeOver>> {
        async move { self.or_over(self.draw(&conversations, &options).await) }.boxed()
    }

    fn specs(&self) -> Vec<ToolSpec> {
        self.episode.tools.set.functions().map(|function| function.spec().clone()).collect()
    }

    fn call(&self, calls: Vec<ToolCall>) -> BoxFuture<'_, Result<Vec<Message>, EpisodeOver>> {
        async move { self.or_over(self.answer(&calls).await) }.boxed()
    }
}

impl<P: Policy> State<P> {
    fn add(&mut self, open: Open) -> usize {
        self.conversations.push(open);
        self.conversations.len() - 1
    }
}

impl Open {
    /// Tokens after the prompt of the first turn.
    fn grown(&self) -> usize {
        self.conversation.as_ref().map_or(0, |conversation| conversation.tokens().saturating_sub(self.prompt_tokens))
    }

    /// Begins a trajectory whose prompt is all of the conversation and `pending`, with the tokens `ids`.
    fn split(&mut self, prompt: &[Message], pending: Vec<Message>, ids: Vec<u32>) {
        let Some(before) = self.conversation.take() else { return };
        let all = before.history().cloned().chain(pending).collect();
        self.conversation = Some(Conversation::new(all, ids, self.functions.clone()));
        let report = std::mem::take(&mut self.report);
        self.ended.extend(trajectory(before, &self.speaker, prompt, FinishReason::Stop, report));
    }

    /// The trajectories in which the policy wrote.
    fn end(self, prompt: &[Message]) -> Vec<Trajectory> {
        let Self { speaker, conversation, mut ended, finish_reason, report, .. } = self;
        let last = conversation.and_then(|last| trajectory(last, &speaker, prompt, finish_reason, report));
        ended.extend(last);
        ended
    }
}

/// The trajectory of a conversation, if the policy wrote in it.
fn trajectory(
    conversation: Conversation,
    speaker: &str,
    prompt: &[Message],
    finish_reason: FinishReason,
    report: RolloutReport,
) -> Option<Trajectory> {
    let is_own = !speaker.is_empty() || !conversation.begins_with(prompt);
    let speaker = is_own.then(|| speaker.to_owned());
    (conversation.turns() > 0).then(|| conversation.end(speaker, finish_reason, report))
}

/// The policy reads text only.
fn check_text(messages: &[Message]) -> Result<(), PolicyRefusal> {
    let is_text = |part: &ContentPart| matches!(part, ContentPart::Text(_));
    match messages.iter().flat_map(|message| &message.content).all(is_text) {
        true => Ok(()),
        false => Err(invalid("the policy reads text only, and a message has an attachment")),
    }
}

fn invalid(what: &str) -> PolicyRefusal {
    PolicyRefusal::InvalidRequest(what.to_owned())
}

fn unknown(conversation: usize) -> PolicyRefusal {
    invalid(&format!("there is no conversation {conversation}"))
}
