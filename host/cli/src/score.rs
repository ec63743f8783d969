//! `gavel score`: plugins over saved completions.

mod batch;
mod dash;
mod in_flight;
mod on_ray;
mod output;
pub mod recording;
mod reward_models;
pub mod source;
mod summary;

use crate::models::Models;
use crate::plugin_args::{self, PluginArg};
use crate::progress;
use crate::terminal;
use anyhow::{Result, bail};
use batch::{Batch, ScoredBatch};
use clap::Args;
use dash::is_dash;
use gavel_data::{ColumnNames, KnownColumn};
use gavel_endpoint::LimiterTable;
use gavel_plugin::{Limits, ProgramSpec, SandboxConfig, Tape};
use gavel_runs::layout;
use gavel_scoring::chat::ChatEndpoint;
use gavel_scoring::recording::Recording;
use gavel_scoring::{Scorer, ScorerConfig};
use in_flight::InFlight;
use indicatif::ProgressBar;
use output::Output;
use recording::Recorder;
use source::Source;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use summary::Summary;

/// Score completions from a file with one or more plugins.
///
/// A row has the dataset's columns and a `response` (or `completion`), a text or messages; or else `messages`. Each row
/// gives one row of output, in order. Consecutive rows with the same `id` are a group, which a judger sees as a whole.
/// `reward` is null unless every plugin with a weight scored.
#[derive(Args)]
#[command(
    after_help = "Example:\n  gavel score --plugin answer=exact-answer.wasm --plugin format.wasm:0.1 \\\n      --params format='{\"pattern\": \"Answer: .*\"}' --data completions.jsonl --out scores.jsonl\n  gavel score --plugin judge.wasm --data completions.jsonl --out scores.jsonl --record judged\n  generate | gavel score --plugin answer.wasm --data - --out - | jq .reward\n  gavel score --replay judged --out again.jsonl\n\nExit status: 0 all rows processed, whatever their outcomes; 1 a row could not be read; 2 usage or configuration."
)]
pub struct ScoreArgs {
    /// A component or the folder of a built plugin, its name in the output and its weight in the reward, 1 by default.
    #[arg(long = "plugin", required_unless_present_any = ["replay", "reward_models"], value_name = "[NAME=]PATH[:WEIGHT]")]
    plugins: Vec<PluginArg>,
    /// A reward model: a folder, a name on the hub, the http:// address of a server, or a table as in
    /// [reward_model.NAME]: NAME='{ path = "DIR", dtype = "bfloat16" }'. It scores, or answers the plugins that are granted
    /// its name.
    #[arg(long = "reward-model", value_name = "NAME=DIR", value_parser = reward_models::argument)]
    reward_models: Vec<(String, String)>,
    /// Parameters of a plugin, a JSON object. With one plugin, its name may be left out.
    #[arg(long, value_name = "[NAME=]JSON", requires = "plugins")]
    params: Vec<String>,
    /// What a plugin may reach, as in `[[reward]]`: NAME='{ http = ["https://HOST"] }'.
    #[arg(long = "grant", value_name = "[NAME=]TABLE")]
    grants: Vec<String>,
    /// The plugins that a judger waits for, to see their verdicts.
    #[arg(long, value_name = "NAME=OTHER[,OTHER]", requires = "plugins")]
    after: Vec<String>,
    /// How many calls an instance answers, for a plugin that declares itself pure: fewer instances start. By default, each
    /// call has a fresh instance. With one plugin, its name may be left out.
    #[arg(long, value_name = "[NAME=]CALLS", requires = "plugins")]
    reuse: Vec<String>,
    /// A language model that plugins may be granted, as in [chat.NAME]: NAME='{ base_url = "…", model = "…" }'.
    #[arg(long = "chat", value_name = "NAME=TABLE", value_parser = plugin_args::endpoint)]
    chat: Vec<(String, ChatEndpoint)>,
    /// Limits that endpoints and grants name, as in [limiter.NAME].
    #[arg(long = "limiter", value_name = "NAME=TABLE", value_parser = plugin_args::limiter)]
    limiters: Vec<(String, LimiterTable)>,
    /// A program that plugins may be granted, as in [exec.NAME].
    #[arg(long = "exec", value_name = "NAME=PATH", value_parser = plugin_args::program)]
    programs: Vec<ProgramSpec>,
    /// The completions: a .jsonl or .parquet file, a folder of them, a pattern such as 'out/*.jsonl', or any of these on
    /// the hub, hf://datasets/ORG/NAME/FILES; or - for JSON Lines on stdin.
    #[arg(long, value_name = "PATH", required_unless_present = "replay")]
    data: Option<PathBuf>,
    /// The name of a column in the completions, as in [data.columns]: ground_truth=final_answer.
    #[arg(long = "column", value_name = "NAME=COLUMN", requires = "data", value_parser = plugin_args::column)]
    columns: Vec<(KnownColumn, String)>,
    /// The file for the scores, JSON Lines; - for stdout.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Record the inputs of every verdict in a new folder: the rows, the plugins, and the answers that plugins got from
    /// outside.
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    record: Option<PathBuf>,
    /// Give plugins only the answers that such a folder has; without --data or --plugin, also take these from it.
    #[arg(long, value_name = "DIR")]
    replay: Option<PathBuf>,
    /// Grant recorded plugins what they were granted of this machine: folders, variables, clock and random numbers.
    #[arg(long, requires = "replay")]
    allow_grants: bool,
    /// Score Parquet files on a cluster of Ray, by its address, such as auto or 10.0.0.5:6379. --out is a folder; a job that
    /// was interrupted goes on where it stopped. Needs the Python package gavel-rl.
    #[arg(long, value_name = "ADDRESS", requires = "data", conflicts_with_all = ["record", "replay", "reward_models"])]
    ray: Option<String>,
    /// Threads that plugins run on; by default one for each core. With --ray, the processors of each worker, by default 1.
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// The wall-clock time of one call, waits included.
    #[arg(long, default_value = "10s", requires = "plugins", value_parser = plugin_args::duration)]
    timeout: Duration,
    /// The processor time of one call.
    #[arg(long, default_value = "2s", requires = "plugins", value_parser = plugin_args::duration)]
    cpu: Duration,
    /// The memory of one call.
    #[arg(long, default_value = "256MiB", requires = "plugins", value_parser = plugin_args::bytes)]
    memory: usize,
    /// The instructions of one call; the verdict is the same on every machine, and calls are up to a third slower.
    #[arg(long, value_name = "N", requires = "plugins")]
    fuel: Option<u64>,
    /// The seed of the random numbers that plugins see.
    #[arg(long, default_value_t = 0, requires = "data")]
    seed: u64,
    /// Print the summary as JSON on stdout.
    #[arg(long)]
    json: bool,
}

pub fn run<M: Models>(args: ScoreArgs) -> Result<ExitCode> {
    if args.json && is_dash(&args.out) {
        bail!("--json and --out - would both write to stdout\nhint: leave out --json: the summary is on stderr too");
    }
    if let Some(address) = args.ray.clone() {
        return on_ray::run(args, &address);
    }
    let limits =
        Limits { deadline: args.timeout, cpu: args.cpu, memory: args.memory, fuel: args.fuel, ..Limits::default() };
    let recording = args.replay.as_deref().map(Recording::open).transpose()?;
    let recording = recording.map(|recording| recording.allow_grants(args.allow_grants));
    let mut plugins = match &recording {
        Some(recording) if args.plugins.is_empty() => recording::plugins(recording)?,
        _ => {
            let mut plugins = plugin_args::weighted(args.plugins, &args.params, &args.grants, limits)?;
            plugin_args::set_after(&mut plugins, &args.after)?;
            plugin_args::set_reuse(&mut plugins, &args.reuse)?;
            plugins
        }
    };
    let reward_models = M::reward_models(args.reward_models, &mut plugins, limits)?;
    let names: ColumnNames = args.columns.into_iter().collect();
    let is_stdin = args.data.as_deref().is_some_and(is_dash);
    let data = args.data.as_deref().filter(|_| !is_stdin).map(gavel_hub::dataset).transpose()?;
    let rows = match (&data, &recording) {
        _ if is_stdin => Source::stdin(&names, args.seed)?,
        (Some(data), _) => Source::dataset(data, &names, args.seed)?,
        (None, Some(recording)) => Source::recorded(recording),
        (None, None) => bail!("there is nothing to score\nhint: name the completions with --data"),
    };
    let out = Output::create(&args.out, data.as_deref())?;
    let tape = match (&args.record, &args.replay) {
        (Some(folder), _) => Tape::record(layout::tape(folder)),
        (None, Some(folder)) => Tape::replay(&layout::tape(folder))?,
        (None, None) => Tape::Off,
    };
    let workers = plugin_args::workers(args.workers)?;
    let sandbox = SandboxConfig::with_threads(workers);
    let programs = match &recording {
        Some(recording) if args.programs.is_empty() => recording::programs(recording)?,
        _ => args.programs,
    };
    let config = ScorerConfig {
        sandbox,
        chat: plugin_args::each_once("--chat", "endpoint", args.chat)?,
        limiters: plugin_args::each_once("--limiter", "limiter", args.limiters)?,
        reward_models,
        programs,
    };
    let scorer = Scorer::with_tape(plugins, config, Some(tape))?;
    let recorder = args.record.as_deref().map(|folder| Recorder::create(folder, &scorer)).transpose()?;
    let is_recorded = recorder.is_some();
    let mut sink = Sink { recorder, out, summary: Summary::default(), bar: progress::bar(None, "rows") };

    let start = Instant::now();
    let (mut batch, mut in_flight) = (Batch::default(), InFlight::new(workers));
    for (number, members) in rows.enumerate() {
        batch.add(number as u64, members);
        if batch.is_full(in_flight.batch_rows()) {
            in_flight.start(std::mem::take(&mut batch), &scorer, is_recorded);
        }
        while in_flight.is_full()
            && let Some(scored) = in_flight.next(&scorer)?
        {
            sink.finish(scored)?;
        }
    }
    in_flight.start(batch, &scorer, is_recorded);
    while let Some(scored) = in_flight.next(&scorer)? {
        sink.finish(scored)?;
    }
    let mut summary = sink.end()?;
    if let Some(recording) = &recording {
        summary.unreadable.extend(recording.damage().lines.iter().map(ToString::to_string));
    }

    summary.seconds = start.elapsed().as_secs_f64();
    if args.json {
        terminal::json(&summary)?;
    } else {
        summary.print(&args.out);
    }
    summary.print_unreadable();
    Ok(if summary.unreadable.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Where scored rows go.
struct Sink {
    recorder: Option<Recorder>,
    out: Output,
    summary: Summary,
    bar: ProgressBar,
}

impl Sink {
    fn finish(&mut self, batch: ScoredBatch) -> Result<()> {
        self.bar.inc(batch.rows as u64);
        self.summary.join(batch.summary);
        if let Some(recorder) = &mut self.recorder {
            batch.recorded.iter().try_for_each(|row| recorder.write(row))?;
        }
        self.out.write(&batch.lines)
    }

    fn end(self) -> Result<Summary> {
        self.bar.finish_and_clear();
        if let Some(recorder) = self.recorder {
            recorder.finish()?;
        }
        self.out.finish()?;
        Ok(self.summary)
    }
}
