//! A `gavel` without `gavel-models`, and so without libtorch.

use crate::doctor::Finding;
use crate::{report, terminal};
use anyhow::{Error, anyhow};
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The commands of `gavel-models`.
const LACKING: [&str; 9] = ["train", "sft", "reward-model", "dpo", "eval", "generate", "merge", "bench", "config"];

/// Why one of them cannot run.
const LACKS: &str = "needs the program gavel-models, which is not beside this gavel";

/// What to do for one of them.
const WHAT_TO_DO: &str =
    "to train, evaluate or serve, build gavel with its default features, and keep both programs in one folder";

/// The error of a reward model that cannot be loaded.
pub fn reward_model(name: &str) -> Error {
    anyhow!("the reward model `{name}` {LACKS}\nhint: {WHAT_TO_DO}")
}

/// What `gavel doctor` reports.
pub fn findings() -> Vec<(&'static str, Finding)> {
    let why = "gavel-models is not beside this gavel, which scores, replays and tests plugins";
    vec![("libtorch", Finding::Missing(why.into(), WHAT_TO_DO.into()))]
}

/// Ends the process with the error of the command line.
pub fn exit(error: &clap::Error) -> ! {
    if let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(name))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
        && LACKING.contains(&name.as_str())
    {
        end(&format!("`gavel {name}` {LACKS}"), error);
    }
    if serves_model() && error.use_stderr() {
        end(&format!("`gavel serve` with a model {LACKS}"), error);
    }
    report::usage_error(error)
}

fn end(what: &str, error: &clap::Error) -> ! {
    terminal::error(&format!("{what}\nhint: {WHAT_TO_DO}"));
    std::process::exit(error.exit_code());
}

/// Whether the command line is `gavel serve` with a model.
fn serves_model() -> bool {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let mut words = words.skip_while(|word| word.starts_with('-'));
    words.next().as_deref() == Some("serve") && words.any(|word| word.starts_with("-m") || word.starts_with("--model"))
}
