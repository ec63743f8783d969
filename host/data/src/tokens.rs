//! The tokens of a trajectory, or their counts.

use crate::sampling_masks::SamplingMasks;
use serde::{Deserialize, Serialize};

/// The tokens of a trajectory: the prompt, then everything after it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tokens {
    /// Token ids of the prompt.
    pub prompt: Vec<u32>,
    /// Token ids after the prompt, the end-of-turn token included.
    pub response: Vec<u32>,
    /// For each response token: whether the policy wrote it.
    pub loss_mask: Vec<bool>,
    /// For each response token: its log-probability when it was sampled, after
    /// temperature; 0 where the policy did not write it. Where `masks` has
    /// positions, it is of the distribution that was drawn from; otherwise of
    /// the one before any truncation.
    pub logprobs: Vec<f32>,
    /// For each response token: the version of the policy that wrote it.
    pub versions: Vec<u64>,
    /// For each response token: which tokens could be drawn; positions past the
    /// end are not cut. No positions if rollout did not keep them.
    pub masks: SamplingMasks,
}

/// The counts of a trajectory's tokens, which a plugin can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Tokens that the policy wrote.
    pub response: u32,
    /// The version of the policy that wrote the first one.
    pub policy_version: Option<u64>,
}

/// The tokens of a trajectory, as far as they are known.
#[derive(Debug, Clone, PartialEq)]
pub enum KnownTokens {
    /// Each of them.
    Full(Tokens),
    /// Their counts: enough for a plugin, but not for training.
    Counts(TokenCounts),
}

impl Tokens {
    /// What a plugin can learn of them.
    pub fn counts(&self) -> TokenCounts {
        TokenCounts {
            prompt: self.prompt.len() as u32,
            response: self.loss_mask.iter().filter(|policy| **policy).count() as u32,
            policy_version: self.versions.first().copied(),
        }
    }
}

impl KnownTokens {
    /// What a plugin can learn of them.
    pub fn counts(&self) -> TokenCounts {
        match self {
            Self::Full(tokens) => tokens.counts(),
            Self::Counts(counts) => *counts,
        }
    }
}

impl From<Tokens> for KnownTokens {
    fn from(tokens: Tokens) -> Self {
        Self::Full(tokens)
    }
}
