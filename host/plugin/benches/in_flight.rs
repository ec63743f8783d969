//! Calls that wait: 10,000 at once, each asleep for 50 ms of real time in a host call, on two threads. Prints the total
//! time, and the memory and the threads that the calls need while they wait.
//!
//! `cargo xtask plugins && cargo bench --workspace --bench in_flight`, on an idle machine.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, missing_docs)]

use gavel_data::{Message, Role, Sample, Task, Trajectory};
use gavel_plugin::{ClockGrant, Grants, Limits, Plugin, PluginSpec, Sandbox, SandboxConfig};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CALLS: usize = 10_000;
const WAIT_MS: u64 = 50;

fn main() {
    let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap())).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guests/sleepy.wasm");
    let params = serde_json::from_value(serde_json::json!({"milliseconds": WAIT_MS})).unwrap();
    let grants = Grants { clock: ClockGrant::Real, ..Grants::default() };
    let limits = Limits { deadline: Duration::from_secs(60), ..Limits::default() };
    let spec = PluginSpec { params, grants, limits, ..PluginSpec::new("sleepy", path) };
    let plugin = Arc::new(sandbox.handle().block_on(Plugin::load(&sandbox, spec)).unwrap());
    let sample = sample();
    // The first round makes the pool's memory resident.
    for round in 0..3 {
        let before = status("VmRSS:");
        let (peak, threads, done) =
            (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let watcher = {
            let (peak, threads, done) = (peak.clone(), threads.clone(), done.clone());
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    peak.fetch_max(status("VmRSS:"), Ordering::Relaxed);
                    threads.fetch_max(status("Threads:"), Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(5));
                }
            })
        };
        let start = Instant::now();
        let calls: Vec<_> = (0..CALLS)
            .map(|_| {
                let (plugin, sample) = (plugin.clone(), sample.clone());
                sandbox.handle().spawn(async move { plugin.score(&sample, 1).await.outcome.score() })
            })
            .collect();
        for call in calls {
            assert_eq!(sandbox.handle().block_on(call).unwrap(), Some(1.0));
        }
        let elapsed = start.elapsed();
        done.store(true, Ordering::Relaxed);
        watcher.join().unwrap();
        let kilobytes = peak.load(Ordering::Relaxed).saturating_sub(before);
        println!(
            "round {round}: {CALLS} calls of {WAIT_MS} ms in {:.2} s; {} KB more while they wait, {:.1} KB a call; {} threads",
            elapsed.as_secs_f64(),
            kilobytes,
            kilobytes as f64 / CALLS as f64,
            threads.load(Ordering::Relaxed)
        );
    }
}

/// A number of `/proc/self/status`; memory is in KB.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn sample() -> Arc<Sample> {
    let task = Task::with_prompt(Default::default(), vec![Message::new(Role::User, "q")], 0, "train");
    let messages = vec![Message::new(Role::Assistant, "a")];
    let trajectory = Trajectory::of(messages);
    Arc::new(Sample::new(Arc::new(task), 0, vec![trajectory]))
}
