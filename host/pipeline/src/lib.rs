//! The schedule of a run: rollout, scoring and training together; validation; what is recorded, and how a run is
//! resumed.

mod commands;
mod episode_kind;
mod error;
mod memory;
mod metrics;
mod preference;
mod ranks;
mod reward_model;
mod rl;
mod rows;
mod run;
mod samples;
#[cfg(test)]
mod testing;

pub use commands::{DryRun, EvalOptions, EvalProgress, Evaluated, ShownPart, ShownRow, ShownText};
pub use commands::{dry_run_sft, dry_run_train, evaluate, generations, sft, show_sft, show_train};
pub use error::{PipelineError, Unplaced};
pub use memory::{Part, Prediction};
pub use metrics::{RIGHT, SourceNumbers};
pub use preference::{dpo, dry_run_dpo, dry_run_reward_model, reward_model, show_dpo, show_reward_model};
pub use reward_model::RewardModels;
pub use rl::train;
pub use run::{Check, Control, LongWait, Planned, PlannedGpu, Start, Summary};
