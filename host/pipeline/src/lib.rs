//! The schedule of a run: rollout, scoring and training together; validation; what is recorded, and how a run is
//! resumed.

mod advantages;
mod at_k;
mod broken_judges;
mod check;
pub mod config;
mod control;
mod credit;
mod critic;
mod dataset;
mod dry_run;
mod endpoint_rollout;
mod engine_policy;
mod episode_metrics;
mod error;
mod evaluation;
mod exchanged_groups;
mod experience;
mod failure_rate;
mod generations;
mod group_queue;
pub mod hub;
mod learned_turn;
mod learning_state;
mod ledger;
mod logic;
mod memory;
mod mixture;
mod pace;
mod placed_credit;
mod policy;
mod preference;
mod probe;
mod prompts;
mod rank_work;
mod ranks;
mod recorder;
mod reference;
mod resume;
mod reward_model;
mod rl_step;
mod rollout;
mod run;
mod sample_waits;
mod samples_in_flight;
mod setup;
mod sft;
mod sft_rows;
mod show;
mod spending;
mod step_metrics;
mod task_stream;
mod teacher;
#[cfg(test)]
mod testing;
mod token_measures;
mod train;
mod trained;
mod unlearned;
mod updater;
mod validation;
mod validation_metrics;

pub use check::Check;
pub use config::Config;
pub use control::Control;
pub use dry_run::{DryRun, dry_run_sft, dry_run_train};
pub use error::PipelineError;
pub use evaluation::{EvalOptions, EvalProgress, Evaluated, evaluate};
pub use generations::generations;
pub use ledger::LongWait;
pub use memory::{Part, Prediction};
pub use placed_credit::Unplaced;
pub use preference::{dpo, dry_run_dpo, dry_run_reward_model, reward_model, show_dpo, show_reward_model};
pub use reward_model::RewardModels;
pub use sft::sft;
pub use show::{ShownPart, ShownRow, ShownText, show_sft, show_train};
pub use train::train;
pub use validation_metrics::{RIGHT, SourceNumbers};

use std::collections::BTreeMap;
use std::path::PathBuf;

/// How a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A new run in a new folder.
    New,
    /// The newest run of its name continues.
    Resume {
        /// The step of the checkpoint to resume from; the last one by default.
        from: Option<u64>,
        /// Whether the run may continue with changed plugins.
        allow_changed_plugins: bool,
    },
    /// A run whose ranks were started again, as torchrun does it after one has died: it continues from its last
    /// checkpoint, or begins if it has none.
    Again,
}

/// The results of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The run's folder.
    pub folder: PathBuf,
    /// The last step that was taken.
    pub step: u64,
    /// `val/accuracy` at the first and at the last validation.
    pub accuracy: Option<(f64, f64)>,
    /// The newest checkpoint.
    pub checkpoint: Option<PathBuf>,
    /// The checkpoint with the best `val/accuracy`.
    pub best: Option<PathBuf>,
    /// Outcomes in training by plugin and kind.
    pub outcomes: BTreeMap<String, BTreeMap<String, u64>>,
    /// How many groups were trained on, and how many were dropped for which reason.
    pub groups: BTreeMap<String, u64>,
    /// Seconds in which the device had nothing to do, by what it waited for.
    pub device_wait: BTreeMap<String, f64>,
    /// The longest of these waits.
    pub longest_waits: Vec<LongWait>,
    /// Whether the run was asked to end before its last step.
    pub is_stopped: bool,
}
