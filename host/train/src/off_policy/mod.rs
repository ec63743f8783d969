//! Correction of data that another policy wrote, from the log-probabilities that rollout recorded.
//!
//! Three policies are kept apart (Hilton et al., "Batch size-invariance for policy optimization", 2022): the
//! *behaviour* policy drew a token, the *proximal* policy is the policy before the step's first update, and the
//! *current* policy is the policy that is updated. The loss compares the current with the proximal policy. Its weight
//! is `proximal / behaviour`, truncated, or 0 if these two are too far apart.

mod config;
mod correction;
mod staleness;

pub use config::{OffPolicyConfig, RolloutIs, RolloutRs};
pub(crate) use correction::{Correction, Ratios};
pub use staleness::Staleness;
