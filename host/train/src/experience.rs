//! What an update learns from.

use crate::batch::Sequence;
use crate::error::{Result, TrainError};

/// One trajectory with its advantage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Experience {
    /// Token ids of the prompt; at least one.
    pub prompt: Vec<u32>,
    /// Token ids after the prompt.
    pub response: Vec<u32>,
    /// For each response token: whether the policy wrote it. Only these are
    /// learned from.
    pub loss_mask: Vec<bool>,
    /// For each response token: its log-probability when it was sampled, at
    /// the temperature of the update.
    pub logprobs: Vec<f32>,
    /// How much better this trajectory was than could be expected.
    pub advantage: f32,
}

impl Experience {
    pub(crate) fn sequence(&self) -> Sequence<'_> {
        Sequence { prompt: &self.prompt, response: &self.response, loss_mask: Some(&self.loss_mask) }
    }

    /// Refuses what would silently train on something else.
    pub(crate) fn check(&self, index: usize) -> Result<()> {
        let wrong = |what: String| Err(TrainError::Row { index, what });
        let tokens = self.response.len();
        if self.logprobs.len() != tokens {
            return wrong(format!("has {} log-probabilities for {tokens} response tokens", self.logprobs.len()));
        }
        if !self.advantage.is_finite() {
            return wrong(format!("has the advantage {}", self.advantage));
        }
        let written =
            self.loss_mask.iter().zip(&self.logprobs).position(|(&mask, logprob)| mask && !logprob.is_finite());
        match written {
            Some(at) => wrong(format!("has the log-probability {} at response token {at}", self.logprobs[at])),
            None => Ok(()),
        }
    }
}
