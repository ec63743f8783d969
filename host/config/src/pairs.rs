//! `[train]` of the commands that learn from pairs: `gavel reward-model` and `gavel dpo`.

use crate::checks::at_least_one;
use crate::error::ConfigError;
use crate::learning::{LearningConfig, train_table};
use crate::run_config::Config;
use crate::schedule::ScheduleTable;
use crate::tables::RolloutTable;
use crate::train::{micro_batch, ten};
use crate::train_table::{ModelKind, TrainTable};
use gavel_train::{BradleyTerryConfig, DpoConfig};

train_table! {
    /// `[train]` of `gavel reward-model`
    pub struct RewardModelTrainTable by batch_size {
        /// Pairs in each step.
        pub batch_size: usize,
        /// The weight of `(chosen + rejected)²` in the loss, which keeps scores near 0; 0 by default.
        #[serde(default)]
        pub center_rewards_coefficient: f64,
    }
}

train_table! {
    /// `[train]` of `gavel dpo`
    pub struct DpoTable by batch_size {
        /// Pairs in each step.
        pub batch_size: usize,
        /// How strongly the policy is held to the policy that the run starts from; 0.1 by default.
        #[serde(default = "beta")]
        pub beta: f64,
        /// The share of pairs whose preference is taken to be wrong; 0 by default.
        #[serde(default)]
        pub label_smoothing: f64,
    }
}

fn beta() -> f64 {
    DpoConfig::default().beta
}

impl RewardModelTrainTable {
    /// The settings of the loss.
    pub fn loss(&self) -> BradleyTerryConfig {
        BradleyTerryConfig { center_rewards_coefficient: self.center_rewards_coefficient }
    }
}

impl DpoTable {
    /// The settings of the loss.
    pub fn loss(&self) -> DpoConfig {
        DpoConfig { beta: self.beta, label_smoothing: self.label_smoothing }
    }
}

impl TrainTable for RewardModelTrainTable {
    const LEARNS: bool = true;
    const DRAWS: bool = false;
    const WITHOUT_ANSWERS: Option<&'static str> = Some("gavel reward-model");
    const MODEL: ModelKind = ModelKind::RewardModel;

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate_learning()?;
        Ok(self.loss().validate().map_err(|error| error.within("train"))?)
    }
}

impl TrainTable for DpoTable {
    const LEARNS: bool = true;
    const DRAWS: bool = false;
    const WITHOUT_ANSWERS: Option<&'static str> = Some("gavel dpo");

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate_learning()?;
        Ok(self.loss().validate().map_err(|error| error.within("train"))?)
    }
}

impl RolloutTable {
    /// The `[rollout]` of a run whose model answers no prompts.
    pub(super) fn unused() -> toml::Table {
        toml::Table::from_iter([("max_tokens".to_owned(), toml::Value::Integer(1))])
    }
}

impl<T> Config<T> {
    /// Refuses the tables and keys that `command`, whose model answers no prompts, would not use.
    pub(super) fn check_without_answers(&self, command: &str) -> Result<(), ConfigError> {
        let is_unused = toml::Value::Table(RolloutTable::unused())
            .try_into::<RolloutTable>()
            .is_ok_and(|unused| self.rollout == unused);
        let unused = [
            ("rollout", "[rollout]", !is_unused),
            ("validation", "[validation]", !self.validation.is_default()),
            ("reward", "[[reward]]", !self.reward.is_empty()),
            ("agent", "[agent]", !self.agent.are_default()),
            ("tool", "[[tool]]", !self.tool.is_empty()),
            ("schedule", "[schedule]", self.schedule != ScheduleTable::default()),
            ("data.accuracy", "data.accuracy", self.data.accuracy.is_some()),
            ("data.validation_samples", "data.validation_samples", self.data.validation_samples != 1),
        ];
        match unused.into_iter().find(|(.., is_set)| *is_set) {
            Some((key, name, _)) => Err(ConfigError::invalid(
                key,
                format!(
                    "{name} is not used by `{command}`: its model answers no prompts, and held-out pairs validate it\nhint: leave it out"
                ),
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_named() {
        let common = "steps = 1\nlearning_rate = 1e-3\n";
        let reward_model = |text: &str| {
            let table: RewardModelTrainTable = toml::from_str(&format!("{common}{text}")).unwrap();
            table.validate().map_err(|error| error.to_string())
        };
        let dpo = |text: &str| {
            let table: DpoTable = toml::from_str(&format!("{common}{text}")).unwrap();
            table.validate().map_err(|error| error.to_string())
        };
        assert_eq!((reward_model("batch_size = 8"), dpo("batch_size = 8")), (Ok(()), Ok(())));
        for (found, says) in [
            (reward_model("batch_size = 0"), "train.batch_size must be at least 1, not 0"),
            (
                reward_model("batch_size = 1\ncenter_rewards_coefficient = -1.0"),
                "train.center_rewards_coefficient must be a number of at least 0, not -1",
            ),
            (dpo("batch_size = 1\nbeta = 0.0"), "train.beta must be a number above 0, not 0"),
            (
                dpo("batch_size = 1\nlabel_smoothing = 0.5"),
                "train.label_smoothing must be at least 0 and below 0.5, not 0.5",
            ),
        ] {
            assert_eq!(found, Err(says.to_owned()));
        }
    }
}
