//! Asks a language model for verdicts and reads its replies; shared by several standard plugins.

mod ask;
mod claim;
mod ending_object;
mod parse;
mod prompt;
mod verdicts;

pub use ask::{Given, Missing, Model, ask, cut};
pub use parse::{Better, answers, better, score};
pub use prompt::{Name, Task, Template, conversation, needed, optional};
pub use verdicts::verdicts;
