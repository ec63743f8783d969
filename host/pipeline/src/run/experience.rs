//! From a trajectory to what an update learns from.

use gavel_config::RlTable;
use gavel_data::{FinishReason, Tokens, Trajectory};
use gavel_train::Experience;

/// A trajectory without its advantage; nothing if it has no tokens.
pub(crate) fn experience(trajectory: &Trajectory, table: &RlTable) -> Option<Experience> {
    let tokens = trajectory.tokens()?;
    Some(Experience {
        prompt: tokens.prompt.clone(),
        response: tokens.response.clone(),
        loss_mask: loss_mask(trajectory, tokens, table),
        logprobs: tokens.logprobs.clone(),
        versions: tokens.versions.clone(),
        ..Experience::default()
    })
}

/// Which tokens of a trajectory are learned from.
pub(crate) fn loss_mask(trajectory: &Trajectory, tokens: &Tokens, table: &RlTable) -> Vec<bool> {
    match table.mask_truncated && trajectory.finish_reason == FinishReason::Length {
        true => vec![false; tokens.loss_mask.len()],
        false => tokens.loss_mask.clone(),
    }
}
