//! From a sample to what its plugins say of it, and back to why they said it.
//!
//! A [`Scorer`] holds the plugins of a run with their weights. A sample is handed in the moment it ends, and its
//! [`gavel_data::SampleOutcome`] is waited for when it is needed. What a verdict was made of is kept by [`recording`];
//! [`replay`] gives it again.

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
mod pending_group;
mod probe;
mod progress;
pub mod recording;
pub mod replay;
mod reward;
mod round;
mod scorer;
mod waits;

pub use condition::{Condition, SourcePattern, When};
pub use error::{ScorerError, Uncovered};
pub use exec::ExecTable;
pub use in_flight::InFlight;
pub use offline::{Attempts, CompletionError, completion, has_completion};
pub use pending_group::PendingGroup;
pub use probe::{PROBED_RESPONSE, Probe};
pub use progress::{JudgeWait, Progress};
pub use scorer::{Pending, Scorer, ScorerConfig, WeightedPlugin};
