//! The cost of the sandbox: a call through [`Plugin::score`] (typed call, budgets, lanes, memory meter, interruption,
//! deterministic clocks and randomness, outcome) against a hand-written loop over bare wasmtime that instantiates,
//! initialises and calls the same component. It also measures how much time a snapshot saves for a Python component
//! with sympy. Each call has a fresh instance and a response of 2 KB; rounds alternate.
//!
//! `cargo xtask plugins && cargo bench --workspace --bench call`, on an idle machine. `benches/python/build.sh` builds
//! the Python components; without them, only the Rust component is measured.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, missing_docs)]

use gavel_data::{Message, Outcome, Role, Sample, Task, Trajectory};
use gavel_plugin::{Limits, Plugin, PluginSpec, Sandbox, SandboxConfig};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

mod bare;

const ROUNDS: usize = 7;

fn main() {
    let bench = Bench {
        runtime: tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap(),
        sandbox: Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::MIN)).unwrap(),
    };
    bench.against_bare("rust", "plugins/exact-answer.wasm", 2000);
    if target("bench/answer.wasm").exists() && target("bench/symbolic.wasm").exists() {
        bench.against_bare("python", "bench/answer.wasm", 100);
        bench.snapshot("python with sympy", "bench/symbolic.wasm", 10);
    }
}

fn target(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path)
}

fn sample(answer: &str, truth: &str) -> Arc<Sample> {
    let row = json!({"prompt": "Order: 3 1", "data_source": "digits", "answer": truth});
    let task = Task::from_row(serde_json::from_value(row).unwrap(), 0, "train").unwrap();
    let response = "lorem ipsum ".repeat(170) + "\nAnswer: " + answer;
    let trajectory = Trajectory::of(vec![Message::new(Role::Assistant, response)]);
    Arc::new(Sample::new(Arc::new(task), 0, vec![trajectory]))
}

struct Bench {
    runtime: tokio::runtime::Runtime,
    sandbox: Sandbox,
}

impl Bench {
    fn load(&self, path: &str, params: Value) -> Plugin {
        let limits = Limits { cpu: Duration::from_secs(60), deadline: Duration::from_secs(60), ..Limits::default() };
        let params = serde_json::from_value(params).unwrap();
        let spec = PluginSpec { params, limits, ..PluginSpec::new(path, target(path)) };
        self.runtime.block_on(Plugin::load(&self.sandbox, spec)).unwrap()
    }

    fn score(&self, plugin: &Plugin, sample: &Arc<Sample>) {
        match self.runtime.block_on(plugin.score(sample, 1)).outcome {
            Outcome::Scored(score) => assert_eq!(score.value, 1.0),
            other => panic!("{other:?}"),
        }
    }

    fn against_bare(&self, guest: &str, path: &str, calls: u32) {
        let sample = sample("1 3", "1 3");
        let (plugin, bare) = (self.load(path, json!({})), bare::Bare::load(&target(path)));
        let (ours, theirs) = medians(
            calls,
            || self.score(&plugin, &sample),
            || assert_eq!(self.runtime.block_on(bare.score(&sample)), 1.0),
        );
        let ratio = ours / theirs;
        println!(
            r#"{{"guest": "{guest}", "gavel_us": {ours:.1}, "bare_wasmtime_us": {theirs:.1}, "ratio": {ratio:.2}}}"#
        );
    }

    fn snapshot(&self, guest: &str, path: &str, calls: u32) {
        let sample = sample("x**2 + 2*x + 1", "(x + 1)**2");
        let (warm, cold) = (self.load(path, json!({})), self.load(path, json!({"loud": true})));
        assert_eq!((warm.no_snapshot().is_some(), cold.no_snapshot().is_some()), (false, true));
        let (with, without) = medians(calls, || self.score(&warm, &sample), || self.score(&cold, &sample));
        let times = without / with;
        println!(r#"{{"guest": "{guest}", "snapshot_us": {with:.1}, "init_us": {without:.1}, "times": {times:.1}}}"#);
    }
}

/// The median microseconds of a call of each; the two take turns.
fn medians(calls: u32, mut first: impl FnMut(), mut second: impl FnMut()) -> (f64, f64) {
    let time = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
    };
    let (mut firsts, mut seconds): (Vec<_>, Vec<_>) =
        (0..ROUNDS).map(|_| (time(&mut first), time(&mut second))).unzip();
    firsts.sort_by(f64::total_cmp);
    seconds.sort_by(f64::total_cmp);
    (firsts[ROUNDS / 2], seconds[ROUNDS / 2])
}
