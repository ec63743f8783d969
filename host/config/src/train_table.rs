//! What every `[train]` table defines.

use crate::algorithm::ReferenceTable;
use crate::critic::CriticTable;
use crate::error::ConfigError;
use crate::tables::RolloutTable;
use std::time::Duration;

/// The default of `max_failure_rate`.
const HALF: f64 = 0.5;

/// The kind of a run's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// A language model, the policy.
    Policy,
    /// A classifier with one label, which may be made from a language model.
    RewardModel,
}

/// The `[train]` table of a command.
pub trait TrainTable {
    /// Whether the command changes weights.
    const LEARNS: bool;
    /// Whether the command draws the samples that it learns from.
    const DRAWS: bool;
    /// The command, if its model answers no prompts, neither in training nor in validation.
    const WITHOUT_ANSWERS: Option<&'static str> = None;
    /// The kind of its model.
    const MODEL: ModelKind = ModelKind::Policy;

    /// Fills in the defaults that depend on `schedule.max_staleness` and on other keys.
    fn complete(&mut self, _max_staleness: u64) {}

    /// Fills in the defaults that depend on how responses are drawn.
    fn follow_rollout(&mut self, _rollout: &RolloutTable) {}

    /// Whether rollout records the tokens that could be drawn, and their log-probabilities among these.
    fn records_masks(&self, _rollout: &RolloutTable) -> bool {
        false
    }

    /// Whether training corrects for samples that were drawn from another distribution than its own.
    fn corrects_rollout(&self) -> bool {
        false
    }

    /// The reference, if it is not the policy that the run starts from.
    fn reference(&self) -> Option<&ReferenceTable> {
        None
    }

    /// The name of the plugin that turns rewards into advantages, if there is one.
    fn advantage(&self) -> Option<&str> {
        None
    }

    /// The critic, if there is one.
    fn critic(&self) -> Option<&CriticTable> {
        None
    }

    /// The most versions that a token may be behind the policy, if there is a bound.
    fn max_token_staleness(&self) -> Option<u64> {
        None
    }

    /// Replaces names on the hub by local folders.
    fn find_on_hub(&mut self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// The smallest group that can be learned from.
    fn least_group(&self) -> usize {
        1
    }

    /// The share of samples that may fail.
    fn max_failure_rate(&self) -> f64 {
        HALF
    }

    /// The longest pause of a run while a server does not answer; `None` for commands that do not stop after one.
    fn max_pause(&self) -> Option<Duration> {
        None
    }

    /// Refuses values out of range and keys that do not fit together, naming the key.
    fn validate(&self) -> Result<(), ConfigError>;
}

/// For commands that do not learn: they accept any `[train]`.
impl TrainTable for toml::Table {
    const LEARNS: bool = false;
    const DRAWS: bool = false;

    /// Evaluation tries its rewards, too.
    fn max_failure_rate(&self) -> f64 {
        let rate = self.get("max_failure_rate");
        rate.and_then(|rate| rate.as_float().or(rate.as_integer().map(|rate| rate as f64))).unwrap_or(HALF)
    }

    fn validate(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}
