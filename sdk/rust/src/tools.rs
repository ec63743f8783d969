//! The tools of the run, as an [`Agent`](crate::Agent) calls them.
//!
//! ```no_run
//! use gavel_sdk::policy::{Conversation, Options};
//! use gavel_sdk::{Failure, Task, tools};
//!
//! /// The policy calls tools until it answers.
//! fn answer(task: &Task) -> Result<String, Failure> {
//!     let conversation = Conversation::open("", task.prompt(), &tools::specs())?;
//!     loop {
//!         let turn = conversation.generate(&Options::default())?;
//!         let calls = turn.message().tool_calls;
//!         if calls.is_empty() {
//!             return Ok(turn.text());
//!         }
//!         conversation.append(tools::call(&calls))?;
//!     }
//! }
//! ```

pub use crate::bindings::gavel::plugin::tools::{call, specs};
