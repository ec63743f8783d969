//! How a trajectory came about: its times, its tool calls and its error.

use crate::evaluation::Diagnosis;
use crate::outcome::Budget;
use serde::{Deserialize, Serialize};

/// How a trajectory came about. No plugin sees it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RolloutReport {
    /// The seconds in which the policy wrote each of its turns, the wait for its device included.
    pub generating: Vec<f64>,
    /// The seconds in which tools answered, once for all calls that were made together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_tools: Vec<f64>,
    /// The calls of tools, in the order in which the policy made them.
    pub tool_uses: Vec<ToolUse>,
    /// Why it did not end normally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RolloutFault>,
    /// The end of what a program printed that is the agent of its sample, in the first trajectory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub printed: String,
}

/// Two equal runs take different times, so all reports are equal.
impl PartialEq for RolloutReport {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The function; none if the call cannot be parsed or there is no such function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How the call ended.
    pub ending: ToolEnding,
    /// The turn of the policy that made the call, from 0.
    pub turn: u32,
    /// Seconds until the answer.
    pub seconds: f64,
}

/// How a call of a tool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolEnding {
    /// It answered.
    Answered,
    /// The policy called it wrongly: there is no such function, the arguments are not JSON, or they do not fit.
    CalledWrongly,
    /// It exceeded one of its budgets.
    OutOfBudget,
    /// Something that it needs did not answer.
    Unavailable,
    /// It failed by itself.
    Failed,
}

impl ToolEnding {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Answered, Self::CalledWrongly, Self::OutOfBudget, Self::Unavailable, Self::Failed];

    /// The name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::CalledWrongly => "called-wrongly",
            Self::OutOfBudget => "out-of-budget",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
        }
    }
}

/// Why a trajectory did not end normally.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutFault {
    /// The stage at which it stopped.
    pub stage: RolloutStage,
    /// What happened.
    pub message: String,
    /// Whether another attempt may help.
    pub retryable: bool,
    /// The budget of the agent that was used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What the agent printed, and where it trapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Diagnosis>,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RolloutFaultKind {
    /// The time was used up.
    Timeout,
    /// The agent exceeded another budget.
    OutOfBudget,
    /// Something outside did not answer.
    Unavailable,
    /// The agent failed.
    Failed,
}

/// The stage of an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RolloutStage {
    /// The policy generates.
    Generate,
    /// Tools are called.
    Tools,
    /// An agent decides.
    Agent,
}
