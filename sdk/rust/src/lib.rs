//! The SDK for plugins of Gavel in Rust.
//!
//! A reward is one type that implements [`Reward`], exported by
//! [`export_reward!`] and built as a WebAssembly component; a [`Judger`]
//! compares the samples of a group, a [`Taskset`] is a dataset, a [`Tool`] has
//! functions that the policy may call, an [`Agent`] attempts a task over
//! conversations with the [`policy`], an [`Advantage`] turns the rewards of
//! groups into advantages, a [`Sampler`] draws the tasks of a run, and [`chat`]
//! asks language models.
//!
//! ```toml
//! # Cargo.toml
//! [lib]
//! crate-type = ["cdylib"]
//!
//! [dependencies]
//! gavel-sdk = "0.1"
//! serde = { version = "1", features = ["derive"] }
//! ```
//!
//! ```
//! // src/lib.rs
//! use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
//!
//! /// Scores 1 if the response ends in the ground truth.
//! struct EndsWithTruth {
//!     params: Params,
//! }
//!
//! /// The keys of `[[reward]].params` in a run's configuration.
//! #[derive(serde::Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Params {
//!     /// Whether a final full stop is ignored.
//!     #[serde(default)]
//!     ignore_full_stop: bool,
//! }
//!
//! impl Reward for EndsWithTruth {
//!     type Params = Params;
//!
//!     fn new(params: Params) -> Result<Self, String> {
//!         Ok(Self { params })
//!     }
//!
//!     fn info(&self) -> Info {
//!         Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
//!     }
//!
//!     fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
//!         let truth = reference.require_ground_truth()?;
//!         let response = sample.response();
//!         let mut text = response.trim_end();
//!         if self.params.ignore_full_stop {
//!             text = text.trim_end_matches('.');
//!         }
//!         let correct = text.ends_with(truth.trim());
//!         Ok(Score::new(f64::from(correct)).metric("bytes", text.len() as f64).into())
//!     }
//! }
//!
//! gavel_sdk::export_reward!(EndsWithTruth);
//! # fn main() {}
//! ```
//!
//! `cargo build --release --target wasm32-wasip2` gives the component. Try it
//! on a file of completions with
//! `gavel score --plugin reward.wasm --data rows.jsonl --out scores.jsonl`.
//!
//! # What the host does with it
//!
//! The parameters of a run are parsed once, in `init`. Every call of
//! [`Reward::score`] then starts from that state, whatever other calls did. If
//! a call panics, exceeds its time or its memory, or returns a [`Failure`], its
//! sample has no score. The failure is counted by its kind, never as a score
//! of 0. Nothing is granted by default: no file, no network and no environment.
//! Clocks and random numbers repeat.
//!
//! The types come from the contract (`wit/` in Gavel's repository), with a few
//! conveniences added. They compile on every target, so a plugin's pure logic
//! can be tested with plain `cargo test`. The methods of [`Sample`] and
//! [`Reference`] work only inside a host and panic elsewhere.

pub mod advantage;
mod agent;
pub mod answer;
pub mod bindings;
pub mod chat;
mod credit;
pub mod exec;
mod input;
mod instance;
mod judger;
pub mod policy;
mod reward;
pub mod reward_model;
pub mod sampler;
mod taskset;
mod tool;
pub mod tools;
mod verdict;

pub use advantage::Advantage;
pub use agent::Agent;
pub use bindings::agent::Answer;
pub use bindings::gavel::plugin::references::Reference;
pub use bindings::gavel::plugin::samples::{CallEnding, EndedCall, Sample, Trajectory};
pub use bindings::gavel::plugin::tasks::Task;
pub use bindings::gavel::plugin::types::{
    ContentPart, Credit, Failure, FinishReason, Media, Message, Metric, PriorVerdict, Role, Score, ToolCall, ToolSpec,
    Verdict,
};

pub use bindings::lifecycle::{Info, ScoreRange};
pub use credit::ResponseSpans;
pub use instance::NoParams;
pub use judger::Judger;
pub use reward::Reward;
pub use sampler::Sampler;
pub use taskset::Taskset;
pub use tool::Tool;

/// The expansion of the export macros. Not part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::instance::Instance;
    pub use crate::taskset::row;
    pub use crate::tool::Session;
}
