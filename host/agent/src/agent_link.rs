//! The conversations of an agent, and its tools: the host's side of its imports `policy` and `tools`.

use crate::agent_episode::AgentEpisode;
use crate::conversation::{Conversation, PromptOptions};
use crate::episode::{EpisodeError, History};
use crate::open_conversation::OpenConversation;
use crate::policy::{Policy, Turn, TurnRequest};
use crate::progress::EpisodeProgress;
use crate::tool_set::{Answers, Sessions, identified_answer};
use crate::waits_for::WaitsFor;
use futures::FutureExt;
use futures::future::{BoxFuture, try_join_all};
use gavel_data::seed::{Purpose, derive};
use gavel_data::{
    CallTrace, ContentPart, FinishReason, Message, Role, RolloutFault, RolloutReport, TaskError, ToolCall, ToolEnding,
    ToolStates, ToolUse, Trajectory,
};
use gavel_plugin::{AgentTurn, EpisodeLink, EpisodeOver, PolicyRefusal, ToolFunction, ToolSpec, TurnOptions};
use gavel_text::{TextError, check_stop_texts};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The conversations and the tools of an episode, which its agent calls.
pub(crate) struct AgentLink<P: Policy> {
    episode: AgentEpisode,
    policy: Arc<P>,
    progress: EpisodeProgress,
    sessions: tokio::sync::Mutex<Sessions>,
    /// The variables of the chat template that the task's row sets.
    template_kwargs: Arc<Map<String, Value>>,
    state: Mutex<State<P>>,
}

struct State<P: Policy> {
    conversations: Vec<OpenConversation>,
    /// Turns of the policy in all of them.
    turns: usize,
    /// The conversation in which the policy wrote last; calls of tools count towards it.
    last: Option<usize>,
    /// The calls of tools before the first turn of the policy.
    before: RolloutReport,
    /// The calls that are under way.
    calling: Option<Calling>,
    /// Why the sample cannot continue, since a tool failed.
    tool_fault: Option<RolloutFault>,
    /// Whether a turn was refused because a budget of the sample was used up.
    exhausted: bool,
    /// Why the episode cannot continue.
    error: Option<EpisodeError<P::Error>>,
}

/// Calls of tools that have no answer yet.
struct Calling {
    functions: Vec<String>,
    turn: u32,
    since: Instant,
}

impl<P: Policy> AgentLink<P> {
    /// # Errors
    /// The task's row sets variables of the chat template that are none.
    pub(crate) fn new(
        episode: AgentEpisode,
        policy: Arc<P>,
        sessions: Sessions,
        progress: EpisodeProgress,
    ) -> Result<Self, TaskError> {
        let template_kwargs = Arc::new(episode.task.reference.template_kwargs()?);
        let (conversations, before) = (Vec::new(), RolloutReport::default());
        let state = State {
            conversations,
            turns: 0,
            last: None,
            before,
            calling: None,
            tool_fault: None,
            exhausted: false,
            error: None,
        };
        let (sessions, state) = (tokio::sync::Mutex::new(sessions), Mutex::new(state));
        Ok(Self { episode, policy, progress, sessions, template_kwargs, state })
    }

    /// The trajectories: the conversations in which the policy wrote or, if there are none, the agent's answer.
    ///
    /// # Errors
    /// The episode could not continue.
    pub(crate) fn end(&self, said: Option<&str>) -> Result<Vec<Trajectory>, EpisodeError<P::Error>> {
        let mut state = self.state();
        if let Some(error) = state.error.take() {
            return Err(error);
        }
        // The agent ended before these calls did.
        if let Some(Calling { functions, turn, since }) = state.calling.take() {
            let (ending, seconds) = (ToolEnding::OutOfBudget, since.elapsed().as_secs_f64());
            let known = functions.into_iter().filter(|name| self.episode.tools.set.has(name));
            let uses = known.map(|name| ToolUse { name: Some(name), ending, turn, seconds }).collect();
            state.count_calls(seconds, uses);
        }
        let prompt = &self.episode.task.prompt;
        let conversations = std::mem::take(&mut state.conversations).into_iter();
        let mut trajectories: Vec<Trajectory> = conversations.flat_map(|open| open.end(prompt)).collect();
        if trajectories.is_empty() {
            trajectories
                .push(Trajectory::of(said.map(|said| Message::new(Role::Assistant, said)).into_iter().collect()));
        }
        if let Some(first) = trajectories.first_mut() {
            let RolloutReport { in_tools, tool_uses, .. } = std::mem::take(&mut state.before);
            first.report.in_tools.splice(0..0, in_tools);
            first.trace.calls.splice(0..0, tool_uses.iter().map(CallTrace::from));
            first.report.tool_uses.splice(0..0, tool_uses);
        }
        Ok(trajectories)
    }

    /// Ends the sessions of the tools, and gives the states in which they ended.
    ///
    /// # Errors
    /// Why the sample is no good, if a tool failed.
    pub(crate) async fn finish_tools(&self) -> Result<ToolStates, RolloutFault> {
        self.sessions.lock().await.finish().await
    }

    /// Why the sample could not continue, if a tool failed.
    pub(crate) fn tool_fault(&self) -> Option<RolloutFault> {
        self.state().tool_fault.clone()
    }

    /// The last text of the policy, if the agent has used up a budget of tokens or turns.
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
        // A turn may be written before the policy confirms that it was asked for.
        let start = Instant::now();
        let pending = self.policy.generate(accepted).await.map_err(EpisodeError::Policy)?;
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
        check_stop_texts(&options.stop).map_err(|error| invalid(&error.to_string()))?;
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
        let refused = |error: TextError| match error {
            TextError::TooManyBytes { .. } => PolicyRefusal::Exhausted(error.to_string()),
            error => invalid(&error.to_string()),
        };
        let left = match &mut open.conversation {
            None => {
                let most = episode.max_prompt_tokens;
                let ids = text.prompt_ids_within(&open.pending, &open.options.asking(), most).map_err(refused)?;
                let long = ids.len();
                if long > most {
                    let what = format!("the conversation begins with {long} tokens, and at most {most} fit");
                    return Err(PolicyRefusal::Exhausted(what));
                }
                let prompt = std::mem::take(&mut open.pending);
                open.prompt_tokens = long;
                open.conversation = Some(Conversation::new(prompt, ids, open.options.clone()));
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
                        let ids = text.prompt_ids_with(&all, &open.options.asking());
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
        let Some(OpenConversation { conversation: Some(conversation), finish_reason, report, .. }) =
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

    /// The answers to these calls; nothing if the sample cannot continue, since a tool failed.
    async fn answer(&self, calls: &[ToolCall]) -> Result<Option<Vec<Message>>, EpisodeError<P::Error>> {
        let episode = &self.episode;
        self.progress.wait_for(WaitsFor::Tools(calls.iter().map(|call| call.name.clone()).collect()));
        let turn = {
            let mut state = self.state();
            let turn = state.turns.saturating_sub(1) as u32;
            let functions = calls.iter().map(|call| call.name.clone()).collect();
            state.calling = Some(Calling { functions, turn, since: Instant::now() });
            turn
        };
        let limits = &episode.tools.limits.tools;
        let answered = self.sessions.lock().await.answer(calls, &[], turn, limits, self.policy.text()).await;
        self.progress.wait_for(WaitsFor::Agent);
        let mut state = self.state();
        let seconds = state.calling.take().map_or(0.0, |calling| calling.since.elapsed().as_secs_f64());
        let Answers { messages, uses, fault } = answered?;
        state.count_calls(seconds, uses);
        let is_over = fault.is_some();
        state.tool_fault = state.tool_fault.take().or(fault);
        Ok((!is_over).then_some(messages))
    }

    /// Ends the episode if it cannot continue.
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
        let functions = functions.iter().map(ToolFunction::definition).collect();
        let options = PromptOptions { functions, template_kwargs: self.template_kwargs.clone() };
        let (finish_reason, report) = (FinishReason::Stop, RolloutReport::default());
        let (pending, conversation, key) = (messages, None, self.policy.conversation());
        let (prompt_tokens, ended) = (0, Vec::new());
        let open = OpenConversation {
            speaker,
            options,
            pending,
            conversation,
            prompt_tokens,
            ended,
            key,
            finish_reason,
            report,
        };
        Ok(self.state().add(open))
    }

    fn append(&self, conversation: usize, messages: Vec<Message>) -> Result<(), PolicyRefusal> {
        check_text(&messages)?;
        let mut state = self.state();
        let turns = state.turns;
        let open = state.conversations.get_mut(conversation).ok_or_else(|| unknown(conversation))?;
        let numbered = messages.into_iter().enumerate().map(|(number, message)| match message.role {
            Role::Tool => identified_answer(message, turns, number),
            _ => message,
        });
        open.pending.extend(numbered);
        Ok(())
    }

    fn fork(&self, conversation: usize, speaker: String) -> Result<usize, PolicyRefusal> {
        let mut state = self.state();
        let open = state.conversations.get(conversation).ok_or_else(|| unknown(conversation))?;
        let fork = OpenConversation {
            speaker,
            options: open.options.clone(),
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
        let grown = state.conversations.get(conversation).map_or(0, OpenConversation::grown);
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
        async move { self.or_over(self.answer(&calls).await)?.ok_or(EpisodeOver) }.boxed()
    }
}

impl<P: Policy> State<P> {
    fn add(&mut self, open: OpenConversation) -> usize {
        self.conversations.push(open);
        self.conversations.len() - 1
    }

    /// Counts calls of tools that were made together.
    fn count_calls(&mut self, seconds: f64, uses: Vec<ToolUse>) {
        let open = self.last.and_then(|last| self.conversations.get_mut(last));
        let report = open.map_or(&mut self.before, |open| &mut open.report);
        report.in_tools.push(seconds);
        report.tool_uses.extend(uses);
    }
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
