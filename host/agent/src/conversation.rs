//! A conversation under way: its messages and their tokens. The text of the policy is never tokenised again.

use crate::policy::Turn;
use gavel_data::{
    CallTrace, FinishReason, Message, Opening, Role, RolloutReport, Tokens, Trace, Trajectory, TurnTrace,
};
use gavel_text::{RenderOptions, Reply, TextError, TextModel};
use serde_json::{Map, Value};
use std::sync::Arc;

/// How the prompts of a conversation are rendered.
#[derive(Debug, Clone, Default)]
pub struct PromptOptions {
    /// The functions that the prompt offers.
    pub functions: Arc<[Value]>,
    /// The variables that the task's row sets.
    pub template_kwargs: Arc<Map<String, Value>>,
}

impl PromptOptions {
    /// The options that ask for the assistant's next message.
    pub fn asking(&self) -> RenderOptions<'_> {
        let variables = self.template_kwargs.as_ref().clone();
        RenderOptions { variables, ..RenderOptions::prompt(&self.functions) }
    }
}

/// A conversation under way.
#[derive(Clone)]
pub struct Conversation {
    /// The messages before the first token that counts as a response.
    prompt: Vec<Message>,
    options: PromptOptions,
    messages: Vec<Message>,
    /// The numbers of the assistant's messages that the policy did not write.
    by_agent: Vec<u32>,
    tokens: Tokens,
    turn_traces: Vec<TurnTrace>,
    /// For each of these turns, where it ends.
    turn_ends: Vec<TurnEnd>,
    /// The number of tokens at the end that are the policy's last turn.
    last_turn: usize,
    /// Calls so far, including those that could not be read.
    calls: usize,
}

/// Where a turn of the policy ends.
#[derive(Clone, Copy)]
struct TurnEnd {
    /// The tokens after the prompt up to there.
    tokens: usize,
    /// The calls up to there.
    calls: usize,
}

impl Conversation {
    /// A conversation that begins with the messages of a prompt, whose tokens are `ids`.
    pub fn new(prompt: Vec<Message>, ids: Vec<u32>, options: PromptOptions) -> Self {
        let tokens = Tokens { prompt: ids, ..Tokens::default() };
        Self {
            prompt,
            options,
            messages: Vec::new(),
            by_agent: Vec::new(),
            tokens,
            turn_traces: Vec::new(),
            turn_ends: Vec::new(),
            last_turn: 0,
            calls: 0,
        }
    }

    /// The same, whose calls are numbered from `calls` on: its prompt has earlier ones.
    pub fn with_calls_before(self, calls: usize) -> Self {
        Self { calls, ..self }
    }

    /// A conversation whose prompt is the history of this one: its trajectory begins where the two part.
    pub fn fork(&self) -> Self {
        Self {
            prompt: [&self.prompt[..], &self.messages].concat(),
            messages: Vec::new(),
            // They are messages of the prompt now.
            by_agent: Vec::new(),
            tokens: Tokens { prompt: self.ids(), ..Tokens::default() },
            turn_traces: Vec::new(),
            turn_ends: Vec::new(),
            options: self.options.clone(),
            last_turn: self.last_turn,
            calls: self.calls,
        }
    }

    /// A conversation whose prompt is the history of this one up to a turn of the policy, from 0; `None` if there is no
    /// such turn after the prompt.
    pub fn fork_after(&self, turn: usize) -> Option<Self> {
        let (trace, end) = (self.turn_traces.get(turn)?, self.turn_ends.get(turn)?);
        let messages = self.messages.get(..trace.message as usize + 1)?;
        let response = self.tokens.response.get(..end.tokens)?;
        let ids = [&self.tokens.prompt[..], response].concat();
        let fork = Self::new([&self.prompt[..], messages].concat(), ids, self.options.clone());
        Some(Self { last_turn: trace.tokens as usize, calls: end.calls, ..fork })
    }

    /// Turns that the policy wrote after the prompt.
    pub fn drawn_turns(&self) -> usize {
        self.turn_traces.len()
    }

    /// Calls so far, including those that could not be read.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// How its prompts are rendered.
    pub fn options(&self) -> &PromptOptions {
        &self.options
    }

    /// Whether it began with these messages and nothing else.
    pub fn begins_with(&self, prompt: &[Message]) -> bool {
        self.prompt == prompt
    }

    /// All tokens so far.
    pub fn ids(&self) -> Vec<u32> {
        [&self.tokens.prompt[..], &self.tokens.response].concat()
    }

    /// The number of all tokens so far.
    pub fn tokens(&self) -> usize {
        self.tokens.prompt.len() + self.tokens.response.len()
    }

    /// Turns of the policy so far.
    pub fn turns(&self) -> usize {
        self.messages.iter().filter(|message| message.role == Role::Assistant).count()
    }

    /// All messages. The prompt's messages come first.
    pub fn history(&self) -> impl Iterator<Item = &Message> {
        self.prompt.iter().chain(&self.messages)
    }

    /// Appends a turn of the policy as a message, and gives the calls in it.
    ///
    /// # Errors
    /// Its tokens cannot be decoded.
    pub fn append_turn(&mut self, turn: Turn, text: &TextModel) -> Result<Reply, TextError> {
        let written = text.tokenizer.decode(&turn.ids)?;
        let reply = text.reply(&turn.ids, written, &self.options.functions, self.calls)?;
        self.calls += reply.tool_calls.len() + reply.malformed.len();
        let (message, written) = (self.messages.len() as u32, turn.ids.len() as u32);
        self.turn_traces.push(TurnTrace { message, tokens: written, finish_reason: turn.finish_reason });
        self.messages.push(reply.clone().into_message());
        let tokens = &mut self.tokens;
        self.last_turn = turn.ids.len();
        if !turn.masks.is_empty() {
            // Nothing was drawn for the tokens of others, so that nothing was cut.
            tokens.masks.pad(tokens.response.len());
            tokens.masks.append(&turn.masks);
        }
        tokens.loss_mask.extend(turn.ids.iter().map(|_| true));
        tokens.response.extend(turn.ids);
        tokens.logprobs.extend(turn.logprobs);
        tokens.versions.extend(turn.versions);
        self.turn_ends.push(TurnEnd { tokens: tokens.response.len(), calls: self.calls });
        Ok(reply)
    }

    /// The tokens between the last turn of the policy and its next one, with `new` messages in between.
    ///
    /// # Errors
    /// The chat template cannot continue the conversation.
    pub fn continuation(&self, new: &[Message], text: &TextModel) -> Result<Vec<u32>, TextError> {
        let mut history: Vec<Message> = self.history().cloned().collect();
        let options = self.options.asking();
        let Some(last) = history.pop() else { return text.prompt_ids_with(new, &options) };
        let ids = self.ids();
        text.continuation_ids(&history, &last, &ids[ids.len() - self.last_turn..], new, &options)
    }

    /// Appends messages of others, whose tokens are `ids`.
    pub fn append(&mut self, new: Vec<Message>, ids: Vec<u32>) {
        let numbered = (self.messages.len() as u32..).zip(&new);
        self.by_agent.extend(numbered.filter(|(_, it)| it.role == Role::Assistant).map(|(number, _)| number));
        self.messages.extend(new);
        let tokens = &mut self.tokens;
        let version = tokens.versions.last().copied().unwrap_or_default();
        tokens.loss_mask.extend(ids.iter().map(|_| false));
        tokens.logprobs.extend(ids.iter().map(|_| 0.0));
        tokens.versions.extend(ids.iter().map(|_| version));
        tokens.response.extend(ids);
        self.last_turn = 0;
    }

    /// The trajectory of the whole conversation. `speaker` is set if it did not begin with the task's prompt.
    pub fn end(self, speaker: Option<String>, finish_reason: FinishReason, report: RolloutReport) -> Trajectory {
        let opening = speaker.map(|speaker| Opening { speaker, messages: self.prompt });
        let trace = Trace {
            tools: self.options.functions,
            turns: self.turn_traces,
            calls: report.tool_uses.iter().map(CallTrace::from).collect(),
        };
        let Self { messages, by_agent, tokens, .. } = self;
        Trajectory { opening, messages, by_agent, tokens: Some(tokens.into()), finish_reason, trace, report }
    }
}
