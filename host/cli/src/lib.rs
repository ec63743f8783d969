//! The `gavel` command, and what it shares with [`gavel-models`](models), the program for the commands that run models.

#[doc(hidden)]
pub mod command;
mod completions;
#[doc(hidden)]
pub mod component;
#[doc(hidden)]
pub mod doctor;
mod man;
#[doc(hidden)]
pub mod models;
#[doc(hidden)]
pub mod outcomes;
#[doc(hidden)]
pub mod plugin;
#[doc(hidden)]
pub mod plugin_args;
#[doc(hidden)]
pub mod progress;
mod replay;
#[doc(hidden)]
pub mod report;
mod runs;
mod score;
#[doc(hidden)]
pub mod serve;
#[doc(hidden)]
pub mod table;
#[doc(hidden)]
pub mod terminal;
#[doc(hidden)]
pub mod version;
mod view;
mod watch;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use command::LogLevel;
use models::{Beside, hand_over};
use std::process::ExitCode;

/// Post-train language models with reinforcement learning; rewards are
/// WebAssembly components, run in a sandbox.
#[derive(Parser)]
#[command(version, long_version = version::long(models::is_beside()), arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    log: LogLevel,
    #[command(subcommand)]
    command: Command,
}

/// `gavel-models` serves models too.
#[derive(Subcommand)]
enum Command {
    Serve(serve::ServeArgs),
    #[command(flatten)]
    Other(Box<command::Command>),
}

impl Command {
    fn lists_commands(&self) -> bool {
        matches!(self, Self::Other(command) if command.lists_commands())
    }
}

/// Runs the command of this process. What this program does not know, and what lists all commands, is the other
/// program's, if it is there.
pub fn gavel() -> ExitCode {
    let parsed = match Cli::try_parse() {
        Err(error) if error.kind() == ErrorKind::DisplayVersion => error.exit(),
        Ok(cli) if !cli.command.lists_commands() => Ok(cli),
        parsed => match hand_over() {
            Some(error) => return command::end(Err(error)),
            None => parsed,
        },
    };
    let cli = parsed.unwrap_or_else(|error| models::exit(&error));
    command::start(&cli.log.level, |gavel| gavel);
    command::end(match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::Other(command) => command.run::<Beside>(Cli::command()),
    })
}
