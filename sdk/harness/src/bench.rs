//! How fast a plugin is, and what it costs.

use crate::distribution::Distribution;
use crate::error::HarnessError;
use crate::harness::Harness;
use crate::plugin::{LoadedPlugin, verdict};
use crate::rows::DataRow;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use gavel_data::{Evaluation, OutcomeKind, SampleInput, Usage};
use gavel_plugin::{PluginSpec, ProgramSpec};
use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// Calls of an instance where instances are used again: enough to share out
/// what a fresh one costs.
const REUSED: NonZeroU32 = NonZeroU32::MIN.saturating_add(63);
/// Below this factor, fresh instances are worth their price.
const WORTHWHILE: f64 = 1.2;
/// Calls that are made however slow they are.
const LEAST: usize = 8;
/// Calls whose fuel is metered.
const METERED: usize = 200;
/// Calls in flight for each thread: none of them waits for work.
const IN_FLIGHT: usize = 4;

/// What a benchmark measured. Times are in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchReport {
    /// The plugin's name.
    pub plugin: String,
    /// Name and version, as the component says.
    pub component: String,
    /// BLAKE3 of the component, in hexadecimal.
    pub hash: String,
    /// Different calls: a row each, or a group where groups are judged.
    pub inputs: usize,
    /// Threads that calls ran on when they ran together.
    pub threads: usize,
    /// How long it takes to load it where nothing is cached: compiled,
    /// initialised and, where that can be had, the snapshot taken.
    pub load_cold_us: u64,
    /// How long it takes to load it from the cache.
    pub load_cached_us: u64,
    /// One call after another, from asking to answer.
    pub latency_us: Distribution,
    /// Of that, the processor time of the guest.
    pub cpu_us: Distribution,
    /// Calls each second, many at once.
    pub calls_per_second: f64,
    /// The same for each thread.
    pub calls_per_second_per_core: f64,
    /// The most memory of each call, in bytes.
    pub memory: Distribution,
    /// Fuel of each call; the same on every machine.
    pub fuel: Distribution,
    /// How often each outcome came.
    pub outcomes: BTreeMap<OutcomeKind, u64>,
    /// The same calls in instances that are used again; absent for a plugin
    /// that does not declare itself pure.
    pub reuse: Option<Reuse>,
    /// What to write in `[[reward]]`, and why.
    pub advice: String,
}

/// Instances that answer several calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reuse {
    /// How many calls each.
    pub calls: NonZeroU32,
    /// One call after another, from asking to answer.
    pub latency_us: Distribution,
    /// How much faster the mean call is than in a fresh instance.
    pub factor: f64,
    /// Whether every verdict is that of a fresh instance.
    pub same_verdicts: bool,
}

/// Measures the plugin of `spec`, which may run `programs`, over `rows` for
/// about `time`.
///
/// # Errors
/// The plugin does not load, scores nothing or asks language models, or no row
/// has a completion.
pub fn bench(
    spec: &PluginSpec,
    programs: &[ProgramSpec],
    rows: &[DataRow],
    time: Duration,
) -> Result<BenchReport, HarnessError> {
    if !spec.grants.chat.is_empty() {
        return Err(HarnessError::AsksModels(spec.name.clone()));
    }
    let folder = tempfile::tempdir().map_err(HarnessError::Temporary)?;
    let load = |spec: PluginSpec| {
        let harness = Harness::with_cache(folder.path())?;
        for program in programs {
            harness.program(program.clone())?;
        }
        let start = Instant::now();
        let plugin = harness.load(spec)?;
        Ok::<_, HarnessError>((plugin, micros(start)))
    };
    let (_, load_cold_us) = load(spec.clone())?;
    let (plugin, load_cached_us) = load(spec.clone())?;
    if !plugin.scores() {
        return Err(HarnessError::ScoresNothing(spec.name.clone()));
    }
    let inputs = inputs(rows, plugin.judges());
    if inputs.is_empty() {
        return Err(HarnessError::NoCompletions);
    }
    let time = time / if plugin.info().pure { 4 } else { 3 };
    let one = one_by_one(&plugin, &inputs, time);
    let (calls_per_second, threads) = together(&plugin, &inputs, time);

    let mut metered = spec.clone();
    // More than any call uses within its time: it is only counted.
    metered.limits.fuel.get_or_insert(i64::MAX as u64);
    let (fuelled, _) = load(metered)?;
    let start = Instant::now();
    let metered = inputs.iter().take(METERED).enumerate();
    let metered = metered.take_while(|(number, _)| *number < LEAST || start.elapsed() < time);
    let fuel = Distribution::of(metered.filter_map(|(_, input)| input.ask(&fuelled).usage.fuel));

    let reuse = match plugin.info().pure {
        false => None,
        true => {
            let (kept, _) = load(PluginSpec { reuse: Some(REUSED), ..spec.clone() })?;
            let again = one_by_one(&kept, &inputs, time);
            let factor = one.latency.mean / again.latency.mean.max(f64::MIN_POSITIVE);
            let same_verdicts = one.verdicts.iter().zip(&again.verdicts).all(|(fresh, again)| fresh == again);
            Some(Reuse { calls: REUSED, latency_us: again.latency, factor, same_verdicts })
        }
    };
    let info = plugin.info();
    Ok(BenchReport {
        plugin: spec.name.clone(),
        component: format!("{} {}", info.name, info.version),
        hash: plugin.hash().to_owned(),
        inputs: inputs.len(),
        threads,
        load_cold_us,
        load_cached_us,
        latency_us: one.latency,
        cpu_us: Distribution::of(one.usages.iter().map(|usage| usage.cpu_us)),
        calls_per_second,
        calls_per_second_per_core: calls_per_second / threads as f64,
        memory: Distribution::of(one.usages.iter().map(|usage| usage.peak_memory)),
        fuel,
        outcomes: one.outcomes,
        advice: advice(reuse.as_ref()),
        reuse,
    })
}

fn advice(reuse: Option<&Reuse>) -> String {
    match reuse {
        None => "fresh instances: the plugin does not declare itself pure".to_owned(),
        Some(Reuse { same_verdicts: false, .. }) => {
            "fresh instances: it declares itself pure, and instances that were used before say something else; see `gavel plugin check`".to_owned()
        }
        Some(Reuse { factor, calls, .. }) if *factor >= WORTHWHILE => {
            format!("reuse = {calls}: a call is {factor:.1} times as fast")
        }
        Some(Reuse { factor, .. }) => format!("fresh instances: to reuse them makes a call {factor:.2} times as fast"),
    }
}

/// What one call is about.
enum Input {
    Sample(SampleInput, u64),
    Group(Vec<SampleInput>, u64),
}

impl Input {
    fn ask(&self, plugin: &LoadedPlugin) -> Evaluation {
        plugin.block_on(self.start(plugin))
    }

    async fn start(&self, plugin: &LoadedPlugin) -> Evaluation {
        match self {
            Self::Sample(sample, seed) => plugin.plugin().score(sample, *seed).await,
            Self::Group(samples, seed) => verdict(plugin.plugin().judge(samples, *seed).await.into_iter().next()),
        }
    }
}

fn inputs(rows: &[DataRow], judged: bool) -> Vec<Input> {
    let rows: Vec<(SampleInput, u64)> = rows.iter().filter_map(|row| Some((row.input()?, row.seed))).collect();
    match judged {
        false => rows.into_iter().map(|(input, seed)| Input::Sample(input, seed)).collect(),
        true => rows
            .chunk_by(|(one, _), (next, _)| one.sample.task.id == next.sample.task.id)
            .map(|group| Input::Group(group.iter().map(|(input, _)| input.clone()).collect(), group[0].1))
            .collect(),
    }
}

/// What came of calls one after another.
struct OneByOne {
    latency: Distribution,
    usages: Vec<Usage>,
    outcomes: BTreeMap<OutcomeKind, u64>,
    /// The first verdict about each input.
    verdicts: Vec<(OutcomeKind, Option<u64>)>,
}

fn one_by_one(plugin: &LoadedPlugin, inputs: &[Input], time: Duration) -> OneByOne {
    inputs.iter().cycle().take(LEAST).for_each(|input| drop(input.ask(plugin)));
    let (mut latencies, mut usages, mut outcomes, mut verdicts) = (Vec::new(), Vec::new(), BTreeMap::new(), Vec::new());
    let start = Instant::now();
    for input in inputs.iter().cycle() {
        let asked = Instant::now();
        let said = input.ask(plugin);
        latencies.push(micros(asked));
        usages.push(said.usage);
        *outcomes.entry(said.outcome.kind()).or_default() += 1;
        if verdicts.len() < inputs.len() {
            verdicts.push((said.outcome.kind(), said.outcome.score().map(f64::to_bits)));
        }
        if latencies.len() >= LEAST && start.elapsed() >= time {
            break;
        }
    }
    OneByOne { latency: Distribution::of(latencies), usages, outcomes, verdicts }
}

/// Calls each second with all threads at work, and how many threads.
fn together(plugin: &LoadedPlugin, inputs: &[Input], time: Duration) -> (f64, usize) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut inputs = inputs.iter().cycle();
    let (start, mut calls) = (Instant::now(), 0_u64);
    plugin.block_on(async {
        let mut running: FuturesUnordered<_> =
            inputs.by_ref().take(threads * IN_FLIGHT).map(|input| input.start(plugin)).collect();
        while running.next().await.is_some() {
            calls += 1;
            if start.elapsed() < time
                && let Some(next) = inputs.next()
            {
                running.push(next.start(plugin));
            }
        }
    });
    (calls as f64 / start.elapsed().as_secs_f64(), threads)
}

fn micros(start: Instant) -> u64 {
    u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX)
}
