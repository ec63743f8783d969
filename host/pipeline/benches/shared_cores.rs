//! What busy plugins cost decoding: tokens per second alone, and beside two plugin threads that never rest. Decoding
//! has two threads as well. The first measurement has libgomp's defaults, the second the settings with which `gavel`
//! starts itself (`OMP_WAIT_POLICY`, `GOMP_SPINCOUNT`).
//!
//! The share that decoding should keep is the share in `[resources]`: libtorch's threads divided by all threads.
//!
//! `cargo xtask plugins && cargo bench --workspace --bench shared_cores`, on an idle machine.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use gavel_data::{Message, Role, Sample, Task, Trajectory};
use gavel_plugin::{Limits, PluginSpec, SandboxConfig};
use gavel_policy::{Device, Engine, EngineConfig, Model, ModelConfig, Request, Sampling};
use gavel_scoring::{Scorer, WeightedPlugin};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

const THREADS: usize = 2;
const BATCH: u64 = 32;
const NEW: usize = 128;
const MEASURED: &str = "GAVEL_BENCH_MEASURED";

fn main() {
    if std::env::var_os(MEASURED).is_some() {
        return measure();
    }
    for (name, settings) in [
        ("libgomp's defaults", &[][..]),
        ("as gavel starts itself", &[("OMP_WAIT_POLICY", "PASSIVE"), ("GOMP_SPINCOUNT", "20000")][..]),
    ] {
        println!("{name}: ");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(MEASURED, "1").envs(settings.iter().copied()).status().unwrap();
    }
}

fn measure() {
    tch::set_num_threads(THREADS as i32);
    let model = model();
    decode(&model);
    let alone = (0..3).map(|_| decode(&model)).fold(0.0, f64::max);
    let scorer = busy_plugins();
    let calls: Vec<_> = (0..THREADS as u64).map(|seed| scorer.start_alone(sample(), seed)).collect();
    std::thread::sleep(Duration::from_millis(200));
    let busy = (0..3).map(|_| decode(&model)).fold(f64::INFINITY, f64::min);
    assert!(calls.iter().all(|call| !call.is_done()), "the plugins came to rest before the measurement ended");
    println!("  {alone:.0} tokens/s alone, {busy:.0} beside busy plugins: {:.0} %, of 50 % due", 100.0 * busy / alone);
}

fn busy_plugins() -> Scorer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/hostile/endless-loop.wasm");
    let minute = Duration::from_secs(60);
    let limits = Limits { deadline: minute, cpu: minute, ..Limits::default() };
    let spec = PluginSpec { limits, ..PluginSpec::new("loop", path) };
    let config = SandboxConfig::with_threads(NonZeroUsize::new(THREADS).unwrap());
    Scorer::new(vec![WeightedPlugin::new(spec, 1.0)], config.into()).unwrap()
}

fn sample() -> Sample {
    let task = Task::with_prompt(Default::default(), vec![Message::new(Role::User, "q")], 0, "train");
    let messages = vec![Message::new(Role::Assistant, "a")];
    let trajectory = Trajectory::of(messages);
    Sample::new(Arc::new(task), 0, vec![trajectory])
}

fn model() -> Model {
    let config = serde_json::from_value::<ModelConfig>(serde_json::json!({
        "model_type": "qwen2", "vocab_size": 259, "hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "tie_word_embeddings": true
    }));
    Model::random(config.unwrap(), 0, Device::Cpu).unwrap()
}

/// Tokens per second of a batch.
fn decode(model: &Model) -> f64 {
    let mut engine = Engine::new(model, EngineConfig { max_batch: BATCH as usize, ..EngineConfig::default() }).unwrap();
    for id in 0..BATCH {
        let prompt: Vec<u32> = (0..35).map(|at| 3 + (7 * at + 13 * id as u32) % 256).collect();
        engine.submit(Request::new(id, prompt, Sampling::new(NEW, Vec::new()), id)).unwrap();
    }
    let start = Instant::now();
    while !engine.is_idle() {
        engine.step(model).unwrap();
    }
    (BATCH as usize * NEW) as f64 / start.elapsed().as_secs_f64()
}
