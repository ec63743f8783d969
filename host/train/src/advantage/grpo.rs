//! Group-relative advantages (Shao et al., "DeepSeekMath", 2024, section 4.1).

use super::group::ScoredGroup;

/// `(r − mean) / (std + 1e-6)`, with the sample standard deviation.
pub fn advantages(group: &ScoredGroup) -> Vec<f64> {
    let (mean, deviation) = (group.mean(), group.deviation());
    group.rewards.iter().map(|reward| (reward - mean) / (deviation + 1e-6)).collect()
}
