//! `gavel bench`: how fast a model runs here.

mod cost;
mod decode;
mod model;
mod prefill;
mod train;

use crate::openmp::quiet_openmp;
use crate::terminal;
use anyhow::Result;
use clap::Subcommand;
use serde::Serialize;
use std::process::ExitCode;

#[derive(Subcommand)]
pub enum BenchCommand {
    Decode(decode::DecodeArgs),
    Prefill(prefill::PrefillArgs),
    Train(train::TrainArgs),
}

pub fn run(command: BenchCommand) -> Result<ExitCode> {
    quiet_openmp()?;
    match command {
        BenchCommand::Decode(args) => decode::run(&args)?,
        BenchCommand::Prefill(args) => prefill::run(&args)?,
        BenchCommand::Train(args) => train::run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures each batch, and with `json` prints what was found, a line each, as
/// soon as it is.
fn each_batch<T: Serialize>(batches: &[usize], json: bool, measure: impl Fn(usize) -> Result<T>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    for &batch in batches {
        let measured = measure(batch)?;
        if json {
            terminal::json(&measured)?;
        }
        all.push(measured);
    }
    Ok(all)
}

/// The middle one, or the higher of the two in the middle.
fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_unstable_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN)
}
