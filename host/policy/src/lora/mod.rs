//! Low-rank adapters (Hu et al., "LoRA", arXiv:2106.09685): a product B·A of
//! low rank is trained beside a frozen matrix W. It is computed apart from W,
//! in rollout as in training, so that both round alike and W is in memory once.

mod adapted_model;
pub(crate) mod adapter;
pub(crate) mod adapter_config;
mod config;
mod files;
pub(crate) mod module;
pub(crate) mod sizes;

pub use config::LoraConfig;
pub use files::adapter_parameters;
pub(crate) use files::head;
pub use module::Module;
