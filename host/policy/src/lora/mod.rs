//! Low-rank adapters (Hu et al., "LoRA", arXiv:2106.09685): beside a frozen
//! matrix W stands a product B·A of low rank, which is what is trained. They
//! are computed apart from W, in rollout as in training, so that both have the
//! same rounding and W is there once.

mod adapted_model;
pub(crate) mod adapter;
pub(crate) mod adapter_config;
mod config;
mod files;
pub(crate) mod module;
pub(crate) mod sizes;

pub use config::LoraConfig;
pub use files::adapter_parameters;
pub use module::Module;
