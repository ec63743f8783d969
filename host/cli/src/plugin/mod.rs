//! `gavel plugin`: everything that a plugin's author does.

mod bench;
mod build;
mod check;
mod diff;
mod first_cases;
mod inspect;
mod new;
mod shown_path;
pub mod subject;
mod test;
mod watch;

use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;

#[derive(Subcommand)]
pub enum PluginCommand {
    New(new::NewArgs),
    Build(build::BuildArgs),
    Test(test::TestArgs),
    Watch(watch::WatchArgs),
    Check(check::CheckArgs),
    Bench(bench::BenchArgs),
    Diff(diff::DiffArgs),
    Inspect(inspect::InspectArgs),
}

pub fn run(command: PluginCommand) -> Result<ExitCode> {
    match command {
        PluginCommand::New(args) => new::run(args),
        PluginCommand::Build(args) => build::run(args),
        PluginCommand::Test(args) => test::run(args),
        PluginCommand::Watch(args) => watch::run(args),
        PluginCommand::Check(args) => check::run(args),
        PluginCommand::Bench(args) => bench::run(args),
        PluginCommand::Diff(args) => diff::run(args),
        PluginCommand::Inspect(args) => inspect::run(args),
    }
}
