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
//!         let answers = tools::answer(&turn);
//!         if answers.is_empty() {
//!             return Ok(turn.text());
//!         }
//!         conversation.append(answers)?;
//!     }
//! }
//! ```

pub use crate::bindings::gavel::plugin::tools::{call, specs};

use crate::policy::Turn;
use crate::{Message, Role};

/// Makes all calls of a turn, and returns their answers. The answer to a call
/// that cannot be parsed says what is wrong with it. Empty if the turn has no
/// calls.
pub fn answer(turn: &Turn) -> Vec<Message> {
    let calls = turn.message().tool_calls;
    let mut answers = if calls.is_empty() { Vec::new() } else { call(&calls) };
    let unreadable = |why| Message::new(Role::Tool, format!("error: the call cannot be read: {why}"));
    answers.extend(turn.malformed_calls().into_iter().map(unreadable));
    answers
}
