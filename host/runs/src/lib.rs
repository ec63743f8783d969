//! The folder of a run: its files, their formats, their writers and their
//! readers.
//!
//! | in the folder ([`layout`]) | | written by | read by |
//! |---|---|---|---|
//! | `run.json` | the version of these formats | [`RunFolder`] | [`read_format`] |
//! | `end.json` | how the run ended | [`RunFolder`] | [`read_ending`] |
//! | `config.toml` | how the run was started, and the configuration with every default | [`RunFolder`] | [`read_config`] |
//! | `metrics.jsonl` | the numbers of each step, a line a step | [`RunFolder`] | [`read_metrics`], [`MetricsFollower`] |
//! | `trajectories/step-NNNNNN.jsonl` | a line a trajectory: what is not the task's, and every plugin's outcome | [`RunFolder`], [`SampleWriter`] | [`SampleReader`] |
//! | `tasks.jsonl` | each task once, by its hash | [`TaskStore`] | [`read_tasks`] |
//! | `rows/step-NNNNNN.jsonl` | a line a row that a step of `gavel sft` trained on | [`RunFolder`] | [`read_rows`] |
//! | `calls/step-NNNNNN.jsonl` | a line a request that a plugin made, and that ended in the step | [`RunFolder`], [`CallStore`] | |
//! | `validation/` | answers to the validation set, in `trajectories/` and `tasks.jsonl` of this folder | [`RunFolder`] | [`SampleReader`] |
//! | `plugins/lineups.json` | the plugins with parameters, limits and weights, and since which step | [`write_plugin_sets`] | [`read_plugin_sets`] |
//! | `plugins/<hash>.wasm` | the components | [`keep_component`] | [`find_component`] |
//! | `checkpoints/step-NNNNNN/` | the policy, its optimiser, where the run stood, and the hash of every file | [`RunFolder`] | [`Checkpoints`] |
//! | `tape/` | what plugins were answered from outside | the sandbox | the sandbox |
//! | `lock` | the process that writes into the folder | [`RunFolder`] | [`writer`] |
//! | `index/` | where in `trajectories/` and `tasks.jsonl` each sample and task is | [`SampleReader`] | [`SampleReader`] |
//! | `trackers/` | which steps trackers were sent | gavel-tracking | gavel-tracking |
//! | `wandb/` | the run as Weights & Biases keeps it offline | gavel-tracking | `wandb sync` |
//! | `events.out.tfevents.*` | the numbers of each step, for TensorBoard | [`RunFolder`] | |
//!
//! Of several ranks, each has its own `trajectories/step-NNNNNN.rank-N.jsonl`, `rows/step-NNNNNN.rank-N.jsonl`,
//! `calls/step-NNNNNN.rank-N.jsonl`, `tasks.rank-N.jsonl` and index of the tape; readers take them together.
//!
//! A run under way has one [`RunFolder`], in one process; readers do not need
//! it. After a kill or a power cut at any moment, the folder can be replayed
//! and resumed from. The folder that `gavel score --record` makes has the
//! samples, the tasks, the plugins, the tape and the requests.

mod calls;
mod checkpoints;
mod config;
mod config_diff;
mod config_file;
mod damage;
mod details;
mod ending;
mod error;
mod export;
mod follow;
mod format;
mod holder;
mod key_line;
mod last_lines;
pub mod layout;
mod leftovers;
mod line_index;
pub mod metrics;
mod metrics_log;
mod named_tables;
mod overview;
mod plugin_sets;
#[cfg(test)]
mod power_cut;
mod queue;
mod removal;
mod rows;
mod run_folder;
mod run_lock;
mod samples;
#[cfg(test)]
mod special_files;
mod step_files;
mod task_finder;
mod tasks;
mod tensorboard;

pub use calls::{CallStore, call_files};
pub use checkpoints::{Checkpoints, Retention, Spent, State, check_weights};
pub use config::{is_within, read_config};
pub use config_diff::{Difference, differences};
pub use config_file::{ConfigFile, ConfigFileError};
pub use damage::DamagedLine;
pub use details::{CheckpointSize, Details};
pub use ending::{EndKind, Ending, read_ending};
pub use error::RunError;
pub use export::{Exported, ExportedTable, export};
pub use format::{FORMAT, read_format};
pub use holder::Holder;
pub use leftovers::half_removed;
pub use metrics::Metrics;
pub use metrics_log::{MetricsFollower, NewMetrics, read_metrics};
pub use named_tables::{find_named, table_name, table_names};
pub use overview::{ListedRun, Overview, RunState, is_run, list_runs};
pub use plugin_sets::{find_component, is_component, keep_component, read_plugin_sets, write_plugin_sets};
pub use queue::{QueuedGroup, QueuedSample};
pub use removal::{check_removable, remove_run};
pub use rows::{TrainedRow, read_rows};
pub use run_folder::{FolderConfig, Rewound, RunFolder};
pub use run_lock::writer;
pub use samples::{
    RecordedSample, SampleFile, SampleGlance, SampleReader, SampleWriter, Samples, ScoredSample, VerdictGlance,
    response_ids, sample_files,
};
pub use tasks::{TaskStore, Tasks, read_tasks};
