//! Set-up and chores of this repository, called as `cargo xtask`.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods, reason = "what it prints is its own")]

mod attacks;
mod c_program;
mod cache;
mod changed;
mod command;
mod demo;
mod dist;
mod failure;
mod guests;
mod hashes;
mod learning;
mod learning_judges;
mod libtorch;
mod node;
mod plot;
mod programs;
mod python;
mod python_plugins;
mod rebuild;
mod rust_plugins;
mod setup;
mod structure;
mod suite;
mod summary;
mod test_programs;
mod ui;
mod wheel;

use failure::{Failure, Result};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Set-up and chores of Gavel.

Usage: cargo xtask <command>

Commands:
  setup             install what is missing: the target wasm32-wasip2 and libtorch
  plugins           set up the target, componentize-py and componentize-js, then build
                    the plugins to target/plugins/ and what the tests load to
                    target/guests/ and target/hostile/
  demo [--seed N]   set up, build everything, and train the demo model (N: 1 by default)
  demo-tools [--seed N]
                    the same with a policy that learns to call a calculator
  demo-shop [--seed N]
                    the same with a policy that learns to buy, rewarded for what it bought
  demo-reward-model [--seed N]
                    train a reward model on pairs, and a policy on it until it exploits it
  learning          train the demo model with every algorithm, and write docs/learning.md; what
                    docs/learning.jsonl has is not trained again
  learning-judges   train the demo model on the exact answer, a reward model and a language model
                    behind a server that fails, and write docs/learning-judges.md
  test              set up, build everything, and run every test
  test --changed [COMMIT]
                    the same, but run only the tests that changes since COMMIT can have touched
                    (by default the commit where this branch left main); .ci/run runs all
  rebuild           build the plugins in Rust again in another folder and another order,
                    and check that they are the same to the last byte
  hashes            build the plugins in Rust, and check that they have the hashes of plugins/B3SUMS
  hashes --record   build plugins whose hashes changed again too, and write their hashes there
  structure         check which crate depends on which, that features without training are the
                    same, that no files import each other in a circle, and that links between
                    pages lead somewhere
  dist              build everything, pack it with libtorch into target/dist/*.tar.gz,
                    and check that the archive runs in another folder
  wheel             build the Python package for other trainers to target/wheels/*.whl
  help              print this text

Every command can be interrupted and repeated. What is already installed is skipped.

Environment:
  LIBTORCH          the folder of libtorch to use, instead of an installation
  XDG_CACHE_HOME    the folder below which, in gavel/, tools are installed (default: ~/.cache)
  GAVEL_TEST_RUNNER a program that runs each test program of the host: .ci/under sets it
  NO_COLOR          print no colours

Example:
  cargo xtask demo --seed 2
";

enum Task {
    Setup,
    Plugins,
    Demo { seed: u64 },
    DemoTools { seed: u64 },
    DemoShop { seed: u64 },
    DemoRewardModel { seed: u64 },
    Learning,
    LearningJudges,
    Test,
    TestChanged { base: Option<String> },
    Rebuild,
    Hashes { record: bool },
    Structure,
    Dist,
    Wheel,
    Help,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match parse(&arguments) {
        Ok(task) => run(task),
        Err(usage) => {
            ui::report(&usage);
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            ui::report(&failure);
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Result<Task> {
    let usage = |what: String| Failure::new(what).hint("`cargo xtask help` lists the commands");
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] | ["help" | "--help" | "-h", ..] | [_, "--help" | "-h"] => Ok(Task::Help),
        ["setup"] => Ok(Task::Setup),
        ["plugins"] => Ok(Task::Plugins),
        ["demo"] => Ok(Task::Demo { seed: 1 }),
        ["demo-tools"] => Ok(Task::DemoTools { seed: 1 }),
        ["demo-shop"] => Ok(Task::DemoShop { seed: 1 }),
        ["demo-reward-model"] => Ok(Task::DemoRewardModel { seed: 1 }),
        [demo @ ("demo" | "demo-tools" | "demo-shop" | "demo-reward-model"), "--seed", seed] => match seed.parse() {
            Ok(seed) if *demo == "demo" => Ok(Task::Demo { seed }),
            Ok(seed) if *demo == "demo-tools" => Ok(Task::DemoTools { seed }),
            Ok(seed) if *demo == "demo-shop" => Ok(Task::DemoShop { seed }),
            Ok(seed) => Ok(Task::DemoRewardModel { seed }),
            Err(_) => Err(usage(format!("`--seed` needs a whole number, not {seed:?}"))),
        },
        ["learning"] => Ok(Task::Learning),
        ["learning-judges"] => Ok(Task::LearningJudges),
        ["test"] => Ok(Task::Test),
        ["test", "--changed"] => Ok(Task::TestChanged { base: None }),
        ["test", "--changed", base] if !base.starts_with('-') => {
            Ok(Task::TestChanged { base: Some((*base).to_owned()) })
        }
        ["rebuild"] => Ok(Task::Rebuild),
        ["hashes"] => Ok(Task::Hashes { record: false }),
        ["hashes", "--record"] => Ok(Task::Hashes { record: true }),
        ["structure"] => Ok(Task::Structure),
        ["dist"] => Ok(Task::Dist),
        ["wheel"] => Ok(Task::Wheel),
        [
            "setup" | "plugins" | "demo" | "demo-tools" | "demo-shop" | "demo-reward-model" | "learning"
            | "learning-judges" | "test" | "rebuild" | "hashes" | "structure" | "dist" | "wheel",
            rest @ ..,
        ] => Err(usage(format!("`{}` does not take `{}`", words[0], rest.join(" ")))),
        [other, ..] => Err(usage(format!("there is no command {other:?}"))),
    }
}

fn run(task: Task) -> Result<()> {
    let root = root();
    match task {
        Task::Setup => setup::all(&root).map(|_| ()),
        Task::Plugins => {
            setup::guest_target()?;
            guests::build(&root)
        }
        Task::Demo { seed } => demo::run(&root, seed),
        Task::DemoTools { seed } => demo::run_tools(&root, seed),
        Task::DemoShop { seed } => demo::run_shop(&root, seed),
        Task::DemoRewardModel { seed } => demo::run_reward_model(&root, seed),
        Task::Learning => learning::run(&root),
        Task::LearningJudges => learning_judges::run(&root),
        Task::Test => suite::run(&root, None),
        Task::TestChanged { base } => suite::run_changed(&root, base.as_deref()),
        Task::Rebuild => rebuild::check(&root),
        Task::Hashes { record: false } => hashes::check(&root),
        Task::Hashes { record: true } => hashes::record(&root),
        Task::Structure => structure::check(&root),
        Task::Dist => dist::run(&root),
        Task::Wheel => wheel::run(&root),
        Task::Help => {
            print!("{HELP}");
            Ok(())
        }
    }
}

/// The folder of the repository.
fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}
