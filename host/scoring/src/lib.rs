//! Scores samples with the plugins of a run, and reproduces recorded verdicts.
//!
//! A [`Scorer`] holds the plugins of a run with their weights. It starts on a sample as soon as the sample ends. The
//! caller waits for the [`gavel_data::SampleOutcome`] when it is needed. [`recording`] keeps the inputs of each
//! verdict, and [`replay`] reproduces the verdict from them.

mod batch;
pub mod chat;
mod combine;
mod condition;
mod counterfactual;
mod error;
mod exec;
mod in_flight;
mod judge;
mod judges;
mod offline;
mod output_line;
mod outside_use;
mod pending_group;
mod probe;
mod progress;
pub mod recording;
pub mod replay;
mod reward;
mod round;
mod row_groups;
mod scorer;
mod scorer_table;
mod stand_in;
mod unfinished;
mod waits;

pub use batch::{BatchLost, PendingBatch, ScoreRequest};
pub use condition::{Condition, SourcePattern, When};
pub use error::{ScorerError, Uncovered};
pub use exec::ExecTable;
pub use in_flight::InFlight;
pub use offline::{Attempts, CompletionError, completion, has_completion};
pub use output_line::write_line;
pub use outside_use::OutsideUse;
pub use pending_group::PendingGroup;
pub use probe::{PROBED_RESPONSE, Probe, ProbedRow};
pub use progress::{JudgeWait, Progress};
pub use row_groups::{RowGroup, RowGroups, RowOutcome, StartedRow};
pub use scorer::{Pending, Scorer, ScorerConfig, WeightedPlugin};
pub use scorer_table::{NamedComponent, ScorerTable};
pub use stand_in::stand_in;
