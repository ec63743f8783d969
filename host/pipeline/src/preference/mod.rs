//! `gavel reward-model` and `gavel dpo`: learning from pairs, of which one side is preferred.

mod dpo;
mod method;
mod pair_row;
mod reward_model;
mod run;

use crate::commands::{DryRun, ShownRow};
use crate::error::Result;
use crate::run::{Control, Planned, Start, Summary};
use gavel_config::{Config, DpoTable, RewardModelTrainTable};
use gavel_torch::peers::Peers;
use std::num::NonZeroUsize;

/// Runs `gavel reward-model`, until its last step or until `control` asks it to end. `peers` are the ranks of the run,
/// all of which call this.
///
/// # Errors
/// A rank is gone or has another configuration, anything that the configuration names cannot be used, or training fails.
pub fn reward_model(
    config: &Config<RewardModelTrainTable>,
    start: Start,
    peers: &Peers,
    control: &Control,
) -> Result<Summary> {
    run::run(config, start, peers, control)
}

/// Checks all that `gavel reward-model` would use. The prediction of memory is for each of the planned ranks.
///
/// # Errors
/// Anything that the configuration names cannot be used.
pub fn dry_run_reward_model(config: &Config<RewardModelTrainTable>, planned: impl Into<Planned>) -> Result<DryRun> {
    run::dry_run(config, planned.into())
}

/// Runs `gavel dpo`, until its last step or until `control` asks it to end. `peers` are the ranks of the run, all of
/// which call this.
///
/// # Errors
/// A rank is gone or has another configuration, anything that the configuration names cannot be used, or training fails.
pub fn dpo(config: &Config<DpoTable>, start: Start, peers: &Peers, control: &Control) -> Result<Summary> {
    run::run(config, start, peers, control)
}

/// Checks all that `gavel dpo` would use. The prediction of memory is for each of the planned ranks.
///
/// # Errors
/// Anything that the configuration names cannot be used.
pub fn dry_run_dpo(config: &Config<DpoTable>, planned: impl Into<Planned>) -> Result<DryRun> {
    run::dry_run(config, planned.into())
}

/// The first `count` pairs of `gavel reward-model`, as it reads them.
///
/// # Errors
/// Anything that the configuration names cannot be used.
pub fn show_reward_model(config: &Config<RewardModelTrainTable>, count: NonZeroUsize) -> Result<Vec<ShownRow>> {
    run::show(config, count)
}

/// The first `count` pairs of `gavel dpo`.
///
/// # Errors
/// Anything that the configuration names cannot be used.
pub fn show_dpo(config: &Config<DpoTable>, count: NonZeroUsize) -> Result<Vec<ShownRow>> {
    run::show(config, count)
}
