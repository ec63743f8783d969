//! `gavel reward-model` and `gavel dpo`: learning from pairs, of which one side is preferred.

mod conversations;
mod method;
mod pair_row;
mod responses;
mod run;

use crate::config::{Config, DpoTable, RewardModelTrainTable};
use crate::control::Control;
use crate::dry_run::DryRun;
use crate::error::Result;
use crate::{Start, Summary};

/// Runs `gavel reward-model`, until its last step or until `control` asks it to end.
///
/// # Errors
/// Anything that the configuration names cannot be used, or training fails.
pub fn reward_model(config: &Config<RewardModelTrainTable>, start: Start, control: &Control) -> Result<Summary> {
    run::run(config, start, control)
}

/// Checks all that `gavel reward-model` would use.
///
/// # Errors
/// Anything that the configuration names cannot be used.
pub fn dry_run_reward_model(config: &Config<RewardModelTrainTable>) -> Result<DryRun> {
    run::dry_run(config)
}

/// Runs `gavel dpo`, until its last step or until `control` asks it to end.
///
/// # Errors
/// Anything that the configuration names cannot be used, or training fails.
pub fn dpo(config: &Config<DpoTable>, start: Start, control: &Control) -> Result<Summary> {
    run::run(config, start, control)
}

/// Checks all that `gavel dpo` would use.
///
/// # Errors
/// Anything that the configuration names cannot be used.
pub fn dry_run_dpo(config: &Config<DpoTable>) -> Result<DryRun> {
    run::dry_run(config)
}
