//! The commands that both programs have.

use crate::models::Models;
use crate::{completions, doctor, man, plugin, replay, report, runs, score, terminal, view, watch};
use anyhow::Result;
use clap::{Args, Subcommand};
use gavel_plugin::{COMPILE_COMMAND, compile_command, compile_with};
use signal_hook::consts::SIGXFSZ;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(Args)]
pub struct LogLevel {
    /// How much to log on stderr: error, warn, info, debug or trace.
    #[arg(id = "log_level", long = "log-level", global = true, default_value = "info", value_name = "LEVEL", value_parser = ["error", "warn", "info", "debug", "trace"])]
    pub level: String,
}

#[derive(Subcommand)]
pub enum Command {
    Score(Box<score::ScoreArgs>),
    Replay(replay::ReplayArgs),
    Runs(runs::RunsArgs),
    Watch(watch::WatchArgs),
    View(view::ViewArgs),
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

impl Command {
    /// Whether it prints what all commands are.
    pub fn lists_commands(&self) -> bool {
        matches!(self, Self::Completions(_) | Self::Man(_))
    }

    /// Runs it; `all` are the commands of this program.
    pub fn run<M: Models>(self, all: clap::Command) -> Result<ExitCode> {
        match self {
            Self::Score(args) => score::run::<M>(*args),
            Self::Replay(args) => replay::run(args),
            Self::Runs(args) => runs::run(args),
            Self::Watch(args) => watch::run(args),
            Self::View(args) => view::run(&args),
            Self::Plugin(command) => plugin::run(command),
            Self::Doctor(args) => doctor::run::<M>(args),
            Self::Completions(args) => completions::run(&args, &all),
            Self::Man(args) => man::run(&args, all),
            Self::CompileComponent { argument } => Ok(compile_command(&argument).into()),
        }
    }
}

/// Starts the log. Components are compiled by `compiler`, given the path of this program.
pub fn start(log_level: &str, compiler: fn(PathBuf) -> PathBuf) {
    terminal::start_log(log_level);
    outlive_large_files();
    match std::env::current_exe() {
        Ok(program) => compile_with(compiler(program)),
        Err(error) => {
            tracing::warn!("cannot find the gavel executable, so components are compiled in this process: {error}")
        }
    }
}

/// Where `ulimit -f` bounds files, a write beyond it fails, as on a full disk. Without a handler, its signal would end this
/// process in the middle of a file. The signal is not ignored: the processes that this one starts would ignore it too.
fn outlive_large_files() {
    if let Err(error) = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))) {
        tracing::warn!("a file that reaches the limit of `ulimit -f` will end this process: {error}");
    }
}

/// The exit status of a command; prints its error.
pub fn end(done: Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        report::error(&error);
        ExitCode::from(2)
    })
}
