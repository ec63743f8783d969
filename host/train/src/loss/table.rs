//! `[train.loss]` as it is written.

use super::aggregation::Aggregation;
use super::old_logprobs::OldLogProbs;
use crate::kl::KlConfig;
use serde::{Deserialize, Serialize};

/// The names of the losses of a token.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PolicyLossName {
    /// PPO's clipped surrogate.
    #[default]
    Vanilla,
}

/// `[train.loss]`: the keys of every loss, and the keys that all losses share.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LossTable {
    pub policy: PolicyLossName,
    pub clip_low: Option<f64>,
    pub clip_high: Option<f64>,
    pub old_logprobs: Option<OldLogProbs>,
    pub aggregation: Aggregation,
    pub norm_tokens: Option<usize>,
    pub kl: Option<KlConfig>,
}
