//! `gavel runs diff`

use super::show::plain;
use crate::table::{self, cut_to};
use crate::terminal::{self, outln};
use anyhow::Result;
use clap::Args;
use gavel_runs::{Details, Difference, Overview, differences};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// The most characters of a key, and of a value.
const KEY: usize = 30;
const VALUE: usize = 20;

/// Compare two runs: the keys of their configurations that differ, and their last metrics side by side.
#[derive(Args)]
#[command(
    after_help = "Example:\n  gavel runs diff runs/demo runs/demo-2\n\n--json has all metrics; without it, metrics of the clock and the spread of others are left out."
)]
pub struct DiffArgs {
    /// The folder of a run.
    #[arg(value_name = "A")]
    one: PathBuf,
    /// The folder of another run.
    #[arg(value_name = "B")]
    other: PathBuf,
    /// Print JSON on stdout.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &DiffArgs) -> Result<ExitCode> {
    let (one, other) = (Details::read(&args.one)?, Details::read(&args.other)?);
    let keys = differences(&one.config, &other.config);
    let metrics = metrics(&one, &other);
    if args.json {
        let configuration = keys.iter().map(|(key, one, other)| json!({"key": key, "a": one, "b": other}));
        let metrics = metrics.iter().map(|(name, one, other)| json!({"name": name, "a": one, "b": other}));
        let (configuration, metrics): (Vec<_>, Vec<_>) = (configuration.collect(), metrics.collect());
        let (a, b) = (&one.overview, &other.overview);
        terminal::json_pretty(&json!({"a": a, "b": b, "configuration": configuration, "metrics": metrics}))?;
    } else {
        state("A", &one.overview);
        state("B", &other.overview);
        print_keys(&keys);
        print_metrics(&metrics);
    }
    Ok(ExitCode::SUCCESS)
}

fn state(name: &str, found: &Overview) {
    let step = found.step.map_or(String::new(), |step| format!(" after step {step}"));
    outln!("{name}  {}: {}{step}", found.run.display(), found.state.as_str());
}

fn print_keys(keys: &[Difference<'_>]) {
    if keys.is_empty() {
        outln!("their configurations are the same");
        return;
    }
    outln!("configuration");
    let value = |value: Option<&toml::Value>| value.map_or("-".to_owned(), |value| cut_to(&plain(value), VALUE));
    let row = |(key, one, other): &Difference<'_>| [cut_to(key, KEY), value(*one), value(*other)];
    table::print(["key", "A", "B"], keys.iter().map(row));
}

/// A metric, and its last value on each side.
type Metric = (String, Option<f64>, Option<f64>);

/// All metrics, in the order of the first run, and then those that only the other has.
fn metrics(one: &Details, other: &Details) -> Vec<Metric> {
    let value = |details: &Details, name: &str| details.metrics.as_json().get(name).and_then(Value::as_f64);
    let only = other.metrics.as_json().keys().filter(|name| !one.metrics.as_json().contains_key(*name));
    let names = one.metrics.as_json().keys().chain(only);
    names.map(|name| (name.clone(), value(one, name), value(other, name))).collect()
}

fn print_metrics(metrics: &[Metric]) {
    let shown: Vec<&Metric> = metrics.iter().filter(|(name, ..)| is_shown(name)).collect();
    if shown.is_empty() {
        return;
    }
    outln!("last metrics");
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.6}"));
    let row = |(name, one, other): &&Metric| {
        let change = one.zip(*other).map_or(String::new(), |(one, other)| format!("{:+.6}", other - one));
        [cut_to(name, KEY), number(*one), number(*other), change]
    };
    table::print(["metric", "A", "B", "B - A"], shown.iter().map(row));
}

/// Whether a metric is one that people compare: neither of the clock, nor the spread of another, nor a count.
fn is_shown(name: &str) -> bool {
    let is_clock = ["time/", "perf/", "device_wait/", "chat/", "limiter/"].iter().any(|start| name.starts_with(start));
    let is_spread = ["/std", "/min", "/max"].iter().any(|end| name.ends_with(end));
    let is_count = name.starts_with("outcome/") || name.starts_with("val/outcome/") || name == "step";
    !is_clock && !is_spread && !is_count && !name.contains("/latency_p")
}
