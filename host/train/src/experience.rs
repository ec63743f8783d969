//! The trajectories that an update learns from.

use crate::batch::Sequence;
use crate::drawing::Drawing;
use crate::error::{Result, TrainError};
use crate::taught::Taught;
use gavel_data::SamplingMasks;
use std::sync::Arc;

/// The sample of a step that a trajectory belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SampleId {
    /// The number of its group.
    pub group: usize,
    /// Its number in the group.
    pub index: usize,
    /// 0 where the trajectories of a sample count as one; else the number of the trajectory.
    pub trajectory: usize,
}

/// One trajectory with its advantage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Experience {
    /// The sample that it belongs to. When losses are averaged over responses,
    /// the trajectories of one sample count as one.
    pub sample: SampleId,
    /// Token ids of the prompt; at least one.
    pub prompt: Vec<u32>,
    /// Token ids after the prompt.
    pub response: Vec<u32>,
    /// For each response token: whether the policy wrote it. Only these are
    /// learned from.
    pub loss_mask: Vec<bool>,
    /// For each response token: its log-probability when it was sampled, at
    /// the temperature of the update and under `masks` and `drawing`.
    pub logprobs: Vec<f32>,
    /// For each response token: the tokens that could be drawn in its place; empty, or without the last ones, where all
    /// could. Every log-probability of the token, also under a reference, is among these tokens.
    pub masks: SamplingMasks,
    /// How logits were changed before tokens were drawn; `None` if they were not, or if training is about the policy's
    /// own distribution.
    pub drawing: Option<Arc<Drawing>>,
    /// For each response token: its log-probability under the policy before the step's first update, as
    /// [`Trainer::set_proximal`](crate::Trainer::set_proximal) sets it; empty if no update needs it.
    pub proximal: Vec<f32>,
    /// For each response token: the version of the policy that drew it.
    pub versions: Vec<u64>,
    /// Which of the run's references its tokens are compared with; 0 if there is one.
    pub reference: usize,
    /// What a teacher says of its tokens, as [`Trainer::taught`](crate::Trainer::taught) gives it; `None` without
    /// distillation.
    pub taught: Option<Taught>,
    /// For each response token: how much better it was than expected.
    pub advantages: Vec<f32>,
    /// For each response token: the return that the critic expected before it; empty without a critic.
    pub values: Vec<f32>,
    /// For each response token: the return that the critic learns; empty without a critic.
    pub returns: Vec<f32>,
}

impl Experience {
    pub(crate) fn sequence(&self) -> Sequence<'_> {
        Sequence { prompt: &self.prompt, response: &self.response, loss_mask: Some(&self.loss_mask) }
    }

    /// Refuses a row that would train on wrong data without an error. Proximal
    /// log-probabilities are checked only if they are needed.
    pub(crate) fn check(&self, index: usize, needs_proximal: bool) -> Result<()> {
        let wrong = |what: String| Err(TrainError::Row { index, what });
        let tokens = self.response.len();
        let counts = [
            ("log-probabilities", self.logprobs.len()),
            ("advantages", self.advantages.len()),
            ("proximal log-probabilities", if needs_proximal { self.proximal.len() } else { tokens }),
        ];
        for (what, count) in counts {
            if count != tokens {
                return wrong(format!("has {count} {what} for {tokens} response tokens"));
            }
        }
        if let Some(at) = self.advantages.iter().position(|advantage| !advantage.is_finite()) {
            return wrong(format!("has the advantage {} at response token {at}", self.advantages[at]));
        }
        for (what, logprobs) in [("", &self.logprobs), ("proximal ", &self.proximal)] {
            let written = self.loss_mask.iter().zip(logprobs).position(|(&mask, logprob)| mask && !logprob.is_finite());
            if let Some(at) = written {
                return wrong(format!("has the {what}log-probability {} at response token {at}", logprobs[at]));
            }
        }
        if self.masks.len() > tokens {
            return wrong(format!("has {} sampling masks for {tokens} response tokens", self.masks.len()));
        }
        Ok(())
    }
}
