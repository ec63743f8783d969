//! Samples that wait for tools: 1,000 at once, on two threads. Each has five turns, with a call of 50 to 500 ms after
//! every turn but the last. Prints the total time beside the ideal, in which each sample waits only for its own calls,
//! and the memory and the threads that the samples need.
//!
//! `cargo xtask plugins && cargo bench --workspace --bench waiting_tools`, on an idle machine.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, missing_docs)]

use futures::FutureExt;
use gavel_agent::{
    Episode, EpisodeLimits, EpisodeProgress, History, LeftOut, OnToolFailure, PendingTurn, Policy, ToolLimits, ToolSet,
    Tools, Turn, TurnRequest,
};
use gavel_data::{FinishReason, Message, Role, SamplingMasks, Task};
use gavel_plugin::{ClockGrant, Grants, Limits, PluginSpec, Sandbox, SandboxConfig};
use gavel_text::TextModel;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SAMPLES: u64 = 1_000;
const TURNS: u64 = 5;

/// A policy that calls `wait` in each turn but the last, and takes no time to write.
struct Waiting {
    text: TextModel,
}

/// The wait after turn `turn` of sample `sample`: 50 to 500 ms.
fn wait_ms(sample: u64, turn: u64) -> u64 {
    50 + (sample * 2_654_435_761 + turn * 40_503) % 451
}

impl Policy for Waiting {
    type Error = Infallible;

    fn text(&self) -> &TextModel {
        &self.text
    }

    async fn generate(&self, requests: Vec<TurnRequest>) -> Result<Vec<PendingTurn<Infallible>>, Infallible> {
        let turn = |request: TurnRequest| {
            // The prompt names the sample, and each earlier turn adds a call.
            let seen = self.text.tokenizer.decode_with(&request.prompt, false).unwrap();
            let sample = seen.split("sample ").nth(1).and_then(|rest| rest.split('.').next()).unwrap().parse().unwrap();
            let turn = seen.matches("<tool_call>").count() as u64 - 1;
            let written = match turn < TURNS - 1 {
                true => format!(
                    "<tool_call>\n{{\"name\": \"wait\", \"arguments\": {{\"ms\": {}}}}}\n</tool_call>",
                    wait_ms(sample, turn)
                ),
                false => "done".to_owned(),
            };
            let mut ids = self.text.tokenizer.encode(&written).unwrap();
            ids.push(self.text.tokenizer.eos());
            let (logprobs, versions) = (vec![0.0; ids.len()], vec![0; ids.len()]);
            async move {
                Ok(Turn { ids, logprobs, versions, masks: SamplingMasks::new(), finish_reason: FinishReason::Stop })
            }
            .boxed()
        };
        Ok(requests.into_iter().map(turn).collect())
    }
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::temp_dir().join(format!("gavel-waiting-tools-{}", std::process::id()));
    TextModel::byte_level().save(&folder).unwrap();
    std::fs::copy(root.join("tests/parity/chat_templates/qwen2_5.jinja"), folder.join("chat_template.jinja")).unwrap();
    let policy = Arc::new(Waiting { text: TextModel::load(&folder).unwrap() });
    std::fs::remove_dir_all(&folder).unwrap();

    let total = |sample: u64| (0..TURNS - 1).map(|turn| wait_ms(sample, turn)).sum::<u64>();
    let ideal = Duration::from_millis((0..SAMPLES).map(total).max().unwrap());
    for (name, pure) in [("a session each", false), ("a fresh instance a call", true)] {
        let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap())).unwrap();
        let limits = Limits { memory: 2 << 20, ..Limits::default() };
        let grants = Grants { clock: ClockGrant::Real, ..Grants::default() };
        let params = serde_json::from_value(serde_json::json!({"pure": pure})).unwrap();
        let spec = PluginSpec {
            params,
            limits,
            grants,
            ..PluginSpec::new("toolbox", root.join("target/guests/toolbox.wasm"))
        };
        let set = Arc::new(sandbox.handle().block_on(ToolSet::load(&sandbox, vec![spec.into()])).unwrap());
        let tools = ToolLimits {
            max_parallel_calls: 1,
            max_output_tokens: 100,
            left_out: LeftOut::Middle,
            on_failure: OnToolFailure::default(),
        };
        let (deadline, history) = (Duration::from_secs(600), History::Exact);
        let limits = EpisodeLimits { max_turns: 10, deadline, history, tools };
        for round in 0..2 {
            let before = status("VmRSS:");
            let done = Arc::new(AtomicBool::new(false));
            let (memory, threads) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let watcher = {
                let (memory, threads, done) = (memory.clone(), threads.clone(), done.clone());
                std::thread::spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        memory.fetch_max(status("VmRSS:"), Ordering::Relaxed);
                        threads.fetch_max(status("Threads:"), Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(5));
                    }
                })
            };
            let start = Instant::now();
            let samples: Vec<_> = (0..SAMPLES)
                .map(|sample| {
                    let message = Message::new(Role::User, format!("sample {sample}. <tool_call> is how to call."));
                    let prompt = policy.text.prompt_ids(std::slice::from_ref(&message)).unwrap();
                    let task = Arc::new(Task::with_prompt(Default::default(), vec![message], sample as usize, "train"));
                    let tools = Some(Tools { set: set.clone(), limits });
                    let (max_tokens, seed) = (100_000, sample);
                    let episode =
                        Episode { task, index: 0, prompt, max_tokens, seed, tool_seed: seed, key: None, tools };
                    let policy = policy.clone();
                    sandbox.handle().spawn(async move {
                        let first = policy.generate(vec![episode.first_request()]).await.unwrap().remove(0);
                        episode.play(&*policy, first, &EpisodeProgress::default()).await.unwrap()
                    })
                })
                .collect();
            for sample in samples {
                let sample = sandbox.handle().block_on(sample).unwrap();
                let trajectory = &sample.trajectories[0];
                assert_eq!(trajectory.finish_reason, FinishReason::Stop);
                assert_eq!(trajectory.turns(Role::Tool) as u64, TURNS - 1);
            }
            let elapsed = start.elapsed();
            done.store(true, Ordering::Relaxed);
            watcher.join().unwrap();
            println!(
                "{name}, round {round}: {SAMPLES} samples in {:.2} s, {:.2} times the ideal of {:.2} s; {} MB more; {} threads",
                elapsed.as_secs_f64(),
                elapsed.as_secs_f64() / ideal.as_secs_f64(),
                ideal.as_secs_f64(),
                memory.load(Ordering::Relaxed).saturating_sub(before) / 1000,
                threads.load(Ordering::Relaxed) - 1,
            );
        }
    }
}

/// A number from `/proc/self/status`; memory is in KB.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
