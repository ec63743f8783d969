//! The losses of a token, and their keys in the configuration.

use super::ppo_clip::PpoClip;
use super::table::{LossTable, PolicyLossName};
use super::token_loss::{TokenLoss, Tokens};
use crate::config::ConfigError;
use tch::TchError;

/// The loss of a token, with its settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PolicyLoss {
    /// PPO's clipped surrogate; `vanilla` in a configuration.
    PpoClip(PpoClip),
}

impl Default for PolicyLoss {
    fn default() -> Self {
        Self::PpoClip(PpoClip::default())
    }
}

impl PolicyLoss {
    /// The loss that a table asks for.
    pub(super) fn read(table: &LossTable) -> Self {
        match table.policy {
            PolicyLossName::Vanilla => {
                let default = PpoClip::default();
                Self::PpoClip(PpoClip {
                    clip_low: table.clip_low.unwrap_or(default.clip_low),
                    clip_high: table.clip_high.unwrap_or(default.clip_high),
                })
            }
        }
    }

    /// A table that asks for this loss, with all its keys.
    pub(super) fn written(self) -> LossTable {
        match self {
            Self::PpoClip(PpoClip { clip_low, clip_high }) => LossTable {
                policy: PolicyLossName::Vanilla,
                clip_low: Some(clip_low),
                clip_high: Some(clip_high),
                ..LossTable::default()
            },
        }
    }

    /// Refuses values that are not valid, naming the key.
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Self::PpoClip(loss) => loss.validate(),
        }
    }

    /// The loss of each token.
    pub(super) fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        match self {
            Self::PpoClip(loss) => loss.token_loss(tokens),
        }
    }
}
