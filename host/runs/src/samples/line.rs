//! A line of `trajectories/`.

use super::packed::PackedTokens;
use gavel_data::{
    Columns, EvaluationRecord, FinishReason, KnownTokens, Message, NotCalled, Opening, OutcomeKind, RolloutFault,
    RolloutFaultKind, RolloutReport, SampleOutcome, TokenCounts, ToolStates, ToolUse, Trace, Trajectory,
    TrajectoryRecord, TrajectoryStatus,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A line to write.
#[derive(Serialize)]
pub(super) struct WrittenLine<'a> {
    pub(super) id: &'a str,
    pub(super) task: &'a str,
    pub(super) task_id: &'a str,
    pub(super) data_source: Option<&'a str>,
    pub(super) step: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trained_step: Option<u64>,
    pub(super) group: u64,
    pub(super) sample: u32,
    pub(super) trajectory: usize,
    /// For people; the task has it.
    pub(super) prompt: &'a [Message],
    /// For people: the prompt as the policy read it. Absent if its tokens are
    /// not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_text: Option<&'a str>,
    /// For people; the task has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ground_truth: Option<&'a str>,
    /// For people; the finish reason determines it.
    pub(super) status: TrajectoryStatus,
    #[serde(flatten)]
    pub(super) transcript: &'a TrajectoryRecord<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<WrittenFault<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra: Option<&'a Columns>,
    /// Absent in the lines of further trajectories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) states: Option<&'a ToolStates>,
    /// For people; the messages contain it.
    pub(super) response: String,
    /// For people; the messages contain them, and the answers of tools.
    pub(super) turns: u32,
    pub(super) tool_turns: u32,
    pub(super) prompt_length: usize,
    pub(super) response_length: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token_ids: Option<PackedTokens>,
    /// Absent if the policy wrote one turn, called no tool and ended normally.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rollout: Option<WrittenReport<'a>>,
    pub(super) advantage: Option<f64>,
    #[serde(flatten)]
    pub(super) outcome: &'a SampleOutcome,
    /// The number of the line in its file, from 1.
    pub(super) line: u64,
}

/// Why a trajectory did not end normally.
#[derive(Serialize)]
pub(super) struct WrittenFault<'a> {
    kind: RolloutFaultKind,
    #[serde(flatten)]
    fault: &'a RolloutFault,
}

impl<'a> WrittenFault<'a> {
    pub(super) fn of(trajectory: &'a Trajectory) -> Option<Self> {
        Some(Self { kind: trajectory.fault_kind()?, fault: trajectory.report.error.as_ref()? })
    }
}

/// How a trajectory came about.
#[derive(Serialize)]
pub(super) struct WrittenReport<'a> {
    generating: &'a [f64],
    #[serde(skip_serializing_if = "<[f64]>::is_empty")]
    in_tools: &'a [f64],
    tool_uses: &'a [ToolUse],
    #[serde(skip_serializing_if = "str::is_empty")]
    printed: &'a str,
}

impl<'a> WrittenReport<'a> {
    pub(super) fn of(trajectory: &'a Trajectory) -> Option<Self> {
        let RolloutReport { generating, in_tools, tool_uses, error, printed } = &trajectory.report;
        let is_plain = generating.len() <= 1 && tool_uses.is_empty() && error.is_none() && printed.is_empty();
        (!is_plain).then_some(Self { generating, in_tools, tool_uses, printed })
    }
}

/// A line that was read, without the fields that its task and its messages
/// have.
#[derive(Deserialize)]
pub(super) struct ReadLine {
    pub(super) id: String,
    pub(super) task: String,
    pub(super) step: u64,
    pub(super) trained_step: Option<u64>,
    pub(super) group: u64,
    pub(super) sample: u32,
    /// The number of the trajectory in its sample.
    pub(super) trajectory: Option<usize>,
    pub(super) opening: Option<Opening>,
    pub(super) messages: Vec<Message>,
    #[serde(default)]
    pub(super) by_agent: Vec<u32>,
    pub(super) answer: Option<String>,
    pub(super) extra: Option<Columns>,
    #[serde(default)]
    pub(super) states: ToolStates,
    pub(super) finish_reason: FinishReason,
    #[serde(default)]
    pub(super) trace: Trace,
    tokens: Option<TokenCounts>,
    #[serde(default)]
    pub(super) response_length: usize,
    token_ids: Option<PackedTokens>,
    /// In older recordings, it contains the error.
    #[serde(default)]
    rollout: RolloutReport,
    error: Option<RolloutFault>,
    pub(super) advantage: Option<f64>,
    pub(super) reward: Option<f64>,
    pub(super) outcome: OutcomeKind,
    pub(super) reason: Option<String>,
    pub(super) plugins: BTreeMap<String, EvaluationRecord>,
    #[serde(default)]
    pub(super) not_called: BTreeMap<String, NotCalled>,
    pub(super) lowest_reward: Option<f64>,
    /// The number of the line when it was written, from 1; absent in older recordings.
    pub(super) line: Option<u64>,
    /// Whether no line was written after it.
    #[serde(default, rename = "last")]
    pub(super) is_last: bool,
}

impl ReadLine {
    /// How it came about.
    pub(super) fn report(&self) -> RolloutReport {
        let error = self.error.clone().or_else(|| self.rollout.error.clone());
        RolloutReport { error, ..self.rollout.clone() }
    }

    /// Its tokens, or their counts, if they are known.
    ///
    /// # Errors
    /// Its token ids cannot be parsed, or their number differs from its counts.
    pub(super) fn tokens(&self) -> Result<Option<KnownTokens>, String> {
        let Some(packed) = &self.token_ids else { return Ok(self.tokens.map(KnownTokens::Counts)) };
        let tokens = packed.unpack()?;
        match self.tokens == Some(tokens.counts()) {
            true => Ok(Some(tokens.into())),
            false => Err("`token_ids` does not fit the counts in `tokens`".to_owned()),
        }
    }
}
