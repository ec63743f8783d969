//! The keys of `[train]` that `gavel train` and `gavel sft` share.

use crate::checks::at_least_one;
use crate::error::ConfigError;
use gavel_train::{OptimizerConfig, ScheduleConfig};

/// How weights are learned, from samples or from a dataset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearningConfig {
    /// Steps of the run.
    pub steps: u64,
    /// Tokens in each forward pass.
    pub max_tokens_per_micro_batch: usize,
    /// Whether the backward pass computes each layer again.
    pub gradient_checkpointing: bool,
    /// The learning rate over the run.
    pub schedule: ScheduleConfig,
    /// The optimiser's settings.
    pub optimizer: OptimizerConfig,
    /// Steps between validations.
    pub validate_every: u64,
}

impl LearningConfig {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        at_least_one("train.steps", self.steps as usize)?;
        at_least_one("train.max_tokens_per_micro_batch", self.max_tokens_per_micro_batch)?;
        at_least_one("train.validate_every", self.validate_every as usize)?;
        self.schedule.over(self.steps).map_err(|error| ConfigError::from(error.within("train")))?;
        Ok(self.optimizer.validate().map_err(|error| error.within("train.optimizer"))?)
    }
}

/// Declares a `[train]` table with the shared keys and its own, one of which has the rows of a step. (`serde(flatten)`
/// would lose the name of a wrong key.)
macro_rules! train_table {
    ($(#[$about:meta])* pub struct $name:ident by $rows_per_step:ident { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The most optimiser steps; in reinforcement learning, policy versions to make.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub steps: Option<u64>,
            /// How often the rows are gone through, in place of `steps`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub epochs: Option<u64>,
            /// Tokens in each forward pass; 16384 by default. It changes memory and speed, not the result.
            #[serde(default = "micro_batch")]
            pub max_tokens_per_micro_batch: usize,
            /// Whether the backward pass computes each layer again instead of keeping its activations: less memory,
            /// about a third more work; no by default.
            #[serde(default)]
            pub gradient_checkpointing: bool,
            /// The highest learning rate.
            pub learning_rate: f64,
            /// Steps in which the rate rises to `learning_rate`; 0 by default.
            #[serde(default)]
            pub warmup_steps: u64,
            /// The rate after the warm-up: `constant` (default), `linear` or `cosine`.
            #[serde(default)]
            pub schedule: gavel_train::ScheduleKind,
            /// The final value of a falling rate, as a share of the highest; 0 by default.
            #[serde(default)]
            pub min_lr_ratio: f64,
            /// The optimiser's settings.
            #[serde(default)]
            pub optimizer: gavel_train::OptimizerConfig,
            /// Steps between validations; 10 by default. The first and the last step are always validated.
            #[serde(default = "ten")]
            pub validate_every: u64,
            $($own)*
        }

        impl $name {
            /// The steps of a run over `rows` rows.
            pub fn steps(&self, rows: usize) -> u64 {
                let of_epochs = |epochs: u64| epochs.saturating_mul(rows as u64).div_ceil(self.$rows_per_step as u64);
                self.steps.or_else(|| self.epochs.map(of_epochs)).unwrap_or_default()
            }

            /// Refuses values of the shared keys that are not valid, naming the key.
            fn validate_learning(&self) -> Result<(), ConfigError> {
                at_least_one(concat!("train.", stringify!($rows_per_step)), self.$rows_per_step)?;
                match (self.steps, self.epochs) {
                    (None, None) => Err(ConfigError::invalid(
                        "train.steps",
                        "train.steps is missing\nhint: or set train.epochs",
                    )),
                    (Some(_), Some(_)) => Err(ConfigError::invalid(
                        "train.epochs",
                        "train.steps and train.epochs are two lengths of one run\nhint: leave one of them out",
                    )),
                    (None, Some(0)) => Err(ConfigError::value("train.epochs", "at least 1", 0)),
                    // How many steps they are depends on the data.
                    (None, Some(_)) => self.learning(usize::MAX).validate(),
                    (Some(_), None) => self.learning(0).validate(),
                }
            }

            /// How weights are learned in a run over `rows` rows.
            pub fn learning(&self, rows: usize) -> LearningConfig {
                LearningConfig {
                    steps: self.steps(rows),
                    max_tokens_per_micro_batch: self.max_tokens_per_micro_batch,
                    gradient_checkpointing: self.gradient_checkpointing,
                    schedule: gavel_train::ScheduleConfig {
                        learning_rate: self.learning_rate,
                        warmup_steps: self.warmup_steps,
                        kind: self.schedule,
                        min_ratio: self.min_lr_ratio,
                    },
                    optimizer: self.optimizer,
                    validate_every: self.validate_every,
                }
            }
        }
    };
}

pub(super) use train_table;
