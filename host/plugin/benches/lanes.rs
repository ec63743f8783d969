//! Honest short calls among endless loops. Measures the time of each of 1000 calls that start at once: alone, beside 64
//! loops in Gavel's two lanes, and beside 64 loops in one tokio runtime, where each guest yields at every tick, as
//! wasmtime itself offers. All three use two threads.
//!
//! `cargo xtask plugins && cargo bench --workspace --bench lanes`, on an idle machine.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, missing_docs)]

use gavel_data::{Message, Outcome, Role, Sample, Task, Trajectory};
use gavel_plugin::{Limits, Plugin, PluginSpec, Sandbox, SandboxConfig};
use std::future::Future;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

mod bare;

const THREADS: usize = 2;
const LOOPS: usize = 64;
const CALLS: usize = 1000;
const TICKS: [Duration; 3] = [Duration::from_millis(10), Duration::from_millis(1), Duration::from_micros(200)];

fn main() {
    let samples = sample();
    gavel(&samples, 0);
    gavel(&samples, LOOPS);
    for tick in TICKS {
        bare_wasmtime(&samples, tick);
    }
}

fn gavel(sample: &Arc<Sample>, loops: usize) {
    let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::new(THREADS).unwrap())).unwrap();
    let load = |path: PathBuf| {
        let minute = Duration::from_secs(60);
        let limits = Limits { cpu: minute, deadline: minute, ..Limits::default() };
        let spec = PluginSpec { limits, ..PluginSpec::new("plugin", path) };
        Arc::new(sandbox.handle().block_on(Plugin::load(&sandbox, spec)).unwrap())
    };
    let (honest, endless) = (load(honest()), load(endless()));
    let call = |plugin: &Arc<Plugin>| {
        let (plugin, sample) = (plugin.clone(), sample.clone());
        async move {
            let evaluation = plugin.score(&sample, 1).await;
            assert!(matches!(evaluation.outcome, Outcome::Scored(score) if score.value == 1.0));
        }
    };
    measure(&format!("gavel, {loops} loops"), sandbox.handle(), loops, || call(&honest), || call(&endless));
}

fn bare_wasmtime(sample: &Arc<Sample>, tick: Duration) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).build().unwrap();
    let engine = bare::yielding_engine(tick);
    let load = |path: PathBuf| Arc::new(bare::Bare::load_yielding(&engine, &path));
    let (honest, endless) = (load(honest()), load(endless()));
    let call = |plugin: &Arc<bare::Bare>| {
        let (plugin, sample) = (plugin.clone(), sample.clone());
        async move { assert_eq!(plugin.score(&sample).await, 1.0) }
    };
    let name = format!("one runtime, {LOOPS} loops, tick {tick:?}");
    measure(&name, runtime.handle(), LOOPS, || call(&honest), || call(&endless));
    runtime.shutdown_background();
}

/// Starts the loops, then all calls at once, and prints the times of the calls.
fn measure<A, B>(name: &str, handle: &Handle, loops: usize, honest: impl Fn() -> A, endless: impl Fn() -> B)
where
    A: Future<Output = ()> + Send + 'static,
    B: Future<Output = ()> + Send + 'static,
{
    let warm_up: Vec<_> = (0..CALLS).map(|_| handle.spawn(honest())).collect();
    warm_up.into_iter().for_each(|call| handle.block_on(call).unwrap());
    let loops: Vec<_> = (0..loops).map(|_| handle.spawn(endless())).collect();
    let start = Instant::now();
    let calls: Vec<_> = (0..CALLS)
        .map(|_| {
            let call = honest();
            handle.spawn(async move {
                call.await;
                start.elapsed()
            })
        })
        .collect();
    let mut times: Vec<Duration> = calls.into_iter().map(|call| handle.block_on(call).unwrap()).collect();
    loops.iter().for_each(tokio::task::JoinHandle::abort);
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("{name:34} p50 {:7.1} ms, p99 {:7.1} ms", at(0.5), at(0.99));
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

fn honest() -> PathBuf {
    target().join("plugins/exact-answer.wasm")
}

fn endless() -> PathBuf {
    target().join("hostile/endless-loop.wasm")
}

fn sample() -> Arc<Sample> {
    let row = serde_json::json!({"prompt": "Order: 3 1", "data_source": "digits", "answer": "1 3"});
    let task = Task::from_row(serde_json::from_value(row).unwrap(), 0, "train").unwrap();
    let trajectory = Trajectory::of(vec![Message::new(Role::Assistant, "Answer: 1 3")]);
    Arc::new(Sample::new(Arc::new(task), 0, vec![trajectory]))
}
