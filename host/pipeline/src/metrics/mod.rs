//! What the metrics of a step, its episodes and a validation say.

mod allowed_tokens;
mod at_k;
mod episode;
mod failures;
mod slices;
mod step;
mod validation;

pub(crate) use allowed_tokens::allowed_tokens;
pub(crate) use episode::describe_episodes;
pub(crate) use failures::{FailureWindow, diagnosis, sample_name};
pub(crate) use slices::{Slices, TakenGroup};
pub(crate) use step::{describe_latencies, describe_step, latencies, members, outcomes};
pub use validation::{RIGHT, SourceNumbers};
pub(crate) use validation::{by_source, describe_validation};
