//! Advantages: components that turn the rewards of whole groups into advantages.

mod answer;
mod estimate;

pub use crate::bindings::exports::gavel::plugin::advantage::{
    Estimates, Group, Part, SampleAdvantage, ScoredSample, Span, TokenCredit, Trajectory,
};
pub use crate::bindings::gavel::plugin::types::{FinishReason, Metric};
pub use estimate::{Batch, EstimateCall};

use crate::imports::lower_finish_reason;

impl From<gavel_data::FinishReason> for FinishReason {
    fn from(reason: gavel_data::FinishReason) -> Self {
        lower_finish_reason(reason)
    }
}
