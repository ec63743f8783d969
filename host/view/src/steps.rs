//! Where the time of one step went: its phases, what the device waited for, the requests of plugins, and the samples that
//! took longest.

use crate::error::{Result, ViewError};
use crate::run::ViewedRun;
use gavel_data::OutcomeKind;
use gavel_data::files::{open_regular, read_line};
use gavel_runs::{call_files, sample_files};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::PathBuf;

/// What tells of times.
const TIMES: [&str; 3] = ["time/", "device_wait/", "perf/"];
/// The most requests and the most samples that are shown: those that took longest.
const MOST_CALLS: usize = 300;
const MOST_SAMPLES: usize = 40;
/// The most bytes that are read of the requests, and of the samples, of a step.
const MOST_BYTES: u64 = 64 << 20;
/// The most uses of tools that are shown of a sample.
const MOST_USES: usize = 64;

/// The times of a step.
#[derive(Debug, Serialize)]
pub(crate) struct StepTimes {
    step: u64,
    /// The first and the last step that have metrics, and the neighbours of this one.
    first: u64,
    last: u64,
    before: Option<u64>,
    after: Option<u64>,
    metrics: BTreeMap<String, f64>,
    /// When the metrics of the step before it and its own were written, in seconds since 1970.
    began: Option<f64>,
    ended: Option<f64>,
    /// The requests by who made them, the longest together first.
    calls_by: Vec<CallsBy>,
    /// The longest requests in the order of their times.
    calls: Vec<Call>,
    samples: Vec<SampleTimes>,
    /// The requests and the trajectories that were read, and whether there are more.
    calls_read: usize,
    samples_read: usize,
    is_partial: bool,
}

/// The requests of a plugin to one endpoint.
#[derive(Debug, Default, PartialEq, Serialize)]
struct CallsBy {
    plugin: String,
    kind: String,
    endpoint: String,
    count: u64,
    failed: u64,
    waited: f64,
    ran: f64,
    longest: f64,
}

/// A request that a plugin made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Call {
    #[serde(rename = "for", default)]
    made_for: Option<String>,
    plugin: String,
    kind: String,
    endpoint: String,
    timestamp: f64,
    waited: f64,
    ran: f64,
    ended: String,
    #[serde(default)]
    error: Option<String>,
}

/// The times of a trajectory, in seconds. When they began is not recorded.
#[derive(Debug, Default, PartialEq, Serialize)]
struct SampleTimes {
    id: String,
    trajectory: u32,
    /// Of each turn of the policy, and of the tools after it; none of a sample of one turn, which no tool answered.
    generating: Vec<f64>,
    in_tools: Vec<f64>,
    tools: Vec<ToolTime>,
    verdicts: Vec<VerdictTime>,
    seconds: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ToolTime {
    #[serde(default)]
    name: Option<String>,
    ending: String,
    turn: u32,
    seconds: f64,
}

#[derive(Debug, PartialEq, Serialize)]
struct VerdictTime {
    plugin: String,
    outcome: OutcomeKind,
    seconds: f64,
}

pub(crate) fn step_times(run: &ViewedRun, step: u64) -> Result<StepTimes> {
    let (steps, (metrics, ended), began) = {
        let curves = run.curves()?;
        let steps = curves.steps();
        let before = steps.iter().copied().filter(|other| *other < step).max();
        let began = before.and_then(|before| curves.of_step(before, &[]).1);
        (steps, curves.of_step(step, &TIMES), began)
    };
    let known = steps.iter().min().copied().zip(steps.iter().max().copied());
    let Some((first, last)) = known.filter(|_| steps.contains(&step)) else {
        return Err(ViewError::NoSuchStep { run: run.name.clone(), step, known });
    };
    let (calls, calls_whole) = read_lines::<Call>(&call_files(&run.path, step)?)?;
    let files = sample_files(&run.path)?.into_iter().filter(|file| file.step == step).map(|file| file.path);
    let (lines, lines_whole) = read_lines::<Line>(&files.collect::<Vec<_>>())?;
    let (calls_read, samples_read) = (calls.len(), lines.len());
    let (calls_by, calls) = sorted_calls(calls);
    Ok(StepTimes {
        step,
        first,
        last,
        before: steps.iter().copied().filter(|other| *other < step).max(),
        after: steps.iter().copied().filter(|other| *other > step).min(),
        metrics,
        began,
        ended,
        calls_by,
        calls,
        samples: longest(lines.into_iter().map(SampleTimes::from).collect()),
        calls_read,
        samples_read,
        is_partial: !(calls_whole && lines_whole),
    })
}

/// The lines of files as far as their bytes have room, and whether that is all. Lines that cannot be read are left out.
fn read_lines<T: DeserializeOwned>(paths: &[PathBuf]) -> Result<(Vec<T>, bool)> {
    let (mut found, mut line, mut bytes) = (Vec::new(), Vec::new(), 0);
    for path in paths {
        let mut lines = BufReader::with_capacity(1 << 18, open_regular(path).map_err(ViewError::io("read", path))?);
        loop {
            let length = read_line(&mut lines, &mut line).map_err(ViewError::io("read", path))?;
            bytes += length as u64;
            match (length, bytes > MOST_BYTES) {
                (0, _) => break,
                (_, true) => return Ok((found, false)),
                _ => found.extend(serde_json::from_slice::<T>(&line).ok()),
            }
        }
    }
    Ok((found, true))
}

fn sorted_calls(mut calls: Vec<Call>) -> (Vec<CallsBy>, Vec<Call>) {
    let mut by: BTreeMap<(String, String, String), CallsBy> = BTreeMap::new();
    for call in &calls {
        let key = (call.plugin.clone(), call.kind.clone(), call.endpoint.clone());
        let sum = by.entry(key).or_default();
        sum.count += 1;
        sum.failed += u64::from(call.error.is_some());
        sum.waited += call.waited;
        sum.ran += call.ran;
        sum.longest = sum.longest.max(call.waited + call.ran);
    }
    let named = by.into_iter().map(|((plugin, kind, endpoint), sum)| CallsBy { plugin, kind, endpoint, ..sum });
    let mut by: Vec<CallsBy> = named.collect();
    by.sort_by(|one, other| (other.waited + other.ran).total_cmp(&(one.waited + one.ran)));
    calls.sort_by(|one, other| (other.waited + other.ran).total_cmp(&(one.waited + one.ran)));
    calls.truncate(MOST_CALLS);
    calls.sort_by(|one, other| one.timestamp.total_cmp(&other.timestamp));
    (by, calls)
}

fn longest(mut samples: Vec<SampleTimes>) -> Vec<SampleTimes> {
    samples.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    samples.truncate(MOST_SAMPLES);
    samples
}

/// What a line of `trajectories/` has of times.
#[derive(Deserialize)]
struct Line {
    id: String,
    #[serde(default)]
    trajectory: u32,
    #[serde(default)]
    rollout: Rollout,
    #[serde(default)]
    plugins: BTreeMap<String, Verdict>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Rollout {
    generating: Vec<f64>,
    in_tools: Vec<f64>,
    tool_uses: Vec<ToolTime>,
}

#[derive(Deserialize)]
struct Verdict {
    outcome: OutcomeKind,
    #[serde(default)]
    elapsed_us: u64,
}

impl From<Line> for SampleTimes {
    fn from(line: Line) -> Self {
        let Rollout { generating, in_tools, tool_uses: mut tools } = line.rollout;
        tools.sort_by_key(|tool| Reverse((tool.seconds.max(0.0) * 1e6) as u64));
        tools.truncate(MOST_USES);
        let verdict = |(plugin, verdict): (String, Verdict)| VerdictTime {
            plugin,
            outcome: verdict.outcome,
            seconds: verdict.elapsed_us as f64 / 1e6,
        };
        let verdicts: Vec<VerdictTime> = line.plugins.into_iter().map(verdict).collect();
        let seconds = generating.iter().chain(&in_tools).sum::<f64>();
        let seconds = seconds + verdicts.iter().map(|verdict| verdict.seconds).sum::<f64>();
        Self { id: line.id, trajectory: line.trajectory, generating, in_tools, tools, verdicts, seconds }
    }
}
