//! One thread that owns a device, and the handle that everyone asks: training, validation, evaluation and the server.
//!
//! [`AsyncEngine`] is the handle. [`AsyncEngine::generate`] gives whole responses, [`AsyncEngine::stream`] gives them
//! as they are drawn, [`AsyncEngine::run`] does other work with the model between two steps of decoding, and
//! [`AsyncEngine::change`] changes its weights. [`ServedEngine`] is the handle of servers that draw in its place, and
//! [`RolloutEngine`] is either of them.

mod async_engine;
mod completion;
mod device_thread;
mod device_turns;
mod error;
mod load;
mod observer;
mod request;
mod reward_model;
mod rollout_engine;
mod sampling;
mod served;
mod stop_reader;
mod thread_end;

pub use async_engine::AsyncEngine;
pub use completion::{Completion, Piece, WholeCompletion};
pub use device_thread::{CacheDuring, UnderWay, Weights};
pub use device_turns::DeviceTurns;
pub use error::RolloutError;
pub use load::load;
pub use observer::Observer;
pub use request::{GenerateRequest, Response};
pub use reward_model::{
    Each, Labels, Part, Reading, RewardModel, RewardModelConfig, RewardModelError, RewardModelFootprint,
    RewardModelUsage, StepsConfig, StepsScore,
};
pub use rollout_engine::RolloutEngine;
pub use sampling::default_sampling;
pub use served::{
    FleetCounts, MOST_MASK_IDS, Probe, PublishedWeights, ServedConfig, ServedEngine, ServedError, ServerKind,
    probe_prompt,
};
