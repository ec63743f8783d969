//! Commands that are no reinforcement learning: supervised fine-tuning, evaluation, generations, dry runs, and rows as
//! text.

mod dry_run;
mod evaluation;
mod generations;
mod sft;
mod show;

pub(crate) use dry_run::checks;
pub use dry_run::{DryRun, dry_run_sft, dry_run_train};
pub use evaluation::{EvalOptions, EvalProgress, Evaluated, evaluate};
pub use generations::generations;
pub use sft::sft;
pub(crate) use show::first;
pub use show::{ShownPart, ShownRow, ShownText, show_sft, show_train};
