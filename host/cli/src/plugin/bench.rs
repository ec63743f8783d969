//! `gavel plugin bench`

use super::subject::Subject;
use super::test::{mib, ms};
use crate::table;
use crate::terminal::{self, outln};
use anyhow::Result;
use clap::Args;
use gavel_harness::{BenchReport, Distribution, PluginData, bench};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Rows that are called in turn.
const ROWS: usize = 1000;

/// Measure how fast a plugin is and what it costs.
///
/// Run nothing else on the machine meanwhile.
#[derive(Args)]
#[command(after_help = "Example:\n  gavel plugin bench gsm8k --data completions.jsonl --seconds 10")]
pub struct BenchArgs {
    /// The folder of the plugin, with its plugin.toml, or a component.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Completions: a .jsonl or .parquet file, a folder of them, a pattern, or any of these on the hub,
    /// hf://datasets/ORG/NAME/FILES; by default the plugin's golden cases. For a tool, an
    /// advantage and a sampler, always golden cases.
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Parameters, in place of those in plugin.toml.
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// How long to measure, without the time of loading.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: BenchArgs) -> Result<ExitCode> {
    let subject = Subject::open(&args.path, args.params.as_deref())?;
    let data = PluginData::read(&gavel_hub::dataset(&subject.data(args.data)?)?, ROWS)?;
    subject.build()?;
    let measured = bench(&subject.spec, &subject.programs(), &data, Duration::from_secs(args.seconds));
    let report = measured.map_err(|error| subject.explain(error))?;
    if args.json {
        terminal::json_pretty(&report)?;
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(report: &BenchReport) {
    let BenchReport { plugin, component, hash, .. } = report;
    outln!("{plugin}: {component}, hash {}", hash.get(..16).unwrap_or(hash));
    let outcomes: Vec<String> = report.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    outln!("  calls       {} different ones; {}", report.inputs, outcomes.join(", "));
    outln!("  load        {} compiled, {} from the cache", ms(report.load_cold_us), ms(report.load_cached_us));
    outln!(
        "  throughput  {:.0} calls/s on {} threads, {:.0} on each",
        report.calls_per_second,
        report.threads,
        report.calls_per_second_per_core
    );
    let times = |name: &str, of: &Distribution| row(name, of, |us| format!("{us} us"));
    let mut rows = vec![times("latency", &report.latency_us), times("processor", &report.cpu_us)];
    if let Some(reuse) = &report.reuse {
        rows.push(times(&format!("latency, reuse = {}", reuse.calls), &reuse.latency_us));
    }
    rows.push(row("fuel", &report.fuel, |fuel| fuel.to_string()));
    rows.push(row("memory", &report.memory, mib));
    table::print(["one call", "median", "p90", "p99", "most"], rows.into_iter());
    outln!("  advice      {}", report.advice);
}

fn row(name: &str, of: &Distribution, shown: impl Fn(u64) -> String) -> [String; 5] {
    [name.to_owned(), shown(of.p50), shown(of.p90), shown(of.p99), shown(of.max)]
}
