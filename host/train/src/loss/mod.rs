//! The loss that an update minimises.
//!
//! Each loss of a token is one file, such as `ppo_clip.rs`. To add one, add a
//! file here, a variant of [`PolicyLoss`] and its keys in `table.rs`.

mod aggregation;
mod config;
mod objective;
mod old_logprobs;
mod policy_loss;
mod ppo_clip;
mod table;
mod token_loss;

pub use aggregation::Aggregation;
pub use config::LossConfig;
pub(crate) use objective::{Targets, objective};
pub use old_logprobs::OldLogProbs;
pub use policy_loss::PolicyLoss;
pub use ppo_clip::PpoClip;
