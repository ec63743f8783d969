//! The outcome of one call of a judge. It is never just a number: a verifier that
//! crashed did not score 0.

use crate::json::Columns;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A named number beside the score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// The name.
    pub name: String,
    /// The value, finite.
    pub value: f64,
}

/// The largest absolute value of a reward or of credit. It is larger than any useful reward, and far enough below the
/// maximum of a 32-bit float (3.4e38) that training can add, subtract and scale such values.
pub const MOST_REWARD: f64 = 1e30;

/// Credit for a part of a sample: the bytes `start..end` of the text of one
/// message of one trajectory. The bytes exist, and both ends are between
/// characters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Credit {
    /// The number of the trajectory in the sample.
    pub trajectory: u32,
    /// The number of the message among those after the prompt.
    pub message: u32,
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
    /// The credit, from -[`MOST_REWARD`] to [`MOST_REWARD`].
    pub value: f64,
}

/// A plugin's score of a sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Score {
    /// The score, finite.
    pub value: f64,
    /// Named numbers beside it.
    pub metrics: Vec<Metric>,
    /// Credit for parts of the sample.
    pub credit: Vec<Credit>,
    /// Why, in the plugin's words.
    pub note: Option<String>,
    /// A JSON object of the plugin's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<Columns>>,
}

/// Who is at fault for a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The plugin trapped, or its answer broke the contract.
    Plugin,
    /// The plugin reported that it cannot judge the sample or its reference.
    Input,
    /// The host failed.
    Host,
}

impl Blame {
    /// The words that a reason begins with.
    pub(crate) fn introduction(self) -> &'static str {
        match self {
            Self::Plugin => "",
            Self::Input => "invalid input: ",
            Self::Host => "the host failed: ",
        }
    }
}

/// Who caused a failed call or an abstention. To find out, the plugin is called again for the same task with another
/// response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CausedBy {
    /// The response: with another one, the same plugin ends well on the same task; after an abstention, it scores.
    Response,
    /// The plugin, or the reference: it fails or abstains with other responses too.
    Plugin,
    /// Unknown: the plugin judges whole groups, or depends on something that may change between two calls.
    Unknown,
}

impl CausedBy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Response, Self::Plugin, Self::Unknown];

    /// The name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Plugin => "plugin",
            Self::Unknown => "unknown",
        }
    }
}

/// A limit that a call can exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// Wall-clock time.
    Deadline,
    /// Time on a processor.
    Cpu,
    /// Linear memories, tables, and memory of the host for the call.
    Memory,
    /// The stack.
    Stack,
    /// Instructions, where they are metered.
    Fuel,
    /// Bytes that the plugin passes to the host at once.
    Output,
    /// Bytes that the plugin prints.
    Log,
    /// Requests to models and servers, and jobs of programs.
    Requests,
    /// Resources of the host that the plugin holds open.
    Handles,
}

impl Budget {
    /// All of them.
    pub const ALL: [Budget; 9] = [
        Self::Deadline,
        Self::Cpu,
        Self::Memory,
        Self::Stack,
        Self::Fuel,
        Self::Output,
        Self::Log,
        Self::Requests,
        Self::Handles,
    ];

    /// Whether it limits what the call computes, and not wall-clock time, output or requests.
    pub fn is_computation(self) -> bool {
        match self {
            Self::Cpu | Self::Memory | Self::Stack | Self::Fuel => true,
            Self::Deadline | Self::Output | Self::Log | Self::Requests | Self::Handles => false,
        }
    }

    /// The name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Budget::Deadline => "deadline",
            Budget::Cpu => "cpu",
            Budget::Memory => "memory",
            Budget::Stack => "stack",
            Budget::Fuel => "fuel",
            Budget::Output => "output",
            Budget::Log => "log",
            Budget::Requests => "requests",
            Budget::Handles => "handles",
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The outcome of one call of one plugin.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The plugin gave a score. Only a score can reach an advantage.
    Scored(Score),
    /// The plugin declined, for this reason.
    Abstained(String),
    /// The call failed.
    Fault {
        /// Who is at fault.
        whose: Blame,
        /// What happened.
        what: String,
    },
    /// The call exceeded a limit.
    OutOfBudget {
        /// Which limit.
        which: Budget,
        /// The limit and the use.
        what: String,
    },
    /// Something that the plugin depends on did not answer; a retry can help.
    Unavailable(String),
}

/// An [`Outcome`] without its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// A plugin gave a score.
    Scored,
    /// The plugin did not want to judge.
    Abstained,
    /// The plugin failed.
    Fault,
    /// The plugin exceeded a limit.
    OutOfBudget,
    /// Something that the plugin depends on did not answer.
    Unavailable,
}

impl OutcomeKind {
    /// All kinds, in the order in which reports list them.
    pub const ALL: [OutcomeKind; 5] =
        [Self::Scored, Self::Abstained, Self::Fault, Self::OutOfBudget, Self::Unavailable];

    /// The name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scored => "scored",
            Self::Abstained => "abstained",
            Self::Fault => "fault",
            Self::OutOfBudget => "out-of-budget",
            Self::Unavailable => "unavailable",
        }
    }
}

impl Outcome {
    /// The kind.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Outcome::Scored(_) => OutcomeKind::Scored,
            Outcome::Abstained(_) => OutcomeKind::Abstained,
            Outcome::Fault { .. } => OutcomeKind::Fault,
            Outcome::OutOfBudget { .. } => OutcomeKind::OutOfBudget,
            Outcome::Unavailable(_) => OutcomeKind::Unavailable,
        }
    }

    /// The score's value, if there is one.
    pub fn score(&self) -> Option<f64> {
        match self {
            Outcome::Scored(score) => Some(score.value),
            _ => None,
        }
    }

    /// The reason of the outcome, in words; of a score, its note.
    pub fn reason(&self) -> Option<String> {
        match self {
            Outcome::Scored(score) => score.note.clone(),
            Outcome::Abstained(reason) => Some(reason.clone()),
            Outcome::Fault { whose, what } => Some(format!("{}{what}", whose.introduction())),
            Outcome::OutOfBudget { which, what } => Some(format!("{which}: {what}")),
            Outcome::Unavailable(what) => Some(what.clone()),
        }
    }
}
