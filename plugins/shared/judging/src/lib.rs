//! Asks a language model for verdicts and reads its replies; shared by several standard plugins.

mod answers;
mod ask;
mod better;
mod citation;
mod claim;
mod criterion;
mod fields;
mod format;
mod object;
mod opinion;
mod plain;
mod prompt;
mod quotation;
mod revision;
mod scale;
mod scale_ends;
mod score;
mod stated_scale;
mod subscores;
mod tokens;
mod verdict;
mod verdicts;
mod wrapped;

#[cfg(test)]
mod replies;

pub use answers::answers;
pub use ask::{Given, Missing, Model, ask, cut};
pub use better::{Better, better};
pub use format::{format, score_format, score_reminder};
pub use prompt::{Name, Task, Template, conversation, needed, optional};
pub use score::score;
pub use verdicts::verdicts;
