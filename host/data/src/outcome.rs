//! What scoring says of a sample. It is never just a number: a verifier that
//! crashed has not said 0.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
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

/// A plugin's score of a sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Score {
    /// The score, finite.
    pub value: f64,
    /// Named numbers beside it.
    pub metrics: Vec<Metric>,
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
    /// The deadline.
    Time,
    /// Linear memory and tables.
    Memory,
    /// The stack.
    Stack,
    /// Instructions, where they are metered.
    Fuel,
    /// What the plugin may hand back.
    Output,
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Budget::Time => "time",
            Budget::Memory => "memory",
            Budget::Stack => "stack",
            Budget::Fuel => "fuel",
            Budget::Output => "output",
        })
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
    /// Wall-clock time, in microseconds.
    pub elapsed_us: u64,
    /// Fuel, where it is metered.
    pub fuel: Option<u64>,
    /// The most linear memory that the instance had, in bytes.
    pub peak_memory: u64,
}

/// One call of one plugin: what came of it and what it used.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// What came of it.
    pub outcome: Outcome,
    /// What it used.
    pub usage: Usage,
}

impl Serialize for Evaluation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Map::new();
        out.insert("outcome".into(), self.outcome.kind().as_str().into());
        out.insert("score".into(), self.outcome.score().into());
        let metrics = match &self.outcome {
            Outcome::Scored(score) => score.metrics.iter().map(|m| (m.name.clone(), m.value.into())).collect(),
            _ => Map::new(),
        };
        out.insert("metrics".into(), Value::Object(metrics));
        out.insert("reason".into(), self.outcome.reason().into());
        out.insert("elapsed_us".into(), self.usage.elapsed_us.into());
        out.insert("fuel".into(), self.usage.fuel.into());
        out.insert("peak_memory".into(), self.usage.peak_memory.into());
        out.serialize(serializer)
    }
}

/// What all plugins together say of a sample.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleOutcome {
    /// The weighted sum; absent unless every plugin with a weight scored.
    pub reward: Option<f64>,
    /// `Scored`, or the kind of the first weighted plugin that did not score.
    pub outcome: OutcomeKind,
    /// Why there is no reward.
    pub reason: Option<String>,
    /// Each plugin's call, by its name in the run.
    pub plugins: BTreeMap<String, Evaluation>,
}
