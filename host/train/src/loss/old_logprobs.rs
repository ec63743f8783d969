//! The log-probabilities that the policy is compared with.

use serde::{Deserialize, Serialize};

/// The log-probabilities that the policy's are compared with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OldLogProbs {
    /// Those that rollout recorded.
    #[default]
    Rollout,
    /// The policy's own before the step's first update (decoupled PPO).
    Proximal,
    /// The policy's own at this update: the ratio is 1 and nothing is clipped.
    /// Right for a single update on on-policy data.
    Current,
}
