//! The trace of a trajectory: what plugins can see of it beside its messages.

use crate::finish_reason::FinishReason;
use crate::rollout_report::{ToolEnding, ToolUse};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::sync::Arc;

/// What plugins can see of a trajectory beside its messages. Empty in older records, and where no policy of this run
/// wrote the response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trace {
    /// The functions that the policy could call, in the form that chat templates take.
    #[serde(skip_serializing_if = "<[Value]>::is_empty", serialize_with = "write", deserialize_with = "read")]
    pub tools: Arc<[Value]>,
    /// The turns of the policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<TurnTrace>,
    /// The calls of tools, in the order in which the policy made them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallTrace>,
}

/// A turn of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnTrace {
    /// The number of its message among those after the prompt.
    pub message: u32,
    /// The tokens that the policy wrote.
    pub tokens: u32,
    /// `Stop` or `Length`.
    pub finish_reason: FinishReason,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTrace {
    /// The turn of the sample that made the call, from 0.
    pub turn: u32,
    /// The function; none if the call cannot be parsed or there is no such function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// How the call ended.
    pub ending: ToolEnding,
}

impl Trace {
    /// Whether nothing is known beside the messages.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The turn of the policy in a message; `None` if the policy did not write it, or the turn is not known.
    pub fn turn(&self, message: u32) -> Option<&TurnTrace> {
        self.turns.iter().find(|turn| turn.message == message)
    }
}

impl From<&ToolUse> for CallTrace {
    fn from(call: &ToolUse) -> Self {
        Self { turn: call.turn, function: call.name.clone(), ending: call.ending }
    }
}

fn write<S: Serializer>(tools: &Arc<[Value]>, serializer: S) -> Result<S::Ok, S::Error> {
    tools[..].serialize(serializer)
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[Value]>, D::Error> {
    Vec::deserialize(deserializer).map(Arc::from)
}
