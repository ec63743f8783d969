//! What each rank knows of its own work in a step alone, and its metrics over all ranks.

use crate::error::Result;
use crate::metrics::{describe_latencies, latencies};
use crate::ranks::Ranks;
use crate::reward_model::{RewardModelWork, RewardModels};
use crate::run::recorder::Recorder;
use crate::run::spending::describe_spent;
use gavel_data::Group;
use gavel_runs::{Metrics, Spent};
use gavel_scoring::{OutsideUse, Scorer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a rank has done since the last step ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RankWork {
    /// By plugin, the seconds of each call: a quantile over all ranks needs every value.
    latencies: BTreeMap<String, Vec<f64>>,
    reward_models: RewardModelWork,
    outside: OutsideUse,
    spent: BTreeMap<String, Spent>,
}

impl RankWork {
    /// The work of this rank since the last call of this. `groups` are the groups of the step.
    ///
    /// # Errors
    /// A reward model cannot be asked any more.
    pub(crate) fn take(groups: &[&Group], reward_models: &mut RewardModels, scorer: &Scorer) -> Result<Self> {
        Ok(Self {
            latencies: latencies(groups.iter().copied()),
            reward_models: reward_models.end_step()?,
            outside: scorer.take_outside_use(),
            spent: scorer.take_spent(),
        })
    }

    /// The work of all ranks together. All ranks call this.
    ///
    /// # Errors
    /// A rank is gone.
    pub(crate) fn of_all(self, ranks: &Ranks) -> Result<Self> {
        let mut all = Self::default();
        ranks.exchange(&self)?.into_iter().for_each(|work| all.add(work));
        Ok(all)
    }

    fn add(&mut self, Self { latencies, reward_models, outside, spent }: Self) {
        for (plugin, seconds) in latencies {
            self.latencies.entry(plugin).or_default().extend(seconds);
        }
        self.reward_models.add(reward_models);
        self.outside.add(outside);
        for (plugin, spent) in spent {
            self.spent.entry(plugin).or_default().add(spent);
        }
    }

    /// Sets its metrics, and notes what was spent.
    pub(crate) fn describe(self, recorder: &mut Recorder, metrics: &mut Metrics) {
        describe_latencies(self.latencies, metrics);
        self.reward_models.describe(metrics);
        for (name, value) in self.outside.metrics() {
            metrics.set(name, value);
        }
        describe_spent(&self.spent, recorder, metrics);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_that_of_the_calls_of_all_ranks() {
        let of = |seconds: &[f64], tokens| RankWork {
            latencies: [("math".to_owned(), seconds.to_vec())].into(),
            spent: [("math".to_owned(), Spent { tokens, money: 0.5 })].into(),
            ..RankWork::default()
        };
        let mut all = of(&[1.0, 2.0, 3.0], 10);
        all.add(RankWork::default());
        all.add(of(&[9.0; 4], 5));
        assert_eq!(all.spent["math"], Spent { tokens: 15, money: 1.0 });
        let mut metrics = Metrics::default();
        describe_latencies(all.latencies, &mut metrics);
        // The mean of both medians would be 5.5.
        assert_eq!(metrics.get("reward/math/latency_p50"), Some(9.0));
    }
}
