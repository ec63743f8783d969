//! Normalisation over all tokens of a batch.

use super::group::{ScoredGroup, ScoredSample};
use super::output::Advantage;

/// Added to a variance before a division.
const EPSILON: f64 = 1e-8;

/// The values of the learned tokens, shifted and scaled to the mean 0 and the variance 1 over all of them; 0 if there
/// is only one. Tokens that are not learned from stay 0. `values` has one for each token of each trajectory.
pub(super) fn whitened(groups: &[ScoredGroup], mut values: Vec<Vec<Vec<Vec<f64>>>>) -> Vec<Vec<Advantage>> {
    let learned = |values: &[Vec<Vec<Vec<f64>>>]| {
        let masks = groups.iter().flat_map(|group| &group.samples).flat_map(|sample| &sample.trajectories);
        let masks = masks.flat_map(|trajectory| &trajectory.loss_mask);
        let values = values.iter().flatten().flatten().flatten();
        masks.zip(values).filter(|(learned, _)| **learned).map(|(_, value)| *value).collect::<Vec<f64>>()
    };
    let all = learned(&values);
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count.max(1.0);
    let variance = all.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let scale = 1.0 / (variance + EPSILON).sqrt();
    for (group, values) in groups.iter().zip(&mut values) {
        for (sample, values) in group.samples.iter().zip(values) {
            for (trajectory, values) in sample.trajectories.iter().zip(values) {
                for (value, learned) in values.iter_mut().zip(&trajectory.loss_mask) {
                    *value = if *learned { (*value - mean) * scale } else { 0.0 };
                }
            }
        }
    }
    values.into_iter().map(|group| group.into_iter().map(Advantage::Tokens).collect()).collect()
}

/// The same value for all tokens of a sample.
pub(super) fn spread(sample: &ScoredSample, value: f64) -> Vec<Vec<f64>> {
    sample.trajectories.iter().map(|trajectory| vec![value; trajectory.loss_mask.len()]).collect()
}
