//! The state that the algorithm of a run keeps from one step to the next. A checkpoint contains it.

use gavel_config::RlTable;
use gavel_train::{KlConfig, LossConfig, RewardStatistics, UpdateStats};
use std::collections::BTreeMap;

/// The names in a checkpoint.
const COUNT: &str = "rewards/count";
const MEAN: &str = "rewards/mean";
const SQUARES: &str = "rewards/squares";
const KL_IN_LOSS: &str = "loss/kl/coefficient";
const KL_IN_REWARD: &str = "kl_reward/coefficient";

/// The state that the algorithm of a run keeps from one step to the next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LearningState {
    /// The rewards of the run so far.
    pub(crate) rewards: RewardStatistics,
    /// What the plugin that turns rewards into advantages keeps; empty before its first call.
    pub(crate) advantage: Vec<u8>,
    /// The penalty in the reward, with its weight as it is now.
    pub(crate) kl_in_reward: Option<KlConfig>,
    /// The penalty in the loss, with its weight as it is now.
    kl_in_loss: Option<KlConfig>,
}

impl LearningState {
    /// The state at the start of a run, or the state in a checkpoint with the numbers `kept` and what a plugin keeps,
    /// `advantage`.
    pub(crate) fn new(table: &RlTable, kept: &BTreeMap<String, f64>, advantage: &[u8]) -> Self {
        let number = |name: &str| kept.get(name).copied();
        let with_weight = |config: Option<KlConfig>, name: &str| {
            config.map(|config| KlConfig { coefficient: number(name).unwrap_or(config.coefficient), ..config })
        };
        let of_rewards = |name: &str| number(name).unwrap_or_default();
        Self {
            rewards: RewardStatistics {
                count: of_rewards(COUNT),
                mean: of_rewards(MEAN),
                squares: of_rewards(SQUARES),
            },
            advantage: advantage.to_vec(),
            kl_in_reward: with_weight(table.kl_reward, KL_IN_REWARD),
            kl_in_loss: with_weight(table.loss.kl, KL_IN_LOSS),
        }
    }

    /// What a checkpoint keeps: numbers that differ from those at the start of a run.
    pub(crate) fn kept(&self) -> BTreeMap<String, f64> {
        let RewardStatistics { count, mean, squares } = self.rewards;
        let mut kept = BTreeMap::from([(COUNT, count), (MEAN, mean), (SQUARES, squares)]);
        for (name, config) in [(KL_IN_LOSS, self.kl_in_loss), (KL_IN_REWARD, self.kl_in_reward)] {
            if let Some(config) = config.filter(|config| config.target.is_some()) {
                kept.insert(name, config.coefficient);
            }
        }
        kept.into_iter().map(|(name, number)| (name.to_owned(), number)).collect()
    }

    /// The loss of the next step.
    pub(crate) fn loss(&self, loss: LossConfig) -> LossConfig {
        LossConfig { kl: self.kl_in_loss, ..loss }
    }

    /// Adapts the weights of the penalties after a step of `samples` samples: that in the loss to the distance that
    /// its updates measured, that in the reward to `kl_in_reward`.
    pub(crate) fn end_step(&mut self, updates: &[UpdateStats], kl_in_reward: Option<f64>, samples: usize) {
        let measured: Vec<f64> = updates.iter().filter_map(|update| update.statistics.get("kl")).collect();
        if let (Some(config), false) = (&mut self.kl_in_loss, measured.is_empty()) {
            *config = config.adapted(gavel_runs::metrics::mean(&measured), samples);
        }
        if let (Some(config), Some(kl)) = (&mut self.kl_in_reward, kl_in_reward) {
            *config = config.adapted(kl, samples);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rl_table;

    #[test]
    fn a_checkpoint_restores_it() {
        let adaptive = "kl_reward = { coefficient = 0.5, target = 0.1, horizon = 100.0 }\nloss.kl = {}";
        let table = rl_table(adaptive);
        let mut state = LearningState::new(&table, &BTreeMap::new(), &[1, 0]);
        state.rewards = RewardStatistics { count: 3.0, mean: 0.1, squares: 0.7 };
        state.end_step(&[], Some(1.0), 50);
        assert_eq!(state.kl_in_reward.map(|kl| kl.coefficient), Some(0.55));
        assert_eq!(state.loss(table.loss), table.loss);
        assert_eq!(LearningState::new(&table, &state.kept(), &[1, 0]), state);
    }
}
