//! Tables of `[train]` that belong to some algorithms only.

use gavel_train::Scale;
use serde::{Deserialize, Serialize};

/// `[train.reference]`: the reference, from which penalties measure the distance, follows the policy that is trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceTable {
    /// Steps between changes of the reference.
    pub every: u64,
    /// The share of the new policy in it, above 0; 1 by default, which replaces it.
    #[serde(default = "whole")]
    pub mixup: f64,
}

fn whole() -> f64 {
    1.0
}

/// `[train.advantage]`: settings of the algorithm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdvantageTable {
    /// What a difference of rewards is divided by; only for `grpo` and `grpo_passk`, the standard deviation of the group
    /// by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// How much of a later reward counts at a token before it; only for `reinforce_plus_plus` and `gae`, 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// How much of a later temporal difference counts at a token before it; only for `gae`, 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lam: Option<f64>,
}

impl AdvantageTable {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
