//! Tests a built component in the sandbox that training uses.
//!
//! ```no_run
//! use gavel_harness::{Harness, sample};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), gavel_harness::HarnessError> {
//! let harness = Harness::new()?;
//! let plugin = harness.plugin("build/polite.wasm").params(json!({"greeting": "Hi"})).load()?;
//! plugin.score(sample("Hi there").ground_truth("x")).assert_score(1.0);
//! plugin.score(sample("")).assert_score(0.0).assert_reason("no greeting");
//! # Ok(())
//! # }
//! ```
//!
//! [`sample`] and [`trajectory`] build a plugin's input. A failed assertion of
//! a [`Call`] shows everything that is known of the call.
//! [`LoadedPlugin::session`] calls the functions of a tool.
//! [`PluginBuilder::cases`] runs a file of golden cases, and
//! [`LoadedPlugin::assert_never_faults`] tries random samples.

mod about;
mod attempt;
mod batch;
mod bench;
mod call;
mod chat;
pub mod check;
mod distribution;
mod endpoints;
mod error;
mod expectation;
mod generate;
mod golden;
mod harness;
mod http;
mod plugin;
mod plugins;
mod property;
mod report;
mod request;
mod rows;
mod sample;
mod script;
mod tool;
mod trajectory;
mod verdicts;

pub use attempt::{Attempt, AttemptExpectation, Script, ScriptedCall, ScriptedConversation, ScriptedTurn};
pub use bench::{BenchReport, Reuse, bench};
pub use call::Call;
pub use chat::FakeChat;
pub use distribution::Distribution;
pub use error::{CaseError, HarnessError};
pub use expectation::{Expectation, Mismatch};
pub use generate::{groups, json_values, messages, samples, samples_like, tasks, texts, trajectories};
pub use golden::{
    AttemptCase, CallCase, Came, Case, CaseFile, CaseResult, CaseResults, Change, FakeChatTable, PlayedSession,
    Question, SessionCase, TestTable, run, run_one,
};
pub use harness::{Harness, Recorded, recorded};
pub use http::FakeHttp;
pub use plugin::{LoadedPlugin, PluginBuilder};
pub use rows::{DataRow, PluginData, read_rows};
pub use sample::{SampleBuilder, sample, sample_of};
pub use tool::{CallExpectation, FunctionCall, Session};
pub use trajectory::{TrajectoryBuilder, trajectory};

/// The page for authors, whose examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/testing.md")]
struct Page;
