//! Golden cases: a file of dataset rows with completions and their expected
//! verdicts, of the expected rows of a taskset, or of sessions of a tool. `gavel plugin test` and
//! [`PluginBuilder::cases`](crate::PluginBuilder::cases) run them.

mod expect;
pub(crate) mod fields;
mod junit;
mod read;
mod run;
mod session;
mod table;
mod update;

pub(crate) use read::is_session;
pub use read::{Case, CaseFile, Question};
pub use run::{Came, CaseResult, CaseResults, run};
pub use session::{CallCase, SessionCase};
pub use table::{FakeChatTable, TestTable};
pub use update::Change;
