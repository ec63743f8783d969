//! `gavel plugin check`

use super::subject::Subject;
use super::test::{mib, ms};
use crate::terminal::{self, outln};
use anyhow::Result;
use clap::Args;
use gavel_harness::PluginData;
use gavel_harness::check::{CheckReport, Finding, Severity, check};
use std::path::PathBuf;
use std::process::ExitCode;

/// The most rows that are checked.
const ROWS: usize = 200;

/// Look for problems in a plugin before training finds them.
///
/// Mutates golden answers, to find wrong answers that score as high, arguments of a tool's calls, the groups of an
/// advantage, and the requests to a sampler. Repeats every verdict, to find verdicts that change. Reports calls that
/// fail or cost much, and grants that are not used.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel plugin check polite\n  gavel plugin check gsm8k.wasm --data train.parquet\n\nA row without a `response` is answered with its ground truth, in the usual forms. Of more than 200 rows, about 200 are taken, evenly from all of them and in whole groups.\n\nExit status: 0 nothing was found; 1 something was; 2 usage, or the plugin does not build or load."
)]
pub struct CheckArgs {
    /// The folder of the plugin, with its plugin.toml, or a component.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// The rows: a .jsonl or .parquet file, a folder of them, a pattern, or any of these on the hub,
    /// hf://datasets/ORG/NAME/FILES; by default the plugin's golden cases.
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Parameters, in place of those in plugin.toml.
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: CheckArgs) -> Result<ExitCode> {
    let subject = Subject::open(&args.path, args.params.as_deref())?;
    let data = PluginData::read(&gavel_hub::dataset(&subject.data(args.data)?)?, ROWS)?;
    subject.build()?;
    let checked = check(&subject.harness()?, &subject.spec, &subject.table.chat, &data);
    let report = checked.map_err(|error| subject.explain(error))?;
    if args.json {
        terminal::json_pretty(&report)?;
    } else {
        print(&report, &data);
    }
    Ok(if report.findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn print(report: &CheckReport, data: &PluginData) {
    let CheckReport { plugin, component, hash, .. } = report;
    outln!("{plugin}: {component}, hash {}", hash.get(..16).unwrap_or(hash));
    let compared = match data {
        PluginData::Sessions(_) => {
            outln!("  mutations   {} calls with other arguments", report.tried);
            "answers"
        }
        PluginData::Batches(_) => {
            outln!("  mutations   {} calls with other groups", report.tried);
            "advantages"
        }
        PluginData::Requests(_) => {
            outln!("  mutations   {} calls with other requests", report.tried);
            "answers"
        }
        PluginData::Rows(_) => {
            mutations(report);
            "verdicts"
        }
    };
    outln!("  compared    {} {compared} with their repetition", report.compared);
    outln!(
        "  time        {} median, {} at the 99th percentile, {} for the slowest mutation",
        ms(report.cpu_us.p50),
        ms(report.cpu_us.p99),
        ms(report.worst_cpu_us)
    );
    outln!("  memory      {}", mib(report.peak_memory));
    for note in &report.notes {
        outln!("  note        {note}");
    }
    if report.findings.is_empty() {
        outln!("nothing found");
        return;
    }
    let count = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
    let [high, medium, low] = [Severity::High, Severity::Medium, Severity::Low].map(count);
    outln!("{} findings: {high} high, {medium} medium, {low} low", report.findings.len());
    report.findings.iter().for_each(|found| finding(found, data));
}

/// The golden answers of the rows, and their mutations.
fn mutations(report: &CheckReport) {
    let CheckReport { rows, golden, without_golden, .. } = report;
    let forms: Vec<String> = golden.iter().map(|(form, count)| format!("{count} from {form}")).collect();
    match golden.is_empty() {
        false => outln!("  golden      {} of {rows} rows: {}", golden.values().sum::<u64>(), forms.join(", ")),
        true => outln!("  golden      none: no response scores higher than nonsense, so nothing was mutated"),
    }
    if let (false, [first, ..]) = (golden.is_empty(), without_golden.as_slice()) {
        outln!("  no golden   {} rows; the first: {first}", without_golden.len());
    }
    outln!("  mutations   {} of {} golden answers", report.tried, report.mutated);
    if report.ignores_truth > 0 {
        outln!(
            "  no truth    {} golden answers score the same whatever the ground truth is: their wrong answers are not false accepts",
            report.ignores_truth
        );
    }
}

fn finding(finding: &Finding, data: &PluginData) {
    let Finding { severity, kind, mutation, what, count, row, example } = finding;
    let mutation = mutation.map(|name| format!(" ({name})")).unwrap_or_default();
    outln!();
    outln!("{}: {}{mutation}", severity.as_str(), kind.as_str());
    let times = if *count > 1 { format!(" ({count} times)") } else { String::new() };
    outln!("  {what}{times}");
    if !row.is_empty() {
        match data {
            PluginData::Sessions(_) => {
                outln!("  case       {row}");
                outln!("  arguments  {example:?}");
            }
            PluginData::Batches(_) | PluginData::Requests(_) => outln!("  case  {row}"),
            PluginData::Rows(_) => {
                outln!("  row       {row}");
                outln!("  response  {example:?}");
            }
        }
    }
}
