//! The loss that an update minimises.
//!
//! Each policy loss is one file, such as `ppo_clip.rs`: its formula, its keys, its tests. To add one, add a file here,
//! its entry in the list of `registry.rs`, and the keys that no other loss has in `table.rs`.

mod aggregation;
mod cispo;
mod clip_cov;
mod config;
mod covariance;
mod distillation;
mod dppo;
mod dro;
mod geo_mean;
mod gpg;
mod gspo;
mod icepop;
mod kl_cov;
mod m2po;
mod objective;
mod old_logprobs;
mod ppo_clip;
mod registry;
mod sapo;
mod table;
#[cfg(test)]
mod testing;
mod token_loss;

pub use aggregation::Aggregation;
pub use cispo::Cispo;
pub use clip_cov::ClipCov;
pub use config::LossConfig;
pub use distillation::DistillationConfig;
pub use dppo::{Divergence, Dppo};
pub use dro::Dro;
pub use geo_mean::GeoMean;
pub use gpg::Gpg;
pub use gspo::Gspo;
pub use icepop::IcePop;
pub use kl_cov::KlCov;
pub use m2po::M2po;
pub(crate) use objective::{Targets, objective};
pub use old_logprobs::OldLogProbs;
pub use ppo_clip::PpoClip;
pub use registry::PolicyLoss;
pub use sapo::Sapo;
pub use token_loss::ClipRange;
pub(crate) use token_loss::LearnedToken;
#[cfg(test)]
pub(crate) use token_loss::Tokens;
