//! Golden cases: a file of dataset rows with completions and their expected
//! verdicts, of the expected rows of a taskset, of sessions of a tool, of attempts of an agent, of
//! the advantages of groups, or of the draws of a sampler. `gavel plugin test` and
//! [`PluginBuilder::cases`](crate::PluginBuilder::cases) run them.

mod attempt;
mod expect;
pub(crate) mod fields;
mod junit;
mod read;
mod run;
mod session;
mod table;
mod update;

pub use attempt::AttemptCase;
pub(crate) use attempt::is_attempt;
pub use read::{Case, CaseFile, Question};
pub(crate) use read::{is_batch, is_request, is_session};
pub use run::{Came, CaseResult, CaseResults, run, run_one};
pub use session::{CallCase, PlayedSession, SessionCase};
pub use table::{FakeChatTable, TestTable};
pub use update::Change;
