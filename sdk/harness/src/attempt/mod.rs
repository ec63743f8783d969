//! Agents under test: attempts at a task, with a script in place of the policy and the tools.

mod episode;
mod expectation;
mod run;
mod script;

pub use expectation::AttemptExpectation;
pub(crate) use run::attempt;
pub use run::{Attempt, ScriptedConversation};
pub(crate) use script::MAX_TOKENS;
pub use script::{Script, ScriptedCall, ScriptedTurn};
