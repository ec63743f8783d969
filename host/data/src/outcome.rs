//! What comes of one call of a judge. It is never just a number: a verifier that
//! crashed has not said 0.

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

/// Rewards and credit are at most this large, above and below 0: more than
/// anybody needs, and so far below what a 32-bit number holds (3.4e38) that
/// training can add, subtract and scale them.
pub const MOST_REWARD: f64 = 1e30;

/// Credit for a part of a sample: the bytes `start..end` of the text of one
/// message of one trajectory. They are there, and cut no character.
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
    /// The credit, at most [`MOST_REWARD`] above or below 0.
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
}

/// Whose fault a failed call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The plugin trapped, or gave an answer that it must not give.
    Plugin,
    /// The plugin says that the sample or its reference is not for it.
    Input,
    /// The host could not do its part.
    Host,
}

impl Blame {
    /// What a reason begins with.
    pub(crate) fn introduction(self) -> &'static str {
        match self {
            Self::Plugin => "",
            Self::Input => "invalid input: ",
            Self::Host => "the host failed: ",
        }
    }
}

/// Who caused that a call failed: the plugin and the task are tried with another response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CausedBy {
    /// The response: with another one, the same plugin ends well on the same task.
    Response,
    /// The plugin, or the reference: it fails with other responses too.
    Plugin,
    /// Nobody knows: the plugin judges whole groups, or reaches what may change between two calls.
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
    /// Linear memories, tables and what the host holds for the call.
    Memory,
    /// The stack.
    Stack,
    /// Instructions, where they are metered.
    Fuel,
    /// What the plugin may hand to the host at once.
    Output,
    /// What the plugin may print.
    Log,
    /// Requests to models and servers, and jobs of programs.
    Requests,
    /// Resources of the host that the plugin may hold open.
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

    /// Whether it is a limit of what the call itself computes: neither of the wall clock, nor of what it says or asks.
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

/// What came of one call of one plugin.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The plugin gave a score. Nothing else reaches an advantage.
    Scored(Score),
    /// The plugin declined, for this reason.
    Abstained(String),
    /// The call failed.
    Fault {
        /// Whose fault it is.
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
    /// Something that the plugin needs did not answer; a retry can help.
    Unavailable(String),
}

/// An [`Outcome`] without its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeKind {
    /// See [`Outcome::Scored`].
    Scored,
    /// See [`Outcome::Abstained`].
    Abstained,
    /// See [`Outcome::Fault`].
    Fault,
    /// See [`Outcome::OutOfBudget`].
    OutOfBudget,
    /// See [`Outcome::Unavailable`].
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

    /// Why, in words; a score may carry a note.
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
