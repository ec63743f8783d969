//! From a trajectory to what an update learns from.

use gavel_config::{RlTable, RolloutTable};
use gavel_data::{FinishReason, Tokens, Trajectory};
use gavel_policy::Sampling;
use gavel_train::{Drawing, Experience};
use std::sync::Arc;

/// A trajectory without its advantage; nothing if it has no tokens.
pub(crate) fn experience(trajectory: &Trajectory, table: &RlTable) -> Option<Experience> {
    let tokens = trajectory.tokens()?;
    Some(Experience {
        prompt: tokens.prompt.clone(),
        response: tokens.response.clone(),
        loss_mask: loss_mask(trajectory, tokens, table),
        logprobs: tokens.logprobs.clone(),
        versions: tokens.versions.clone(),
        masks: tokens.masks.clone(),
        ..Experience::default()
    })
}

/// Notes how rollout changed logits in the rows with masks: their log-probabilities are of what was drawn from. The
/// recorded log-probabilities of other rows belong to training on the policy's whole distribution.
pub(crate) fn note_drawing<'a>(rows: impl IntoIterator<Item = &'a mut Experience>, table: &RolloutTable) {
    let Sampling { logit_bias, repetition_penalty, .. } = table.sampling(Vec::new());
    if logit_bias.is_empty() && repetition_penalty == 1.0 {
        return;
    }
    let drawing = Arc::new(Drawing::new(&logit_bias, repetition_penalty));
    for row in rows.into_iter().filter(|row| !row.masks.is_empty()) {
        row.drawing = Some(drawing.clone());
    }
}

/// Which tokens of a trajectory are learned from.
pub(crate) fn loss_mask(trajectory: &Trajectory, tokens: &Tokens, table: &RlTable) -> Vec<bool> {
    match table.mask_truncated && trajectory.finish_reason == FinishReason::Length {
        true => vec![false; tokens.loss_mask.len()],
        false => tokens.loss_mask.clone(),
    }
}
