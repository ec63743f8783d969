//! Group reward-decoupled normalization (GDPO: Liu et al., 2026, <https://arxiv.org/abs/2601.05242>): each of several
//! rewards is normalised by itself within the group, so that one with a large spread does not hide the others.

use super::batch::{spread, whitened};
use super::group::{RewardPart, ScoredGroup, ScoredSample, centred, deviation};
use super::output::Advantage;
use super::scale::EPSILON;

/// `Σ weight · (s − mean) / std` of each reward's scores in the group, normalised over all tokens of the batch.
pub(super) fn advantages(groups: &[ScoredGroup]) -> Vec<Vec<Advantage>> {
    let of_group = |group: &ScoredGroup| {
        let sums = of_group(group);
        group.samples.iter().zip(sums).map(|(sample, sum)| spread(sample, sum)).collect()
    };
    whitened(groups, groups.iter().map(of_group).collect())
}

fn of_group(group: &ScoredGroup) -> Vec<f64> {
    let rewards = group.samples.first().map_or(0, |sample| sample.parts.len());
    let mut sums = vec![0.0; group.samples.len()];
    for reward in 0..rewards {
        let part = |sample: &ScoredSample| sample.parts.get(reward).copied().unwrap_or_default();
        let parts: Vec<RewardPart> = group.samples.iter().map(part).collect();
        let scores: Vec<f64> = parts.iter().map(|part| part.score).collect();
        let divisor = deviation(&scores) + EPSILON;
        for ((sum, difference), part) in sums.iter_mut().zip(centred(&scores)).zip(&parts) {
            *sum += part.weight * difference / divisor;
        }
    }
    sums
}
