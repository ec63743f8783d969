//! `gavel score`: plugins over saved completions.

mod args;
mod batch;
mod dash;
mod in_flight;
mod on_ray;
mod output;
pub mod recording;
mod reward_models;
pub mod source;
mod summary;

pub use args::ScoreArgs;

use crate::models::Models;
use crate::plugin_args;
use crate::progress;
use crate::terminal;
use anyhow::{Result, bail};
use batch::{Batch, ScoredBatch};
use dash::is_dash;
use gavel_data::ColumnNames;
use gavel_plugin::{CallLog, Limits, SandboxConfig, Tape};
use gavel_runs::layout;
use gavel_scoring::recording::Recording;
use gavel_scoring::{Scorer, ScorerConfig};
use in_flight::InFlight;
use indicatif::ProgressBar;
use output::Output;
use recording::Recorder;
use source::Source;
use std::process::ExitCode;
use std::time::Instant;
use summary::Summary;

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
    let calls = CallLog::new(false);
    let tape = match (&args.record, &args.replay) {
        (Some(folder), _) => Tape::record_as(layout::tape(folder), 0, Some(calls.clone())),
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
    let recorder = args.record.as_deref().map(|folder| Recorder::create(folder, &scorer, calls)).transpose()?;
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
            recorder.write_calls()?;
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
