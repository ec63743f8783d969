//! A build without training: the commands that it lacks.

use crate::terminal;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The commands that only a build with training has.
const LACKING: [&str; 9] = ["train", "sft", "reward-model", "dpo", "eval", "generate", "serve", "merge", "bench"];

/// What to do for one of them.
pub const WHAT_TO_DO: &str = "to train, evaluate or serve, build gavel with its default features";

/// Ends the process with the error of the command line.
pub fn exit(error: &clap::Error) -> ! {
    if let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(name))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
        && LACKING.contains(&name.as_str())
    {
        terminal::error(&format!(
            "this gavel is built without training, so it has no `gavel {name}`\nhint: {WHAT_TO_DO}"
        ));
        std::process::exit(error.exit_code());
    }
    error.exit()
}
