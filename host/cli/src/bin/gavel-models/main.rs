//! The program beside `gavel` that is linked with libtorch: its commands run models.

mod bench;
mod command_line;
mod config;
mod environment;
mod eval;
mod generate;
mod here;
mod libtorch;
mod merge;
mod model_args;
mod reward_models;
mod serve;
mod shown_rows;
#[cfg(target_os = "linux")]
mod stacks;
mod train;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use gavel::command::{self, LogLevel};
use gavel::report;
use here::Here;
use std::path::PathBuf;
use std::process::ExitCode;

/// Post-train language models with reinforcement learning; rewards are
/// WebAssembly components, run in a sandbox.
#[derive(Parser)]
#[command(name = "gavel", version, long_version = gavel::version::LONG, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    log: LogLevel,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Train(train::TrainArgs),
    Sft(train::SftArgs),
    RewardModel(train::RewardModelArgs),
    Dpo(train::DpoArgs),
    Eval(eval::EvalArgs),
    Generate(generate::GenerateArgs),
    Serve(serve::ServeArgs),
    Merge(merge::MergeArgs),
    /// Measure how fast a model runs on this machine.
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Describe the configuration of a run.
    #[command(subcommand)]
    Config(config::ConfigCommand),
    #[command(flatten)]
    Other(command::Command),
}

impl Command {
    fn run(self) -> Result<ExitCode> {
        match self {
            Self::Train(args) => train::train(args),
            Self::Sft(args) => train::sft(args),
            Self::RewardModel(args) => train::reward_model(args),
            Self::Dpo(args) => train::dpo(args),
            Self::Eval(args) => eval::run(args),
            Self::Generate(args) => generate::run(args),
            Self::Serve(args) => serve::run(args),
            Self::Merge(args) => merge::run(args),
            Self::Bench(command) => bench::run(command),
            Self::Config(command) => config::run(command),
            Self::Other(command) => command.run::<Here>(Cli::command()),
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| report::usage_error(&error));
    command::start(&train::log_level(cli.log.level), compiler);
    command::end(cli.command.run())
}

/// `gavel` beside this program, which starts faster.
fn compiler(models: PathBuf) -> PathBuf {
    let gavel = models.with_file_name("gavel");
    if gavel.is_file() { gavel } else { models }
}
