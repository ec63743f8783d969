//! Agents under test: attempts at a task, with a script in place of the policy and the tools.

mod conversation;
mod episode;
mod expectation;
mod run;
mod script;

pub use conversation::ScriptedConversation;
pub use expectation::AttemptExpectation;
pub use run::Attempt;
pub(crate) use run::attempt;
pub(crate) use script::MAX_TOKENS;
pub use script::{Script, ScriptedCall, ScriptedTurn};
