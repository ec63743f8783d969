//! `gavel runs show`

use super::list::percent;
use super::sample;
use super::times::{date, short, since};
use crate::report::clipped;
use crate::table;
use crate::terminal::{self, outln};
use anyhow::Result;
use bytesize::ByteSize;
use clap::Args;
use gavel_data::Shown;
use gavel_runs::{CheckpointSize, Details, Overview, RunState};
use std::path::PathBuf;
use std::process::ExitCode;
use toml::{Table, Value};

/// Show a run: its configuration, outcomes, validation, waits and checkpoints; or one of its samples.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel runs show runs/demo\n  gavel runs show runs/demo --sample 300.12.5\n  gavel runs show runs/demo --sample 300/512"
)]
pub struct ShowArgs {
    /// The folder of a run.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Show a sample: by its id, STEP.GROUP.SAMPLE, or by its number, counted from 0, among those that a step recorded,
    /// STEP/NUMBER.
    #[arg(long, value_name = "ID|STEP/NUMBER")]
    sample: Option<String>,
    /// Print JSON on stdout.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ShowArgs) -> Result<ExitCode> {
    if let Some(wanted) = &args.sample {
        return sample::run(&args.run, wanted, args.json);
    }
    let details = Details::read(&args.run)?;
    match args.json {
        true => terminal::json_pretty(&details)?,
        false => print(&details),
    }
    Ok(if details.damaged_lines == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn print(details: &Details) {
    let found = &details.overview;
    outln!("{}: {}", found.run.display(), progress(found));
    if let Some(writer) = &found.writer {
        item("writer", writer.to_string());
    }
    if let Some(error) = &found.error {
        item("error", clipped(error).into_owned());
    }
    let starts = details.starts.len();
    if let Some(first) = details.starts.first() {
        let (started, command) = first.split_once(": ").unwrap_or((first, ""));
        item("started", started.to_owned());
        item("command", command.to_owned());
    }
    if let Some(last) = details.starts.last().filter(|_| starts > 1) {
        let times = if starts == 2 { "once".to_owned() } else { format!("{} times", starts - 1) };
        item("resumed", format!("{times}, last as {}", last.split(": ").next().unwrap_or_default()));
    }
    times(details);
    configuration(&details.config);
    if let Some(reward) = found.reward {
        item("reward", format!("{reward:.4} in the last step with a reward"));
    }
    if let (Some((_, first)), Some(last), Some((step, best))) =
        (details.first_accuracy, found.accuracy, details.best_accuracy)
    {
        let (first, last, best) = (percent(first), percent(last), percent(best));
        item("validation", format!("{first} -> {last}; the best {best} after step {step}"));
    }
    if let Some((name, share)) = found.waits_for() {
        item("waits for", format!("{name}, {:.0} % of the last step", share * 100.0));
    }
    if details.damaged_lines > 0 {
        item("damaged", format!("{} lines of metrics.jsonl cannot be read", details.damaged_lines));
    }
    outcomes(details);
    waits(details);
    checkpoints(details);
}

fn progress(found: &Overview) -> String {
    let state = match found.state {
        RunState::Recording => "recording of gavel score",
        state => state.as_str(),
    };
    match (found.step, found.steps) {
        (Some(step), Some(steps)) => format!("{state} after step {step} of {steps}"),
        (Some(step), None) => format!("{state} after step {step}"),
        (None, Some(steps)) => format!("{state} before the first of {steps} steps"),
        (None, None) => state.to_owned(),
    }
}

fn times(details: &Details) {
    let Some(last) = details.overview.last_record else { return };
    let whole = details.first_record.map_or(0.0, |first| last - first);
    let on = date(last).map_or(String::new(), |date| format!(", on {date}"));
    let steps =
        if details.seconds > 0.0 { format!(", {} of it in steps", short(details.seconds)) } else { String::new() };
    item("time", format!("{}{steps}; logged last {} ago{on}", short(whole), since(last)));
}

/// The keys of a configuration that readers look for first.
fn configuration(config: &Table) {
    let text = |path: &str| value(config, path).map(plain);
    item(
        "model",
        text("model.path").or_else(|| text("model.init").map(|_| "new weights".to_owned())).unwrap_or_default(),
    );
    item("data", text("data.train").unwrap_or_default());
    let parts = [
        text("train.algorithm"),
        text("train.prompts_per_step").map(|count| match text("rollout.group_size") {
            Some(size) => format!("{count} prompts of {size} samples a step"),
            None => format!("{count} prompts a step"),
        }),
        text("train.batch_size").map(|count| format!("{count} rows a step")),
        text("train.learning_rate").map(|rate| format!("learning rate {rate}")),
    ];
    item("training", parts.into_iter().flatten().collect::<Vec<_>>().join(", "));
    let rewards = config.get("reward").and_then(Value::as_array).into_iter().flatten().filter_map(|reward| {
        let name = reward.get("name")?.as_str()?;
        Some(reward.get("weight").map_or(name.to_owned(), |weight| format!("{name} × {}", plain(weight))))
    });
    item("rewards", rewards.collect::<Vec<_>>().join(", "));
}

/// The value of a key such as `train.steps`.
fn value<'a>(config: &'a Table, path: &str) -> Option<&'a Value> {
    let mut keys = path.split('.');
    let first = config.get(keys.next()?)?;
    keys.try_fold(first, |table, key| table.get(key))
}

/// A value as it is written, a text without quotation marks.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn outcomes(details: &Details) {
    if details.outcomes.is_empty() {
        return;
    }
    outln!("outcomes in training");
    for (plugin, counts) in &details.outcomes {
        let listed = counts.iter().filter(|(_, count)| **count > 0);
        let listed: Vec<_> = listed.map(|(kind, count)| format!("{count} {}", kind.as_str())).collect();
        item(plugin, listed.join(", "));
    }
}

fn waits(details: &Details) {
    let mut waits: Vec<_> = details.waited.iter().filter(|(_, seconds)| **seconds >= 0.05).collect();
    if waits.is_empty() {
        return;
    }
    waits.sort_by(|one, other| other.1.total_cmp(one.1));
    outln!("the device waited for");
    waits.into_iter().for_each(|(name, seconds)| outln!("  {:<30} {seconds:>8.1} s", table::cut_to(name, 30)));
}

fn checkpoints(details: &Details) {
    let all: u64 = details.checkpoints.iter().map(|checkpoint| checkpoint.bytes).sum();
    outln!("{} on the disk, {} of it in checkpoints", ByteSize(details.bytes), ByteSize(all));
    for CheckpointSize { step, bytes } in &details.checkpoints {
        let best = details.best_accuracy.is_some_and(|(best, _)| best == *step);
        outln!(
            "  step-{step:06}  {:>10}{}",
            ByteSize(*bytes).to_string(),
            if best { "  the best validation" } else { "" }
        );
    }
}

/// A line with its title; nothing if it is empty.
fn item(title: &str, text: String) {
    let title = Shown(title).to_string();
    for (number, line) in text.lines().enumerate() {
        outln!("  {:<11} {}", if number == 0 { &title } else { "" }, line);
    }
}
