//! From a sample to what its plugins say of it, and back to why they said it.
//!
//! A [`Scorer`] holds the plugins of a run with their weights. A sample is handed in the moment it ends, and its
//! [`gavel_data::SampleOutcome`] is waited for when it is needed. What a verdict was made of is kept by [`recording`];
//! [`replay`] gives it again.

mod ahead;
pub mod chat;
mod combine;
mod exec;
mod group;
mod offline;
pub mod recording;
pub mod replay;
mod round;
mod scorer;
mod when;

pub use ahead::Ahead;
pub use combine::{NoReward, PluginCall, combine, weighted_sum};
pub use exec::ExecTable;
pub use group::Group;
pub use offline::{Attempts, CompletionError, completion};
pub use scorer::{Pending, Scorer, ScorerConfig, ScorerError, Uncovered, WeightedPlugin};
pub use when::{Condition, SourcePattern, When};
