//! The host's side of `tasks`, `policy` and `tools`: an agent's requests to its episode.

use super::messages::{call_bytes, lift_call, lower_finish_reason, message_bytes};
use crate::bindings::gavel::plugin::{policy, tasks, tools, types};
use crate::episode::{AgentTask, AgentTurn, EpisodeLink, PolicyRefusal, ToolFunction, ToolSpec, TurnOptions};
use crate::imports::resources::{ConversationRef, MediaRef, TaskRef};
use crate::imports::state::State;
use gavel_data::{Message, ToolCall};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;
use wasmtime::component::Resource;
use wasmtime::{Error, Result};

/// The memory that the host holds for a conversation beside its texts.
const CONVERSATION_BYTES: usize = 8 << 10;
/// The host holds a text three times: as it is, in the prompt, and as tokens.
const COPIES: usize = 3;
/// The most bytes of the options of a turn.
const OPTIONS_BYTES: usize = 64 << 10;

impl State {
    /// The episode, after it was charged for `bytes`.
    fn episode(&mut self, bytes: usize) -> Result<Arc<dyn EpisodeLink>> {
        let Some(episode) = &mut self.episode else {
            return Err(Error::msg("there is no episode: `policy` and `tools` are for `run` of an agent alone"));
        };
        episode.held.grow(bytes)?;
        Ok(episode.link.clone())
    }

    fn task(&self, task: &Resource<TaskRef>) -> Result<&AgentTask> {
        Ok(&self.table.get(task)?.0)
    }

    fn lift_messages(&mut self, messages: Vec<types::Message>) -> Result<Vec<Message>> {
        messages.into_iter().map(|message| self.lift_message(message)).collect()
    }
}

fn texts(messages: &[Message]) -> usize {
    COPIES * messages.iter().map(message_bytes).sum::<usize>()
}

fn spec_bytes(types::ToolSpec { name, description, parameters }: &types::ToolSpec) -> usize {
    ToolFunction::BYTES + name.len() + description.len() + parameters.len()
}

impl tasks::Host for State {}

impl tasks::HostTask for State {
    fn id(&mut self, task: Resource<TaskRef>) -> Result<String> {
        Ok(self.task(&task)?.attempt.task.id.clone())
    }

    fn data_source(&mut self, task: Resource<TaskRef>) -> Result<Option<String>> {
        Ok(self.task(&task)?.attempt.task.data_source.clone())
    }

    fn group_index(&mut self, task: Resource<TaskRef>) -> Result<u32> {
        Ok(self.task(&task)?.attempt.index)
    }

    fn prompt(&mut self, task: Resource<TaskRef>) -> Result<Vec<types::Message>> {
        let attempt = self.task(&task)?.attempt.clone();
        let media = |message, part| MediaRef { sample: attempt.clone(), trajectory: None, message, part };
        let prompt = attempt.task.prompt.iter().enumerate();
        prompt.map(|(index, message)| self.lower_message(message, |part| Some(media(index, part)))).collect()
    }

    fn settings(&mut self, task: Resource<TaskRef>) -> Result<String> {
        Ok(self.task(&task)?.settings.clone())
    }

    fn drop(&mut self, task: Resource<TaskRef>) -> Result<()> {
        self.table.delete(task)?;
        Ok(())
    }
}

impl policy::Host for State {
    async fn generate(
        &mut self,
        conversations: Vec<Resource<ConversationRef>>,
        options: String,
    ) -> Result<Vec<Result<Resource<AgentTurn>, policy::Error>>> {
        let numbers = conversations.iter().map(|conversation| Ok(self.table.get(conversation)?.0));
        let numbers = numbers.collect::<Result<Vec<usize>>>()?;
        self.meter().request(numbers.len())?;
        let episode = self.episode(0)?;
        let mut seen = BTreeSet::new();
        let options = parse(&options).and_then(|options| match numbers.iter().all(|number| seen.insert(*number)) {
            true => Ok(options),
            false => Err(policy::Error::InvalidRequest("a conversation has one turn at a time".into())),
        });
        let options = match options {
            Ok(options) => options,
            Err(error) => return Ok(numbers.iter().map(|_| Err(error.clone())).collect()),
        };
        let mut turns = Vec::with_capacity(numbers.len());
        for turn in episode.generate(numbers, options).await? {
            turns.push(match turn {
                Ok(turn) => {
                    self.episode(texts(std::slice::from_ref(&turn.message)))?;
                    Ok(self.table.push(turn)?)
                }
                Err(refusal) => Err(refusal.into()),
            });
        }
        Ok(turns)
    }
}

fn parse(options: &str) -> Result<TurnOptions, policy::Error> {
    match options.trim() {
        "" => Ok(TurnOptions::default()),
        long if long.len() > OPTIONS_BYTES => {
            let what = format!("`options` has {} bytes, more than the {OPTIONS_BYTES} allowed", long.len());
            Err(policy::Error::InvalidRequest(what))
        }
        options => serde_json::from_str(options)
            .map_err(|error| policy::Error::InvalidRequest(format!("`options` cannot be read: {error}"))),
    }
}

impl policy::HostConversation for State {
    fn open(
        &mut self,
        speaker: String,
        messages: Vec<types::Message>,
        functions: Vec<types::ToolSpec>,
    ) -> Result<Result<Resource<ConversationRef>, policy::Error>> {
        let messages = self.lift_messages(messages)?;
        let described: usize = functions.iter().map(spec_bytes).sum();
        let episode = self.episode(CONVERSATION_BYTES + texts(&messages) + COPIES * described)?;
        let described = functions.into_iter().map(|spec| (spec.name, spec.description, spec.parameters));
        match ToolFunction::all(described) {
            Ok(functions) => self.opened(episode.open(speaker, messages, functions)),
            Err(what) => Ok(Err(policy::Error::InvalidRequest(what))),
        }
    }

    fn append(
        &mut self,
        conversation: Resource<ConversationRef>,
        messages: Vec<types::Message>,
    ) -> Result<Result<(), policy::Error>> {
        let number = self.table.get(&conversation)?.0;
        let messages = self.lift_messages(messages)?;
        let episode = self.episode(texts(&messages))?;
        Ok(episode.append(number, messages).map_err(policy::Error::from))
    }

    fn fork(
        &mut self,
        conversation: Resource<ConversationRef>,
        speaker: String,
    ) -> Result<Result<Resource<ConversationRef>, policy::Error>> {
        let number = self.table.get(&conversation)?.0;
        let size = self.episode(0)?.size(number);
        let episode = self.episode(CONVERSATION_BYTES + COPIES * size)?;
        self.opened(episode.fork(number, speaker))
    }

    fn tokens_left(&mut self, conversation: Resource<ConversationRef>) -> Result<u32> {
        let number = self.table.get(&conversation)?.0;
        Ok(u32::try_from(self.episode(0)?.tokens_left(number)).unwrap_or(u32::MAX))
    }

    fn drop(&mut self, conversation: Resource<ConversationRef>) -> Result<()> {
        self.table.delete(conversation)?;
        Ok(())
    }
}

impl State {
    fn opened(
        &mut self,
        opened: Result<usize, PolicyRefusal>,
    ) -> Result<Result<Resource<ConversationRef>, policy::Error>> {
        Ok(match opened {
            Ok(number) => Ok(self.table.push(ConversationRef(number))?),
            Err(refusal) => Err(refusal.into()),
        })
    }
}

impl policy::HostTurn for State {
    fn message(&mut self, turn: Resource<AgentTurn>) -> Result<types::Message> {
        let message = self.table.get(&turn)?.message.clone();
        self.lower_message(&message, |_| None)
    }

    fn text(&mut self, turn: Resource<AgentTurn>) -> Result<String> {
        Ok(self.table.get(&turn)?.message.text())
    }

    fn malformed_calls(&mut self, turn: Resource<AgentTurn>) -> Result<Vec<String>> {
        Ok(self.table.get(&turn)?.malformed_calls.clone())
    }

    fn finish_reason(&mut self, turn: Resource<AgentTurn>) -> Result<types::FinishReason> {
        Ok(lower_finish_reason(self.table.get(&turn)?.finish_reason))
    }

    fn tokens(&mut self, turn: Resource<AgentTurn>) -> Result<u32> {
        Ok(self.table.get(&turn)?.tokens as u32)
    }

    fn drop(&mut self, turn: Resource<AgentTurn>) -> Result<()> {
        self.table.delete(turn)?;
        Ok(())
    }
}

impl tools::Host for State {
    fn specs(&mut self) -> Result<Vec<types::ToolSpec>> {
        let spec = |ToolSpec { name, description, parameters }| types::ToolSpec {
            name,
            description,
            parameters: parameters.to_string(),
        };
        Ok(self.episode(0)?.specs().into_iter().map(spec).collect())
    }

    async fn call(&mut self, calls: Vec<types::ToolCall>) -> Result<Vec<types::Message>> {
        self.meter().request(calls.len())?;
        let calls: Vec<ToolCall> = calls.into_iter().map(lift_call).collect();
        let episode = self.episode(0)?;
        // Held until the calls are answered.
        let _held = self.meter().hold(COPIES * calls.iter().map(call_bytes).sum::<usize>())?;
        let handle = self.episode.as_ref().map(|episode| episode.handle.clone());
        let handle = handle.ok_or_else(|| Error::msg("the episode is over"))?;
        // In its own task, so that a tool continues while its agent waits for a thread, and its processor time is not
        // measured as the agent's. Dropping the wait ends it.
        let mut tools = JoinSet::new();
        tools.spawn_on(async move { episode.call(calls).await }, &handle);
        let Some(Ok(answers)) = tools.join_next().await else {
            return Err(Error::msg("the host lost the calls of tools"));
        };
        let answers = answers?;
        answers.iter().map(|answer| self.lower_message(answer, |_| None)).collect()
    }
}

impl From<PolicyRefusal> for policy::Error {
    fn from(refusal: PolicyRefusal) -> Self {
        match refusal {
            PolicyRefusal::InvalidRequest(what) => Self::InvalidRequest(what),
            PolicyRefusal::Exhausted(what) => Self::Exhausted(what),
        }
    }
}
