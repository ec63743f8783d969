//! Samplers: components that draw the tasks of a run, and decide which groups are trained on.

mod answer;
mod sample;

pub use crate::bindings::exports::gavel::plugin::sampler::{
    Answer, Dataset, EndedGroup, EndedSample, Refusal, Request, SampleOutcome, Task,
};
pub use crate::bindings::gavel::plugin::types::Metric;
pub use sample::SampleCall;

use gavel_data::OutcomeKind;

impl From<OutcomeKind> for SampleOutcome {
    fn from(kind: OutcomeKind) -> Self {
        match kind {
            OutcomeKind::Scored => Self::Scored,
            OutcomeKind::Abstained => Self::Abstained,
            OutcomeKind::Fault => Self::Fault,
            OutcomeKind::OutOfBudget => Self::OutOfBudget,
            OutcomeKind::Unavailable => Self::Unavailable,
        }
    }
}
