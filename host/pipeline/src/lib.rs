//! The schedule of a run: rollout, scoring and training together; validation;
//! what is recorded and how it is taken up again.

mod advantages;
mod at_k;
mod broken_judges;
mod check;
pub mod config;
mod control;
mod dataset;
mod dry_run;
mod endpoint_rollout;
mod error;
mod evaluation;
mod failure_rate;
mod generations;
mod group_queue;
pub mod hub;
mod ledger;
mod memory;
mod mixture;
mod pace;
mod policy;
mod probe;
mod prompts;
mod recorder;
mod resume;
mod rl_step;
mod rollout;
mod run;
mod samples_in_flight;
mod setup;
mod sft;
mod sft_rows;
mod step_metrics;
mod task_stream;
#[cfg(test)]
mod testing;
mod train;
mod unlearned;
mod updater;
mod validation;
mod validation_metrics;

pub use check::Check;
pub use config::Config;
pub use control::Control;
pub use dry_run::{DryRun, dry_run_sft, dry_run_train};
pub use error::PipelineError;
pub use evaluation::{EvalOptions, Evaluated, evaluate};
pub use generations::generations;
pub use ledger::LongWait;
pub use memory::{Part, Prediction};
pub use sft::sft;
pub use train::train;
pub use validation_metrics::SourceNumbers;

use std::collections::BTreeMap;
use std::path::PathBuf;

/// How a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// In a folder of its own.
    New,
    /// In the newest folder of its name.
    Resume {
        /// The step whose checkpoint it goes on from; the last one by default.
        from: Option<u64>,
        /// Whether it may go on with other plugins than it had.
        allow_changed_plugins: bool,
    },
}

/// What a run came to.
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
    /// What became of groups: trained on, or dropped for which reason.
    pub groups: BTreeMap<String, u64>,
    /// Seconds that the device had nothing to do, by what it waited for.
    pub device_wait: BTreeMap<String, f64>,
    /// The longest of these waits.
    pub longest_waits: Vec<LongWait>,
    /// Whether the run was asked to end before its last step.
    pub is_stopped: bool,
}
