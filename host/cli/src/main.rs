//! The `gavel` command.

#[cfg(feature = "train")]
mod bench;
#[cfg(feature = "train")]
mod command_line;
mod completions;
mod component;
mod doctor;
#[cfg(feature = "train")]
mod environment;
#[cfg(feature = "train")]
mod eval;
#[cfg(feature = "train")]
mod generate;
#[cfg(feature = "train")]
mod libtorch;
mod man;
#[cfg(feature = "train")]
mod merge;
#[cfg(feature = "train")]
mod model_args;
mod outcomes;
mod plugin;
mod plugin_args;
mod progress;
mod replay;
mod report;
mod score;
#[cfg(feature = "train")]
mod serve;
#[cfg(feature = "train")]
mod shown_rows;
mod table;
mod terminal;
#[cfg(feature = "train")]
mod train;
#[cfg(not(feature = "train"))]
mod without_training;

use clap::{CommandFactory, Parser, Subcommand};
use gavel_plugin::{COMPILE_COMMAND, compile_command, compile_with};
use std::process::ExitCode;

/// Post-train language models with reinforcement learning; rewards are
/// WebAssembly components, run in a sandbox.
#[derive(Parser)]
#[command(version, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    /// How much to log on stderr: error, warn, info, debug or trace.
    #[arg(long, global = true, default_value = "info", value_name = "LEVEL", value_parser = ["error", "warn", "info", "debug", "trace"])]
    log_level: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[cfg(feature = "train")]
    Train(train::TrainArgs),
    #[cfg(feature = "train")]
    Sft(train::SftArgs),
    #[cfg(feature = "train")]
    RewardModel(train::RewardModelArgs),
    #[cfg(feature = "train")]
    Dpo(train::DpoArgs),
    #[cfg(feature = "train")]
    Eval(eval::EvalArgs),
    #[cfg(feature = "train")]
    Generate(generate::GenerateArgs),
    #[cfg(feature = "train")]
    Serve(serve::ServeArgs),
    #[cfg(feature = "train")]
    Merge(merge::MergeArgs),
    /// Measure how fast a model runs on this machine.
    #[cfg(feature = "train")]
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    Score(score::ScoreArgs),
    Replay(replay::ReplayArgs),
    /// Make, build, test and compare plugins.
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    Doctor(doctor::DoctorArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    /// Compile a component for another process of gavel.
    #[command(hide = true, name = COMPILE_COMMAND)]
    CompileComponent {
        argument: String,
    },
}

#[cfg(feature = "train")]
fn parse() -> Cli {
    Cli::parse()
}

#[cfg(not(feature = "train"))]
fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| without_training::exit(&error))
}

fn main() -> ExitCode {
    let cli = parse();
    #[cfg(feature = "train")]
    let cli = Cli { log_level: train::log_level(cli.log_level), ..cli };
    terminal::start_log(&cli.log_level);
    match std::env::current_exe() {
        Ok(gavel) => compile_with(gavel),
        Err(error) => {
            tracing::warn!("cannot find the gavel executable, so components are compiled in this process: {error}")
        }
    }
    let done = match cli.command {
        #[cfg(feature = "train")]
        Command::Train(args) => train::train(args),
        #[cfg(feature = "train")]
        Command::Sft(args) => train::sft(args),
        #[cfg(feature = "train")]
        Command::RewardModel(args) => train::reward_model(args),
        #[cfg(feature = "train")]
        Command::Dpo(args) => train::dpo(args),
        #[cfg(feature = "train")]
        Command::Eval(args) => eval::run(args),
        #[cfg(feature = "train")]
        Command::Generate(args) => generate::run(args),
        #[cfg(feature = "train")]
        Command::Serve(args) => serve::run(args),
        #[cfg(feature = "train")]
        Command::Merge(args) => merge::run(args),
        #[cfg(feature = "train")]
        Command::Bench(command) => bench::run(command),
        Command::Score(args) => score::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Plugin(command) => plugin::run(command),
        Command::Doctor(args) => doctor::run(args),
        Command::Completions(args) => completions::run(&args, &Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::CompileComponent { argument } => Ok(compile_command(&argument)),
    };
    done.unwrap_or_else(|error| {
        report::error(&error);
        ExitCode::from(2)
    })
}
