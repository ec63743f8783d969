//! `[train]`: how a policy learns, for `gavel train` and for `gavel sft`.

use super::checks::at_least_one;
use super::error::ConfigError;
use super::learning::{LearningConfig, train_table};
use super::train_table::TrainTable;
use gavel_data::{MOST_REWARD, OutcomeKind};
use gavel_scoring::recording::{Grouping, OfSample, Substitute};
use gavel_train::{AdvantageConfig, Estimator, LossConfig};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What becomes of a sample that was not scored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnOutcome {
    /// It is left out of its group.
    #[default]
    Drop,
    /// It counts with this reward: an explicit choice, never a default.
    Score(f64),
    /// It counts with the lowest reward that there may be, where its response exhausted a plugin; otherwise it is left
    /// out of its group.
    #[serde(rename = "lowest-if-caused")]
    LowestIfCaused,
}

/// `[train.filter_groups]`: groups whose rewards are all equal are dropped, and others drawn in their place ("dynamic
/// sampling": Yu et al., "DAPO", 2025).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilterGroups {
    /// How many times `prompts_per_step` groups a step may try; 10 by default. It then trains on those that it has.
    pub max_num_gen_batches: usize,
}

impl Default for FilterGroups {
    fn default() -> Self {
        Self { max_num_gen_batches: 10 }
    }
}

train_table! {
    /// `[train]` of `gavel train`
    pub struct RlTable {
        /// How rewards become advantages; `grpo` by default.
        #[serde(default)]
        pub algorithm: Estimator,
        /// Prompts in each step's rollout.
        pub prompts_per_step: usize,
        /// Prompts in each optimiser step; must divide `prompts_per_step`, which it is by default.
        pub mini_batch_prompts: Option<usize>,
        /// The loss; PPO's clipped surrogate by default.
        #[serde(default)]
        pub loss: LossConfig,
        /// What becomes of samples without a reward, by outcome; all are dropped by default.
        #[serde(default)]
        pub on_outcome: BTreeMap<OutcomeKind, OnOutcome>,
        /// Whether groups that nothing can be learned from are dropped and others drawn in their place; no by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub filter_groups: Option<FilterGroups>,
        /// A group with fewer scored samples is dropped; 2 by default.
        #[serde(default = "two")]
        pub min_scored: usize,
        /// The run stops when more than this share of a step's samples has a fault, is out of budget or unavailable;
        /// 0.5 by default.
        #[serde(default = "half")]
        pub max_failure_rate: f64,
    }
}

train_table! {
    /// `[train]` of `gavel sft`
    pub struct SftTable {
        /// Rows in each step.
        pub batch_size: usize,
        /// Training ends once `val/accuracy` is above this; never by default.
        pub stop_accuracy: Option<f64>,
    }
}

fn micro_batch() -> usize {
    16_384
}

fn ten() -> u64 {
    10
}

fn two() -> usize {
    2
}

fn half() -> f64 {
    0.5
}

impl RlTable {
    /// The advantage's settings.
    pub fn advantage(&self) -> AdvantageConfig {
        AdvantageConfig { estimator: self.algorithm }
    }

    /// What decides, beside the rewards, which samples are learned from.
    pub fn grouping(&self) -> Grouping {
        let scores = self.on_outcome.iter().filter_map(|(kind, choice)| match choice {
            OnOutcome::Score(score) => Some((*kind, Substitute::Score(*score))),
            OnOutcome::LowestIfCaused => Some((*kind, Substitute::OfSample(OfSample::LowestIfCaused))),
            OnOutcome::Drop => None,
        });
        Grouping { on_outcome: scores.collect(), min_scored: self.min_scored }
    }

    /// Prompts in each optimiser step.
    pub fn mini_batch(&self) -> usize {
        self.mini_batch_prompts.unwrap_or(self.prompts_per_step)
    }
}

impl TrainTable for RlTable {
    const LEARNS: bool = true;
    const DRAWS: bool = true;

    fn validate(&self) -> Result<(), ConfigError> {
        self.learning().validate()?;
        at_least_one("train.prompts_per_step", self.prompts_per_step)?;
        at_least_one("train.mini_batch_prompts", self.mini_batch())?;
        if !self.prompts_per_step.is_multiple_of(self.mini_batch()) {
            let must = format!("a divisor of prompts_per_step ({})", self.prompts_per_step);
            return Err(ConfigError::value("train.mini_batch_prompts", &must, self.mini_batch()));
        }
        if let Some(filter) = &self.filter_groups {
            at_least_one("train.filter_groups.max_num_gen_batches", filter.max_num_gen_batches)?;
        }
        if self.min_scored < 2 {
            return Err(ConfigError::value("train.min_scored", "at least 2", self.min_scored));
        }
        if !(0.0..=1.0).contains(&self.max_failure_rate) {
            return Err(ConfigError::value("train.max_failure_rate", "from 0 to 1", self.max_failure_rate));
        }
        for (kind, choice) in &self.on_outcome {
            let key = format!("train.on_outcome.{}", kind.as_str());
            match choice {
                OnOutcome::Score(score) if !(-MOST_REWARD..=MOST_REWARD).contains(score) => {
                    let must = format!("a score from -{MOST_REWARD:e} to {MOST_REWARD:e}");
                    return Err(ConfigError::value(&key, &must, score));
                }
                _ if *kind == OutcomeKind::Scored => {
                    return Err(ConfigError::Invalid(format!("{key}: what is scored keeps its score")));
                }
                OnOutcome::LowestIfCaused if *kind != OutcomeKind::OutOfBudget => {
                    return Err(ConfigError::Invalid(format!(
                        "{key}: \"lowest-if-caused\" is for out-of-budget alone: an honest answer may meet a fault"
                    )));
                }
                OnOutcome::Score(_) | OnOutcome::Drop | OnOutcome::LowestIfCaused => {}
            }
        }
        Ok(self.loss.validate().map_err(|error| error.within("train.loss"))?)
    }
}

impl TrainTable for SftTable {
    const LEARNS: bool = true;
    const DRAWS: bool = false;

    fn validate(&self) -> Result<(), ConfigError> {
        self.learning().validate()?;
        at_least_one("train.batch_size", self.batch_size)?;
        if let Some(accuracy) = self.stop_accuracy.filter(|accuracy| !(0.0..1.0).contains(accuracy)) {
            return Err(ConfigError::value("train.stop_accuracy", "at least 0 and below 1", accuracy));
        }
        Ok(())
    }
}
