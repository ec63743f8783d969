//! One call of a judge: its outcome, usage and provenance.

use crate::outcome::{Blame, CausedBy, Outcome};
use crate::shown::Shown;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The resources that a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Time on a processor and in waits for the host, in microseconds; the wait for a processor does not count.
    pub elapsed_us: u64,
    /// Time on a processor, in microseconds.
    pub cpu_us: u64,
    /// Fuel, where it is metered.
    pub fuel: Option<u64>,
    /// The most memory that the instance had, in bytes.
    pub peak_memory: u64,
}

/// The judge that gave a verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JudgeId {
    /// A component, by BLAKE3 of its file, in hexadecimal.
    Component(String),
    /// A model, by its name.
    Model(String),
}

impl JudgeId {
    /// The kind of judge, which is its key in records.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Component(_) => "component",
            Self::Model(_) => "model",
        }
    }

    /// The hash or the name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Component(id) | Self::Model(id) => id,
        }
    }
}

impl fmt::Display for JudgeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), Shown(self.as_str()))
    }
}

/// The inputs of a call, from which `gavel replay` reproduces the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The judge that was called.
    #[serde(flatten)]
    pub judge: JudgeId,
    /// BLAKE3 of the parameters, in hexadecimal.
    pub params: String,
    /// The contract between the plugin and its host.
    pub contract: String,
    /// The seed of the plugin's random numbers.
    pub seed: u64,
    /// BLAKE3 of the sample, its reference and the verdicts that the call sees, in hexadecimal:
    /// [`SampleInput::hash`](crate::SampleInput::hash). For a group, BLAKE3 of its members' hashes.
    pub input: String,
}

/// Output of a call that helps to find why it failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The plugin's own functions at the trap, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backtrace: Vec<String>,
    /// The end of what the plugin printed, on stdout and stderr.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

/// One call of one plugin: its outcome, the resources that it used, and its inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The outcome.
    pub outcome: Outcome,
    /// What it used.
    pub usage: Usage,
    /// Its inputs; absent if there was no call.
    pub provenance: Option<Provenance>,
    /// What it printed, and where it trapped; absent if it did neither.
    pub diagnosis: Option<Diagnosis>,
    /// Who caused the failure or abstention; absent if there was none, or the cause was not looked for.
    pub caused_by: Option<CausedBy>,
}

impl Evaluation {
    /// The kind of fault, or the budget that was exceeded.
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

    /// Whether it gave a verdict: a score or an abstention.
    pub fn ended_well(&self) -> bool {
        matches!(self.outcome, Outcome::Scored(_) | Outcome::Abstained(_))
    }

    /// Whether it failed: a fault, or out of budget.
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Fault { .. } | Outcome::OutOfBudget { .. })
    }

    /// The evaluation if a call could not be made.
    pub fn without_call(outcome: Outcome) -> Self {
        Self { outcome, usage: Usage::default(), provenance: None, diagnosis: None, caused_by: None }
    }
}
