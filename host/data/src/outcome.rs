//! What scoring says of a sample. It is never just a number: a verifier that
//! crashed has not said 0.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
#[derive(Debug, Clone, Default, PartialEq)]
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
            Outcome::Fault { whose: Blame::Plugin, what } => Some(what.clone()),
            Outcome::Fault { whose: Blame::Input, what } => Some(format!("invalid input: {what}")),
            Outcome::Fault { whose: Blame::Host, what } => Some(format!("the host failed: {what}")),
            Outcome::OutOfBudget { which, what } => Some(format!("{which}: {what}")),
            Outcome::Unavailable(what) => Some(what.clone()),
        }
    }
}

/// What a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Time on a processor and in waits for the host, in microseconds; the wait
    /// for a processor is not part of it.
    pub elapsed_us: u64,
    /// Time on a processor, in microseconds.
    pub cpu_us: u64,
    /// Fuel, where it is metered.
    pub fuel: Option<u64>,
    /// The most memory that the instance had, in bytes.
    pub peak_memory: u64,
}

/// What a call was made of: with it, the verdict can be given again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// BLAKE3 of the component's file, in hexadecimal.
    pub component: String,
    /// BLAKE3 of the parameters, in hexadecimal.
    pub params: String,
    /// The contract between the plugin and its host.
    pub contract: String,
    /// What the plugin sees as random follows from it.
    pub seed: u64,
    /// BLAKE3 of the sample and its reference, in hexadecimal: [`Sample::hash`](crate::Sample::hash).
    pub input: String,
}

/// What a call leaves behind for the person who has to understand or mend it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The plugin's own functions, the innermost first, where it trapped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backtrace: Vec<String>,
    /// The end of what the plugin printed, on stdout and stderr.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

/// One call of one plugin: what came of it, what it used, what it was made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// What came of it.
    pub outcome: Outcome,
    /// What it used.
    pub usage: Usage,
    /// What it was made of; absent where there was no call.
    pub provenance: Option<Provenance>,
    /// What it printed, and where it trapped; absent where it did neither.
    pub diagnosis: Option<Diagnosis>,
}

impl Evaluation {
    /// What kind of fault it was, or which budget was exceeded.
    pub fn detail(&self) -> Option<&'static str> {
        let trapped = || self.diagnosis.as_ref().is_some_and(|diagnosis| !diagnosis.backtrace.is_empty());
        match &self.outcome {
            Outcome::Fault { whose: Blame::Plugin, .. } if trapped() => Some("trap"),
            Outcome::Fault { whose: Blame::Plugin, .. } => Some("plugin"),
            Outcome::Fault { whose: Blame::Input, .. } => Some("input"),
            Outcome::Fault { whose: Blame::Host, .. } => Some("host"),
            Outcome::OutOfBudget { which, .. } => Some(which.as_str()),
            Outcome::Scored(_) | Outcome::Abstained(_) | Outcome::Unavailable(_) => None,
        }
    }

    /// What is said where a call could not be made.
    pub fn without_call(outcome: Outcome) -> Self {
        Self { outcome, usage: Usage::default(), provenance: None, diagnosis: None }
    }
}

/// What all plugins together say of a sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleOutcome {
    /// The weighted sum; absent unless every plugin with a weight that is for
    /// the sample scored.
    pub reward: Option<f64>,
    /// `Scored`, or the kind of the first weighted plugin that did not score.
    pub outcome: OutcomeKind,
    /// Why there is no reward.
    pub reason: Option<String>,
    /// Each plugin's call, by its name in the run.
    pub plugins: BTreeMap<String, Evaluation>,
    /// The plugins that were not called, and why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub not_called: BTreeMap<String, NotCalled>,
}

impl SampleOutcome {
    /// What is said of a sample that no plugin was called for.
    pub fn without_calls(outcome: OutcomeKind, reason: impl Into<String>) -> Self {
        let (plugins, not_called) = Default::default();
        Self { reward: None, outcome, reason: Some(reason.into()), plugins, not_called }
    }
}

/// Why a plugin of a run was not called for a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotCalled {
    /// The condition on another plugin's score does not hold: it adds 0.
    Gate,
    /// That other plugin gave no score, so that nobody knows whether it holds:
    /// there is no reward.
    NoGate,
    /// It is not for the task's data source: it adds nothing.
    DataSource,
}

impl NotCalled {
    /// The name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::NoGate => "no-gate",
            Self::DataSource => "data-source",
        }
    }
}
