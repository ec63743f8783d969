//! Golden cases: a file of dataset rows with completions, each with what its
//! verdict must be. `gavel plugin test` runs them, and so does
//! [`PluginBuilder::cases`](crate::PluginBuilder::cases).

mod expect;
mod junit;
mod read;
mod run;
mod table;
mod update;

pub use read::{Case, CaseFile};
pub use run::{CaseResult, CaseResults, run};
pub use table::{FakeChatTable, TestTable};
pub use update::Change;
