//! One attempt at a task.

use crate::finish_reason::FinishReason;
use crate::json::{Columns, Json};
use crate::message::{Message, Role};
use crate::rollout_report::{RolloutFaultKind, RolloutReport};
use crate::task::Task;
use crate::tokens::{KnownTokens, Tokens};
use crate::trace::Trace;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a conversation of an agent began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Opening {
    /// The speaker that the policy played, if the agent has several; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub speaker: String,
    /// Its prompt.
    pub messages: Vec<Message>,
}

/// One conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    /// How it began; absent if it began with the task's prompt.
    pub opening: Option<Opening>,
    /// The messages after the prompt.
    pub messages: Vec<Message>,
    /// The numbers of the assistant's messages that an agent wrote, not the policy.
    pub by_agent: Vec<u32>,
    /// The tokens; absent if no policy of this run wrote the response.
    pub tokens: Option<KnownTokens>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// What plugins can see of it beside its messages.
    pub trace: Trace,
    /// How it came about.
    pub report: RolloutReport,
}

impl Trajectory {
    /// Messages that no policy of this run wrote.
    pub fn of(messages: Vec<Message>) -> Self {
        Self {
            opening: None,
            messages,
            by_agent: Vec::new(),
            tokens: None,
            finish_reason: FinishReason::Stop,
            trace: Trace::default(),
            report: RolloutReport::default(),
        }
    }

    /// The tokens, if each of them is known.
    pub fn tokens(&self) -> Option<&Tokens> {
        match self.tokens.as_ref()? {
            KnownTokens::Full(tokens) => Some(tokens),
            KnownTokens::Counts(_) => None,
        }
    }

    /// The kind of fault that stopped it, if one did.
    pub fn fault_kind(&self) -> Option<RolloutFaultKind> {
        let fault = self.report.error.as_ref()?;
        Some(match self.finish_reason {
            FinishReason::Timeout => RolloutFaultKind::Timeout,
            _ if fault.budget.is_some() => RolloutFaultKind::OutOfBudget,
            _ if fault.retryable => RolloutFaultKind::Unavailable,
            _ => RolloutFaultKind::Failed,
        })
    }

    /// The text of the last message of the assistant.
    pub fn response(&self) -> String {
        self.messages
            .iter()
            .rev()
            .find(|message| message.role == Role::Assistant)
            .map(Message::text)
            .unwrap_or_default()
    }

    /// The messages that the policy wrote, with their numbers.
    pub fn replies(&self) -> impl Iterator<Item = (u32, &Message)> {
        (0..)
            .zip(&self.messages)
            .filter(|(number, message)| message.role == Role::Assistant && !self.by_agent.contains(number))
    }

    /// The number of messages with this role.
    pub fn turns(&self, role: Role) -> u32 {
        self.messages.iter().filter(|message| message.role == role).count() as u32
    }
}

/// One attempt at a task: one trajectory, or several where an agent opened
/// several conversations.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The task.
    pub task: Arc<Task>,
    /// The number of this sample in its group, from 0.
    pub index: u32,
    /// The conversations.
    pub trajectories: Vec<Trajectory>,
    /// The response that an agent gave; absent if the sample has the response of its first conversation.
    pub answer: Option<String>,
    /// The JSON object that an agent returned beside its answer.
    pub extra: Option<Columns>,
    /// The states in which its tools ended, by their names in the run.
    pub states: ToolStates,
}

/// The states in which tools ended, by their names in the run.
pub type ToolStates = BTreeMap<String, Json>;

impl Sample {
    /// An attempt that has the response of its first conversation.
    pub fn new(task: Arc<Task>, index: u32, trajectories: Vec<Trajectory>) -> Self {
        Self { task, index, trajectories, answer: None, extra: None, states: ToolStates::new() }
    }

    /// The response: the agent's answer, or else the response of the first trajectory.
    pub fn response(&self) -> String {
        if let Some(answer) = &self.answer {
            return answer.clone();
        }
        self.trajectories.first().map(Trajectory::response).unwrap_or_default()
    }
}
