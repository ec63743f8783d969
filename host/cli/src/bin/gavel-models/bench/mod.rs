//! `gavel bench`: how fast a model runs here.

mod cost;
mod decode;
mod measure;
mod memory;
mod model;
mod prefill;
mod ranks;
mod scaling;
mod step_time;
mod train;

use crate::environment::prepare;
use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;

#[derive(Subcommand)]
pub enum BenchCommand {
    Decode(decode::DecodeArgs),
    Prefill(prefill::PrefillArgs),
    Train(train::TrainArgs),
    Scaling(scaling::ScalingArgs),
}

pub fn run(command: BenchCommand) -> Result<ExitCode> {
    prepare()?;
    match command {
        BenchCommand::Decode(args) => decode::run(&args)?,
        BenchCommand::Prefill(args) => prefill::run(&args)?,
        BenchCommand::Train(args) => train::run(&args)?,
        BenchCommand::Scaling(args) => scaling::run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}
