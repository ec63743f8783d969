//! Servers that draw in place of an engine of this process: vLLM, or `gavel serve`.
//!
//! [`ServedEngine`] is their handle. A conversation stays at its server; other requests go where the least is under way.
//! The requests of a server that is lost are drawn again at another one. A server that comes back gets the current
//! weights before its first request.

mod config;
mod drawing;
mod engine;
pub(crate) mod error;
mod failure;
mod fleet;
mod masks;
mod messages;
mod paused;
mod pool;
mod probe;
mod run_name;
mod server;
mod weights;

pub use config::{ServedConfig, ServerKind};
pub use engine::{FleetCounts, ServedEngine};
pub use error::ServedError;
pub use masks::MOST_MASK_IDS;
pub use probe::{Probe, probe_prompt};
pub use weights::PublishedWeights;
