//! The input of an estimator: the rewards of a group.

/// The samples of one task that were scored.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredGroup {
    /// The reward of each.
    pub rewards: Vec<f64>,
}

impl ScoredGroup {
    /// Whether all rewards are the same, so that no sample is better than another. It compares the rewards themselves:
    /// the rounding of their mean must not become a signal.
    pub fn is_uniform(&self) -> bool {
        self.rewards.windows(2).all(|pair| pair[0] == pair[1])
    }

    /// The mean of the rewards.
    pub(super) fn mean(&self) -> f64 {
        self.rewards.iter().sum::<f64>() / self.rewards.len() as f64
    }

    /// The sample standard deviation of the rewards.
    pub(super) fn deviation(&self) -> f64 {
        let (count, mean) = (self.rewards.len() as f64, self.mean());
        (self.rewards.iter().map(|reward| (reward - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt()
    }
}
