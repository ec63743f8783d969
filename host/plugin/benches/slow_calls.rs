//! Calls on more and more threads of one process against one thread: calls per second, and what a call costs. Processor
//! time and page faults of a call that grow with the threads are what the threads lose to each other. Each measurement
//! has a process of its own, with 32 calls at once, a fresh instance for each, and a response of 2 KB:
//!
//! - `python` outlives its first slice, as every call in Python does, and touches many pages;
//! - `loop` computes for 5 ms in Rust, and touches few;
//! - `short` is an exact match in Rust, which ends in the fast lane.
//!
//! `cargo xtask plugins && sh host/plugin/benches/python/build.sh && cargo bench --workspace --bench slow_calls`, on an
//! idle machine.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, missing_docs)]

use gavel_data::{Message, OutcomeKind, Role, Sample, Task, Trajectory};
use gavel_plugin::{Limits, Plugin, PluginSpec, Sandbox, SandboxConfig};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const WARM_UP: usize = 64;
const AT_ONCE: usize = 32;
const ROUNDS: usize = 3;
/// The kind of call and the threads of a process that measures.
const MEASURED: [&str; 2] = ["GAVEL_BENCH_KIND", "GAVEL_BENCH_THREADS"];

/// A kind of call.
struct Kind {
    name: &'static str,
    component: &'static str,
    calls: usize,
    cpu: Duration,
    outcome: OutcomeKind,
}

static KINDS: [Kind; 3] = {
    let long = Duration::from_secs(2);
    let (scored, over) = (OutcomeKind::Scored, OutcomeKind::OutOfBudget);
    [
        Kind { name: "python", component: "bench/answer.wasm", calls: 1000, cpu: long, outcome: scored },
        Kind {
            name: "loop",
            component: "hostile/endless-loop.wasm",
            calls: 400,
            cpu: Duration::from_millis(5),
            outcome: over,
        },
        Kind { name: "short", component: "plugins/exact-answer.wasm", calls: 50_000, cpu: long, outcome: scored },
    ]
};

fn main() {
    if let [Ok(kind), Ok(threads)] = MEASURED.map(std::env::var) {
        return measure(KINDS.iter().find(|found| found.name == kind).unwrap(), threads.parse().unwrap());
    }
    let cores = std::thread::available_parallelism().unwrap().get();
    let powers = std::iter::successors(Some(1), |threads| Some(threads * 2)).take_while(|threads| *threads < cores);
    let counts: Vec<usize> = powers.chain([cores]).collect();
    for kind in &KINDS {
        assert!(component(kind).exists(), "{} is not built", component(kind).display());
        for threads in &counts {
            let values = [kind.name.to_owned(), threads.to_string()];
            Command::new(std::env::current_exe().unwrap()).envs(MEASURED.iter().zip(values)).status().unwrap();
        }
    }
}

fn component(kind: &Kind) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(kind.component)
}

fn measure(kind: &'static Kind, threads: NonZeroUsize) {
    let sandbox = Sandbox::new(SandboxConfig::with_threads(threads)).unwrap();
    let limits = Limits { cpu: kind.cpu, ..Limits::default() };
    let spec = PluginSpec { limits, ..PluginSpec::new(kind.name, component(kind)) };
    let plugin = sandbox.handle().block_on(Plugin::load(&sandbox, spec)).unwrap();
    let (plugin, sample) = (Arc::new(plugin), sample());
    score(&sandbox, &plugin, &sample, WARM_UP, kind.outcome);
    for _ in 0..ROUNDS {
        let (before, start) = (used(), Instant::now());
        score(&sandbox, &plugin, &sample, kind.calls, kind.outcome);
        let (after, seconds) = (used(), start.elapsed().as_secs_f64());
        let [user, system, faults, switches] = std::array::from_fn(|at| (after[at] - before[at]) / kind.calls as f64);
        println!(
            r#"{{"calls": "{}", "threads": {threads}, "calls_per_second": {:.0}, "user_us": {user:.0}, "kernel_us": {system:.0}, "page_faults": {faults:.1}, "context_switches": {switches:.1}}}"#,
            kind.name,
            kind.calls as f64 / seconds
        );
    }
}

/// Makes so many calls, always `AT_ONCE` at a time.
fn score(sandbox: &Sandbox, plugin: &Arc<Plugin>, sample: &Arc<Sample>, calls: usize, outcome: OutcomeKind) {
    let started = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (plugin, sample, started) = (plugin.clone(), sample.clone(), started.clone());
            sandbox.handle().spawn(async move {
                while started.fetch_add(1, Ordering::Relaxed) < calls {
                    assert_eq!(plugin.score(&sample, 1).await.outcome.kind(), outcome);
                }
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| sandbox.handle().block_on(caller).unwrap());
}

/// What this process has used: microseconds in its code and in the kernel, page faults, and context switches.
fn used() -> [f64; 4] {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a local, which zeros initialise and the call overwrites.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let micros = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    let switches = usage.ru_nvcsw + usage.ru_nivcsw;
    [micros(usage.ru_utime), micros(usage.ru_stime), usage.ru_minflt as f64, switches as f64]
}

fn sample() -> Arc<Sample> {
    let row = serde_json::json!({"prompt": "Order: 3 1", "data_source": "digits", "answer": "1 3"});
    let task = Task::from_row(serde_json::from_value(row).unwrap(), 0, "train").unwrap();
    let response = "lorem ipsum ".repeat(170) + "\nAnswer: 1 3";
    let trajectory = Trajectory::of(vec![Message::new(Role::Assistant, response)]);
    Arc::new(Sample::new(Arc::new(task), 0, vec![trajectory]))
}
