//! Correction of data that another policy wrote, from the log-probabilities that rollout recorded.
//!
//! Three policies are kept apart (Hilton et al., "Batch size-invariance for policy optimization", 2022): the
//! *behaviour* policy drew a token, the *proximal* policy is the one before the step's first update, and the *current*
//! policy is the one that is updated. The loss compares current and proximal; its weight is `proximal / behaviour`,
//! truncated, or 0 if the two are too far apart.

mod config;
mod correction;
mod staleness;

pub use config::{OffPolicyConfig, RolloutIs, RolloutRs};
pub(crate) use correction::{Correction, Ratios};
pub use staleness::Staleness;
