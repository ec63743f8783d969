//! What the sandbox costs: a call through [`Plugin::score`] (typed call, deadline, memory meter, interruption,
//! deterministic clocks and randomness, outcome) against a hand-written loop over bare wasmtime that instantiates and
//! calls the same component. Both use a fresh instance for each call and a response of 2 KB; rounds alternate.
//!
//! `cargo xtask plugins && cargo bench --workspace --bench call`, on an idle machine.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use gavel_data::{FinishReason, Message, Outcome, Role, Sample, Task, Trajectory};
use gavel_plugin::{Grants, Limits, Plugin, PluginSpec, Sandbox, SandboxConfig};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

mod bare;

const CALLS: u32 = 2000;
const ROUNDS: usize = 7;

fn sample() -> Arc<Sample> {
    let row = serde_json::json!({"prompt": "Order: 3 1", "data_source": "digits", "answer": "1 3"});
    let task = Task::from_row(serde_json::from_value(row).unwrap(), 0, "train").unwrap();
    let response = "lorem ipsum ".repeat(170) + "\nAnswer: 1 3";
    let trajectory = Trajectory {
        messages: vec![Message::new(Role::Assistant, response)],
        tokens: None,
        finish_reason: FinishReason::Stop,
    };
    Arc::new(Sample { task: Arc::new(task), index: 0, trajectories: vec![trajectory] })
}

fn component() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/plugins/exact-answer.wasm")
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let sample = sample();
    let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::MIN)).unwrap();
    let spec = PluginSpec {
        name: "answer".into(),
        path: component(),
        params: Default::default(),
        limits: Limits::default(),
        grants: Grants::default(),
    };
    let plugin = runtime.block_on(Plugin::load(&sandbox, spec)).unwrap();
    let bare = bare::Bare::load(&component());

    let time = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(time(&mut || {
            let evaluation = runtime.block_on(plugin.score(&sample, 1));
            assert!(matches!(evaluation.outcome, Outcome::Scored(score) if score.value == 1.0));
        }));
        theirs.push(time(&mut || assert_eq!(runtime.block_on(bare.score(&sample)), 1.0)));
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (ours, theirs) = (median(&mut ours), median(&mut theirs));
    println!(r#"{{"gavel_us": {ours:.1}, "bare_wasmtime_us": {theirs:.1}, "ratio": {:.2}}}"#, ours / theirs);
}
