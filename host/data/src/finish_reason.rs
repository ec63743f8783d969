//! Why a trajectory ended.

use serde::{Deserialize, Serialize};

/// Why a trajectory ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// The policy ended its turn.
    Stop,
    /// The budget of tokens was used up.
    Length,
    /// The budget of turns was used up.
    MaxTurns,
    /// The budget of time was used up.
    Timeout,
    /// Something failed.
    Error,
}

impl FinishReason {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Stop, Self::Length, Self::MaxTurns, Self::Timeout, Self::Error];

    /// The name in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::MaxTurns => "max-turns",
            Self::Timeout => "timeout",
            Self::Error => "error",
        }
    }

    /// How far a trajectory with this reason came.
    pub fn status(self) -> TrajectoryStatus {
        match self {
            Self::Stop => TrajectoryStatus::Completed,
            Self::Length | Self::MaxTurns => TrajectoryStatus::Truncated,
            Self::Timeout => TrajectoryStatus::Expired,
            Self::Error => TrajectoryStatus::Failed,
        }
    }
}

/// How far a trajectory came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrajectoryStatus {
    /// To its end.
    Completed,
    /// To the end of its tokens or turns.
    Truncated,
    /// To the end of its time.
    Expired,
    /// Something failed before its end.
    Failed,
}
