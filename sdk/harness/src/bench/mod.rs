//! Measures how fast a plugin is and what it costs.

mod input;

use crate::distribution::Distribution;
use crate::error::HarnessError;
use crate::harness::Harness;
use crate::plugin::LoadedPlugin;
use crate::rows::PluginData;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use gavel_data::Usage;
use gavel_plugin::{PluginSpec, ProgramSpec, Tool};
use input::{Answered, Input, micros};
use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// Calls of an instance when instances are reused: enough that the cost of a
/// fresh one hardly counts.
const REUSED: NonZeroU32 = NonZeroU32::MIN.saturating_add(63);
/// Below this factor, instances are not worth reusing.
const WORTHWHILE: f64 = 1.2;
/// The least number of calls, however slow they are.
const LEAST: usize = 8;
/// Calls whose fuel is metered.
const METERED: usize = 200;
/// Calls in flight for each thread: none of them waits for work.
const IN_FLIGHT: usize = 4;

/// The results of a benchmark. Times are in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchReport {
    /// The plugin's name.
    pub plugin: String,
    /// The component's name and version.
    pub component: String,
    /// BLAKE3 of the component, in hexadecimal.
    pub hash: String,
    /// The number of different inputs: rows, groups for a judger, sessions for a tool, batches for an advantage, or
    /// requests for a sampler.
    pub inputs: usize,
    /// The threads of concurrent calls.
    pub threads: usize,
    /// The time to load it without a cache: compiled, initialised and, if
    /// possible, the snapshot taken.
    pub load_cold_us: u64,
    /// The time to load it from the cache.
    pub load_cached_us: u64,
    /// The latency of single calls, one after another.
    pub latency_us: Distribution,
    /// The processor time of the guest in these calls.
    pub cpu_us: Distribution,
    /// Calls a second, with many at once.
    pub calls_per_second: f64,
    /// Calls a second for each thread.
    pub calls_per_second_per_core: f64,
    /// The most memory of each call, in bytes.
    pub memory: Distribution,
    /// Fuel of each call; the same on every machine.
    pub fuel: Distribution,
    /// How often each outcome occurred.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// The same calls in reused instances; absent for a plugin that does not
    /// declare itself pure.
    pub reuse: Option<Reuse>,
    /// What to write in `[[reward]]` or `[[tool]]`, and why.
    pub advice: String,
}

/// Instances that answer several calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reuse {
    /// The calls of each instance.
    pub calls: NonZeroU32,
    /// The latency of single calls, one after another.
    pub latency_us: Distribution,
    /// The speed of the mean call, divided by its speed in a fresh instance.
    pub factor: f64,
    /// Whether every verdict equals the verdict of a fresh instance.
    pub same_verdicts: bool,
}

/// Measures the plugin of `spec`, which may run `programs`, over `data` for
/// about `time`.
///
/// # Errors
/// The plugin does not load or asks models, or the data does not fit it: no row has a completion, or a tool has no
/// sessions.
pub fn bench(
    spec: &PluginSpec,
    programs: &[ProgramSpec],
    data: &PluginData,
    time: Duration,
) -> Result<BenchReport, HarnessError> {
    if spec.grants.asks_models() {
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
    data.check(&plugin)?;
    let inputs = Input::of(data, plugin.judges());
    if inputs.is_empty() {
        return Err(HarnessError::NoCompletions);
    }
    // A run calls an advantage and a sampler in fresh instances.
    let is_decider = matches!(data, PluginData::Batches(_) | PluginData::Requests(_));
    let may_reuse = plugin.info().pure && !is_decider;
    let time = time / if may_reuse { 4 } else { 3 };
    let one = one_by_one(&plugin, &inputs, time);
    let (calls_per_second, threads) = together(&plugin, &inputs, time);

    let mut metered = spec.clone();
    // More than any call can use in its time, as fuel is only counted.
    metered.limits.fuel.get_or_insert(i64::MAX as u64);
    let (fuelled, _) = load(metered)?;
    let start = Instant::now();
    let metered = inputs.iter().take(METERED).enumerate();
    let metered = metered.take_while(|(number, _)| *number < LEAST || start.elapsed() < time);
    let fuel = Distribution::of(metered.flat_map(|(_, input)| input.ask(&fuelled)).filter_map(|call| call.usage.fuel));

    let reuse = match may_reuse {
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
        advice: advice(&plugin, reuse.as_ref()),
        reuse,
    })
}

fn advice(plugin: &LoadedPlugin, reuse: Option<&Reuse>) -> String {
    match reuse {
        None if plugin.is_advantage() && !plugin.scores() => {
            "fresh instances: a run calls it once for each set of groups that it trains on".to_owned()
        }
        None if plugin.is_sampler() && !plugin.scores() => {
            "fresh instances: a run calls it once for each set of tasks that it starts, and of groups that end".to_owned()
        }
        None if plugin.tool().is_some_and(Tool::keeps_state) => {
            "an instance for each trajectory: if no call depends on an earlier one, declare the tool pure, and trajectories reserve no memory".to_owned()
        }
        None => {
            format!("fresh instances: the plugin does not declare itself pure. If the same input always gets the same answer, declare it, and `bench` measures `reuse = {REUSED}`")
        }
        Some(Reuse { same_verdicts: false, .. }) => {
            "fresh instances: the plugin declares itself pure, but reused instances give other verdicts; see `gavel plugin check`".to_owned()
        }
        Some(Reuse { factor, calls, .. }) if *factor >= WORTHWHILE => {
            format!("reuse = {calls}: a call is {factor:.1} times as fast")
        }
        Some(Reuse { factor, .. }) => format!("fresh instances: with reused ones a call is only {factor:.2} times as fast"),
    }
}

/// The results of calls one after another.
struct OneByOne {
    latency: Distribution,
    usages: Vec<Usage>,
    outcomes: BTreeMap<&'static str, u64>,
    /// The first outcome and verdict of each input.
    verdicts: Vec<Vec<(&'static str, String)>>,
}

fn one_by_one(plugin: &LoadedPlugin, inputs: &[Input<'_>], time: Duration) -> OneByOne {
    inputs.iter().cycle().take(LEAST).for_each(|input| drop(input.ask(plugin)));
    let (mut latencies, mut usages, mut outcomes, mut verdicts) = (Vec::new(), Vec::new(), BTreeMap::new(), Vec::new());
    let start = Instant::now();
    for (asked, input) in (1..).zip(inputs.iter().cycle()) {
        let answered = input.ask(plugin);
        if verdicts.len() < inputs.len() {
            verdicts.push(answered.iter().map(|call| (call.outcome, call.verdict.clone())).collect());
        }
        for Answered { latency_us, usage, outcome, .. } in answered {
            latencies.push(latency_us);
            usages.push(usage);
            *outcomes.entry(outcome).or_default() += 1;
        }
        if asked >= LEAST && start.elapsed() >= time {
            break;
        }
    }
    OneByOne { latency: Distribution::of(latencies), usages, outcomes, verdicts }
}

/// Calls a second with all threads at work, and the number of threads.
fn together(plugin: &LoadedPlugin, inputs: &[Input<'_>], time: Duration) -> (f64, usize) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut inputs = inputs.iter().cycle();
    let (start, mut calls) = (Instant::now(), 0);
    plugin.block_on(async {
        let mut running: FuturesUnordered<_> =
            inputs.by_ref().take(threads * IN_FLIGHT).map(|input| input.start(plugin)).collect();
        while let Some(answered) = running.next().await {
            calls += answered.len();
            if start.elapsed() < time
                && let Some(next) = inputs.next()
            {
                running.push(next.start(plugin));
            }
        }
    });
    (calls as f64 / start.elapsed().as_secs_f64(), threads)
}
