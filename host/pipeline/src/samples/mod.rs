//! Samples under way: drawn by an engine or an endpoint, played, and scored.

mod drawn_group;
mod drop_reason;
mod endpoint_rollout;
mod engine_policy;
mod rollout;
mod sample_waits;
mod samples_in_flight;

pub(crate) use drawn_group::DrawnGroup;
pub(crate) use drop_reason::DropReason;
pub(crate) use endpoint_rollout::{EndpointRollout, Question};
pub(crate) use rollout::{Rollout, SampleDraw};
pub(crate) use sample_waits::{ValidationWaits, of_draw, of_score};
pub(crate) use samples_in_flight::{Event, SampleKey, SamplesInFlight};
