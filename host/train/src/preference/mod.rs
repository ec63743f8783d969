//! Learning from pairs: a reward model that prefers the better conversation of each ([`Trainer::reward_model_step`]),
//! or a policy that prefers the better response ([`Trainer::dpo_step`]).
//!
//! [`Trainer::reward_model_step`]: crate::Trainer::reward_model_step
//! [`Trainer::dpo_step`]: crate::Trainer::dpo_step

mod bradley_terry;
mod dpo;
mod pair_statistics;
mod reward_model;

pub use bradley_terry::BradleyTerryConfig;
pub use dpo::{DpoConfig, ResponsePair};
pub use pair_statistics::PairStats;
pub use reward_model::ConversationPair;
