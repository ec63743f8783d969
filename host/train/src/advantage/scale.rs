//! What a difference of rewards is divided by.

use super::group::{ScoredGroup, deviation};
use serde::{Deserialize, Serialize};

/// Added to a standard deviation before a division.
pub(super) const EPSILON: f64 = 1e-6;

/// What a difference of rewards is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// The standard deviation of the group.
    Group,
    /// The standard deviation of all rewards of the batch.
    Batch,
    /// The standard deviation of all rewards of the run so far.
    Running,
    /// Nothing.
    None,
}

impl Scale {
    /// The divisor of each group. `running` has the statistics of the run, with this batch.
    pub(super) fn divisors(self, groups: &[ScoredGroup], running: &RewardStatistics) -> Vec<f64> {
        match self {
            Self::Group => groups.iter().map(|group| deviation(&group.rewards()) + EPSILON).collect(),
            Self::Batch => {
                let rewards: Vec<f64> = groups.iter().flat_map(ScoredGroup::rewards).collect();
                vec![deviation(&rewards) + EPSILON; groups.len()]
            }
            Self::Running => vec![running.deviation() + EPSILON; groups.len()],
            Self::None => vec![1.0; groups.len()],
        }
    }
}

/// The count, the mean and the squared deviations of all rewards of a run (Welford, "Note on a method for calculating
/// corrected sums of squares and products", 1962).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RewardStatistics {
    /// How many rewards there were.
    pub count: f64,
    /// Their mean.
    pub mean: f64,
    /// The sum of the squares of their differences from it.
    pub squares: f64,
}

impl RewardStatistics {
    /// Adds the rewards of a batch.
    pub fn add(&mut self, groups: &[ScoredGroup]) {
        for reward in groups.iter().flat_map(ScoredGroup::rewards) {
            self.count += 1.0;
            let before = reward - self.mean;
            self.mean += before / self.count;
            self.squares += before * (reward - self.mean);
        }
    }

    /// The sample standard deviation.
    fn deviation(&self) -> f64 {
        (self.squares / (self.count - 1.0).max(1.0)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_statistics_are_those_of_all_rewards() {
        let batches = [ScoredGroup::of_rewards([1.0, 4.0]), ScoredGroup::of_rewards([2.0, 9.0, 4.0])];
        let mut running = RewardStatistics::default();
        batches.iter().for_each(|group| running.add(std::slice::from_ref(group)));
        let all = [1.0, 4.0, 2.0, 9.0, 4.0];
        assert!((running.mean - 4.0).abs() < 1e-12 && (running.deviation() - deviation(&all)).abs() < 1e-12);
        assert_eq!(Scale::None.divisors(&batches, &running), [1.0, 1.0]);
        assert_eq!(Scale::Batch.divisors(&batches, &running), [deviation(&all) + EPSILON; 2]);
    }
}
