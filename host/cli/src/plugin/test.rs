//! `gavel plugin test`

use super::subject::Subject;
use crate::table::{self, cut};
use crate::terminal::{self, outln};
use anyhow::{Context, Result};
use clap::Args;
use gavel_data::files::WholeFile;
use gavel_harness::{CaseFile, CaseResult, CaseResults, Change, Question};
use gavel_project::Project;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run a plugin's golden cases in the sandbox that training uses.
///
/// A folder is built first. Each line of the cases is a row of a dataset, with
/// a completion and the expected verdict; for a taskset, an index and the expected row; for a tool, a session's calls
/// and the expected answers; for an agent, a task, the turns of the policy and the expected response; for an advantage,
/// groups and their expected advantages; for a sampler, a request and the expected draws.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel plugin test polite\n  gavel plugin test polite --junit results.xml\n  gavel plugin test target/plugins/exact-answer.wasm --cases cases.jsonl\n\nA case:\n  {\"prompt\": \"2 + 2?\", \"response\": \"4\", \"answer\": \"4\", \"expect\": {\"score\": 1}}\n\nExit status: 0 all cases passed, or were updated; 1 some failed; 2 usage, or the plugin does not build or load."
)]
pub struct TestArgs {
    /// The folder of the plugin, with its plugin.toml, or a component.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// The cases, JSON Lines; by default the file that [test] of plugin.toml names, else cases.jsonl.
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Parameters of cases without parameters, in place of those in plugin.toml.
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// Also write the results as JUnit XML, for a CI system.
    #[arg(long, value_name = "FILE", conflicts_with = "update")]
    junit: Option<PathBuf>,
    /// Write the verdicts into the cases that failed, expect nothing, or state only that there is a score; review them
    /// afterwards.
    #[arg(long)]
    update: bool,
    /// Test a plugin in Python without a build: a sandbox that can also read its folder runs the sources. Runs take
    /// only built plugins.
    #[arg(long)]
    quick: bool,
    /// Show the time, fuel and memory of each case; metering fuel slows calls by up to a third.
    #[arg(long)]
    usage: bool,
}

pub fn run(args: TestArgs) -> Result<ExitCode> {
    let mut subject = Subject::open(&args.path, args.params.as_deref())?;
    if let Some(cases) = args.cases {
        subject.cases = Some(cases);
    }
    if args.usage {
        // More than any call uses within its time, so that fuel is counted and never runs out.
        subject.spec.limits.fuel.get_or_insert(i64::MAX as u64);
    }
    let file = subject.file()?;
    match args.quick {
        true => subject.build_quick()?,
        false => subject.build()?,
    }
    let results = subject.test(&file)?;
    if args.usage {
        print_usage(&results);
    }
    if args.update {
        print_changes(&file, &file.update(&results)?);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &args.junit {
        let report = results.junit()?;
        write_report(path, report.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    print(&results);
    Ok(if results.failed().next().is_none() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn write_report(path: &Path, report: &[u8]) -> io::Result<()> {
    let mut file = WholeFile::create_or_open(path)?;
    file.write_all(report)?;
    file.finish()
}

/// Runs the cases of a project that was just built, and prints the results.
pub fn test_built(project: Project) -> Result<()> {
    test_as_it_is(&Subject::project(project)?)
}

/// Runs the cases of a project without a build, as `--quick` does.
pub fn test_quick(project: Project) -> Result<()> {
    let mut subject = Subject::project(project)?;
    subject.build_quick()?;
    test_as_it_is(&subject)
}

fn test_as_it_is(subject: &Subject) -> Result<()> {
    print(&subject.test(&subject.file()?)?);
    Ok(())
}

/// Prints a short line if all cases passed, else every difference and all that is known of the cases that failed.
fn print(results: &CaseResults) {
    let (name, all) = (&results.plugin, results.cases.len());
    let failed: Vec<&CaseResult> = results.failed().collect();
    let most = |of: fn(&CaseResult) -> u64| results.cases.iter().map(of).max().unwrap_or(0);
    if failed.is_empty() {
        let (time, memory) = (most(|case| case.usage().cpu_us), most(|case| case.usage().peak_memory));
        let cases = if all == 1 { "1 case".to_owned() } else { format!("{all} cases") };
        outln!("{name}: {cases} passed, with at most {} of processor time and {} each", ms(time), mib(memory));
        print_unstated_scores(results);
        return;
    }
    outln!("{name}: {} of {all} cases failed", failed.len());
    let rows = failed.iter().flat_map(|result| {
        result.mismatches.iter().map(|mismatch| {
            let difference = mismatch.difference.map(|difference| format!("{difference:+}")).unwrap_or_default();
            let line = result.case.line.to_string();
            [&result.case.name, &line, &mismatch.what, &mismatch.expected, &mismatch.came, &difference]
                .map(|cell| cut(cell))
        })
    });
    table::print(["case", "line", "what", "expected", "got", "difference"], rows);
    for result in &failed {
        outln!();
        outln!("{} ({}:{})", result.case.name, results.path.display(), result.case.line);
        terminal::out_lines(result.to_string().trim_end());
    }
    print_unstated_scores(results);
    if let Some(result) = failed.iter().find(|result| result.case.is_unstated()) {
        let (thing, example) = match result.case.question {
            Question::Session(_) => ("call", r#"{"answer": "4"}"#),
            Question::Attempt(_) => ("case", r#"{"response": "4"}"#),
            Question::Batch(_) => ("case", r#"{"advantages": [[0.5, -0.5]]}"#),
            Question::Draw(_) => ("case", r#"{"draws": [0, 1]}"#),
            Question::Row(_) => ("case", r#"{"row": {"answer": "4"}}"#),
            Question::Sample(_) | Question::Nothing => ("case", r#"{"score": 1}"#),
        };
        outln!();
        if let Some(name) = &result.case.misspelt {
            outln!("hint: line {} has `{name}`; did you mean `expect`?", result.case.line);
            return;
        }
        outln!("hint: a {thing} without `expect` fails: add what it must give, such as \"expect\": {example},");
        outln!("      or run `gavel plugin test --update`, which writes the result, and review it");
    }
}

/// Prints the scores of cases that pass with any score: a reward that is always 0 passes them, too.
fn print_unstated_scores(results: &CaseResults) {
    const SHOWN: usize = 10;
    let scores: Vec<String> =
        results.cases.iter().filter_map(|case| Some(case.unstated_score()?.to_string())).collect();
    let what = match scores.len() {
        0 => return,
        1 => "1 case states only that it is scored".to_owned(),
        count => format!("{count} cases state only that they are scored"),
    };
    let more = if scores.len() > SHOWN { ", …" } else { "" };
    let shown = scores.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    let write = if scores.len() == 1 { "writes the score" } else { "writes the scores" };
    outln!("{what}: {shown}{more}; `--update` {write}");
}

fn print_usage(results: &CaseResults) {
    outln!("{}: what each case used", results.plugin);
    let rows = results.cases.iter().map(|result| {
        let usage = result.usage();
        let fuel = usage.fuel.map_or("unknown".to_owned(), |fuel| fuel.to_string());
        [cut(&result.case.name), ms(usage.cpu_us), fuel, mib(usage.peak_memory)]
    });
    table::print(["case", "processor", "fuel", "memory"], rows);
}

fn print_changes(file: &CaseFile, changes: &[Change]) {
    let path = file.path().display();
    if changes.is_empty() {
        outln!("{path}: every case came out as expected; nothing was changed");
        return;
    }
    outln!("{path}: {} of {} expectations written", changes.len(), file.expectations());
    let rows = changes.iter().map(|change| {
        let before = change.before.clone().unwrap_or_else(|| "none".into());
        [cut(&change.case), change.line.to_string(), before, change.after.clone()]
    });
    table::print(["case", "line", "expected", "now"], rows);
    outln!("review them: they say what the plugin does, which may not be what it should do");
}

pub fn ms(microseconds: u64) -> String {
    format!("{:.2} ms", microseconds as f64 / 1e3)
}

pub fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
