//! From a sample to what its plugins say of it.
//!
//! A [`Scorer`] holds the plugins of a run with their weights. A sample is handed in the moment it ends, and its
//! [`gavel_data::SampleOutcome`] is waited for when it is needed.

mod combine;
mod offline;
mod scorer;

pub use combine::combine;
pub use offline::{CompletionError, completion};
pub use scorer::{Pending, Scorer, ScorerError, WeightedPlugin};
