//! Each guest in `tests/guests` gets exactly the outcome that it must get; the
//! attacks in `tests/hostile` have a test of their own.

use gavel_data::{Blame, Budget, Credit, JudgeId, Message, Outcome, Reference, Role, Sample, Task, Trajectory};
use gavel_plugin::{Grants, Limits, LoadError, Plugin, PluginSpec, Sandbox, SandboxConfig};
use serde_json::{Map, Value, json};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

/// A guest, or an attack.
fn guest(name: &str) -> PathBuf {
    let found = ["guests", "hostile"].map(|folder| target().join(format!("{folder}/{name}.wasm")));
    found.into_iter().find(|path| path.exists()).unwrap_or_else(|| panic!("no {name}: run `cargo xtask plugins`"))
}

fn sandbox() -> Sandbox {
    Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap())).unwrap()
}

fn limits() -> Limits {
    Limits { deadline: Duration::from_secs(2), cpu: Duration::from_secs(1), ..Limits::default() }
}

fn params(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

async fn load_with(sandbox: &Sandbox, name: &str, value: Value) -> Result<Plugin, LoadError> {
    let grants = Grants::default();
    let spec = PluginSpec { params: params(value), limits: limits(), grants, ..PluginSpec::new(name, guest(name)) };
    Plugin::load(sandbox, spec).await
}

async fn load(sandbox: &Sandbox, name: &str) -> Plugin {
    load_with(sandbox, name, json!({})).await.unwrap()
}

fn sample() -> Arc<Sample> {
    let columns = params(json!({
        "prompt": "Order: 3 1", "data_source": "digits", "answer": "1 3", "unknown": {"deep": [1, null, "ü"]}
    }));
    let task = Task::from_row(columns.into(), 7, "train").unwrap();
    let trajectory = Trajectory::of(vec![Message::new(Role::Assistant, "Answer: 1 3")]);
    Arc::new(Sample::new(Arc::new(task), 2, vec![trajectory]))
}

/// What a guest must get for [`sample`].
fn expected(name: &str) -> Option<fn(&Outcome) -> bool> {
    use Outcome::{Abstained, Fault, Scored};
    Some(match name {
        "abstain" => |outcome| matches!(outcome, Abstained(_)),
        "echo-metadata" => |outcome| matches!(outcome, Scored(_)),
        "invalid-input" | "obeys" => |outcome| matches!(outcome, Fault { whose: Blame::Input, .. }),
        "random" => |outcome| matches!(outcome, Scored(score) if score.value == 4_999_950_000.0),
        "probe" => |outcome| matches!(outcome, Scored(_)),
        // The one conversation has no speaker.
        "speakers" => |outcome| matches!(outcome, Scored(score) if score.metrics[0].name == "reward/"),
        "loops" => |outcome| matches!(outcome, Scored(score) if score.value == 1.0),
        "gullible" | "sleepy" | "stateful" | "unsure" => {
            |outcome| matches!(outcome, Scored(score) if score.value == 1.0)
        }
        _ => return None,
    })
}

#[tokio::test]
async fn every_guest_gets_its_outcome_and_gets_it_again() {
    let sandbox = sandbox();
    let mut seen = 0;
    for entry in std::fs::read_dir(target().join("guests")).expect("run `cargo xtask plugins`") {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        // These do not load without a grant, do not score single samples, or need a sample of their own: http.rs, chat.rs,
        // exec.rs, groups.rs, reading.rs, trace.rs, tools.rs and agents.rs of gavel-agent, and gavel-pipeline test them.
        let others = "fetch asks runs child shortest sums ranks reads traces toolbox acts estimators draws witness";
        if others.split(' ').any(|other| other == name) {
            continue;
        }
        let holds = expected(&name).unwrap_or_else(|| panic!("the guest {name} has no expectation in this test"));
        let value = if name == "sleepy" { json!({"milliseconds": 60_000}) } else { json!({}) };
        let plugin = load_with(&sandbox, &name, value).await.unwrap();
        for _ in 0..2 {
            let start = Instant::now();
            let evaluation = plugin.score(&sample(), 1).await;
            assert!(holds(&evaluation.outcome), "{name}: {:?}", evaluation.outcome);
            assert!(start.elapsed() < Duration::from_secs(600), "{name} took {:?}", start.elapsed());
            assert!(evaluation.usage.peak_memory <= limits().memory as u64);
        }
        seen += 1;
    }
    assert!(seen >= 5, "only {seen} guests were built");
}

#[tokio::test]
async fn a_plugin_that_outlives_its_sandbox_is_still_interrupted() {
    let sandbox = sandbox();
    let plugin = load(&sandbox, "endless-loop").await;
    drop(sandbox);
    let outcome = plugin.score(&sample(), 1).await.outcome;
    assert!(matches!(outcome, Outcome::OutOfBudget { which: Budget::Cpu, .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_trap_says_where_and_what_it_was_made_of() {
    let sandbox = sandbox();
    let plugin = load(&sandbox, "trap").await;
    let sample = sample();
    let evaluation = plugin.score(&sample, 5).await;
    let diagnosis = evaluation.diagnosis.unwrap();
    assert!(diagnosis.backtrace.iter().any(|name| name.contains("score")), "{diagnosis:?}");
    assert!(diagnosis.stderr.contains("panicked at trap/src/lib.rs"), "{diagnosis:?}");
    let provenance = evaluation.provenance.unwrap();
    assert_eq!((provenance.judge, provenance.seed), (JudgeId::Component(plugin.hash().to_owned()), 5));
    assert_eq!((provenance.input, provenance.contract.as_str()), (sample.hash(), "gavel:plugin@0.2.0"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pure_plugin_may_be_reused_and_no_other() {
    let sandbox = sandbox();
    let reuse = NonZeroU32::new(3);
    let pure = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/plugins/exact-answer.wasm");
    let spec = PluginSpec { reuse, ..PluginSpec::new("answer", pure) };
    let plugin = Arc::new(Plugin::load(&sandbox, spec).await.unwrap());
    let mut memory = Vec::new();
    for seed in 0..10 {
        let evaluation = plugin.score(&sample(), seed).await;
        assert_eq!(evaluation.outcome.score(), Some(1.0), "{:?}", evaluation.outcome);
        memory.push(evaluation.usage.peak_memory);
    }
    assert!(memory.iter().all(|peak| *peak > 0));
    let calls: Vec<_> = (0..200)
        .map(|seed| {
            let plugin = plugin.clone();
            tokio::spawn(async move { plugin.score(&sample(), seed).await.outcome })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().score(), Some(1.0));
    }
    let spec = PluginSpec { reuse, ..PluginSpec::new("stateful", guest("stateful")) };
    let error = Plugin::load(&sandbox, spec).await.err().unwrap();
    assert!(matches!(error, LoadError::NotPure { .. }), "{error}");
}

/// What each of `calls` calls of `stateful` gives, which declares itself pure and has these parameters.
async fn calls_of_a_liar(calls: u64, value: Value, limits: Limits, grants: Grants) -> Vec<(String, u64)> {
    let params = params(value).into_iter().chain([("pure".to_owned(), json!(true))]).collect();
    let spec = PluginSpec { params, limits, grants, ..PluginSpec::new("liar", guest("stateful")) };
    let spec = PluginSpec { reuse: NonZeroU32::new(64), ..spec };
    let plugin = Plugin::load(&sandbox(), spec).await.unwrap();
    let mut found = Vec::new();
    for seed in 0..calls {
        let evaluation = plugin.score(&sample(), seed).await;
        let outcome = match evaluation.outcome {
            Outcome::Scored(score) => format!("{} {}", score.value, score.note.unwrap_or_default()).trim().to_owned(),
            Outcome::OutOfBudget { which, .. } => which.as_str().to_owned(),
            Outcome::Fault { whose: Blame::Plugin, .. } => "fault".to_owned(),
            other => panic!("{other:?}"),
        };
        found.push((outcome, evaluation.usage.peak_memory));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_declares_itself_pure_falsely_keeps_to_its_calls_and_limits() {
    let numbers = |count: u32| (1..=count).map(|number| number.to_string()).collect::<Vec<_>>();
    let outcomes = async |calls: u64, value: Value, limits: Limits| -> Vec<String> {
        calls_of_a_liar(calls, value, limits, Grants::default()).await.into_iter().map(|(outcome, _)| outcome).collect()
    };
    let ending = |count: u32, end: &str| [numbers(count), vec![end.to_owned()], numbers(2)].concat();
    let patient = Limits { deadline: Duration::from_secs(60), ..limits() };
    assert_eq!(outcomes(66, json!({}), patient).await, [numbers(64), numbers(2)].concat());
    assert_eq!(outcomes(65, json!({"traps_at": 63}), patient).await, ending(62, "fault"));
    let short = Limits { cpu: Duration::from_millis(200), ..patient };
    assert_eq!(outcomes(66, json!({"loops_at": 64}), short).await, ending(63, Budget::Cpu.as_str()));
    // What an instance keeps is what its plugin kept, and ends with it.
    let recalled = outcomes(66, json!({"recalls": true}), patient).await;
    assert_eq!((&*recalled[0], &*recalled[1], &*recalled[64]), ("1", "2 Answer: 1 3", "1"));

    // The memory of an instance is limited, however many calls it took to fill it.
    let small = Limits { memory: 12 << 20, ..patient };
    let grown = calls_of_a_liar(40, json!({"grows_by": 1 << 20}), small, Grants::default()).await;
    let full = grown.iter().position(|(outcome, _)| outcome == Budget::Memory.as_str()).unwrap();
    assert!((2..12).contains(&full) && grown.iter().all(|(_, peak)| *peak <= 12 << 20), "{grown:?}");
    let again: Vec<_> = grown.iter().map(|(outcome, _)| outcome.clone()).collect();
    let once = [numbers(full as u32), vec![Budget::Memory.as_str().to_owned()]].concat();
    assert!(again.chunks(full + 1).all(|part| *part == once[..part.len()]), "{again:?}");
}

#[tokio::test]
async fn calls_that_wait_for_a_thread_use_the_instances_of_others() {
    let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::MIN)).unwrap();
    let spec = PluginSpec { params: params(json!({"pure": true})), ..PluginSpec::new("liar", guest("stateful")) };
    let spec = PluginSpec { reuse: NonZeroU32::new(1000), ..spec };
    let plugin = Arc::new(Plugin::load(&sandbox, spec).await.unwrap());
    let calls: Vec<_> = (0..400)
        .map(|seed| {
            let plugin = plugin.clone();
            tokio::spawn(async move { plugin.score(&sample(), seed).await.outcome.score().unwrap() })
        })
        .collect();
    let mut instances = 0;
    for call in calls {
        instances += u32::from(call.await.unwrap() == 1.0);
    }
    // As many as calls can run at once, not one for each call that waits.
    assert!(instances <= 20, "{instances} instances");
}

#[tokio::test]
async fn an_instance_that_leaves_a_file_open_is_not_used_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "text").unwrap();
    let grants = Grants { read: vec![format!("{}:/data", folder.path().display())], ..Grants::default() };
    let found = calls_of_a_liar(4, json!({"leaves_open": "/data/file"}), limits(), grants).await;
    assert!(found.iter().all(|(outcome, _)| outcome == "1"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_instances_make_room_for_those_who_wait() {
    // Room for one instance of each at most.
    let memory = 3 << 20;
    let sandbox =
        Sandbox::new(SandboxConfig { memory, ..SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap()) }).unwrap();
    let pure = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/plugins/exact-answer.wasm");
    let limits = Limits { memory: 3 << 20, ..limits() };
    let spec = PluginSpec { limits, reuse: NonZeroU32::new(1000), ..PluginSpec::new("answer", pure) };
    let plugin = Arc::new(Plugin::load(&sandbox, spec).await.unwrap());
    let other = PluginSpec { limits, ..PluginSpec::new("stateful", guest("stateful")) };
    let other = Plugin::load(&sandbox, other).await.unwrap();
    for round in 0..3 {
        let calls: Vec<_> = (0..8)
            .map(|seed| {
                let plugin = plugin.clone();
                tokio::spawn(async move { plugin.score(&sample(), seed).await.outcome })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().score(), Some(1.0));
        }
        assert_eq!(other.score(&sample(), round).await.outcome.score(), Some(1.0));
    }
}

#[tokio::test]
async fn fuel_is_the_same_every_time_and_ends_a_loop() {
    let sandbox = sandbox();
    let load = async |name: &str, fuel| {
        let limits = Limits { fuel: Some(fuel), ..limits() };
        let spec = PluginSpec { limits, ..PluginSpec::new(name, guest(name)) };
        Plugin::load(&sandbox, spec).await.unwrap()
    };
    let honest = load("stateful", 100_000_000).await;
    let (first, second) = (honest.score(&sample(), 1).await.usage.fuel, honest.score(&sample(), 1).await.usage.fuel);
    assert!(first.is_some_and(|fuel| fuel > 0));
    assert_eq!(first, second);
    let looping = load("endless-loop", 5_000_000).await.score(&sample(), 1).await;
    assert!(matches!(looping.outcome, Outcome::OutOfBudget { which: Budget::Fuel, .. }), "{:?}", looping.outcome);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_for_memory_and_are_not_failed_for_it() {
    // A stateful guest needs little more than a megabyte; there is room for two and a half.
    let memory = 3 << 20;
    let sandbox =
        Sandbox::new(SandboxConfig { memory, ..SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap()) }).unwrap();
    let limits = Limits { memory: 2 << 20, ..limits() };
    let spec = PluginSpec { limits, ..PluginSpec::new("stateful", guest("stateful")) };
    let plugin = Arc::new(Plugin::load(&sandbox, spec).await.unwrap());
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let plugin = plugin.clone();
            tokio::spawn(async move { plugin.score(&sample(), 1).await.outcome })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().score(), Some(1.0));
    }
    let limits = Limits { memory: 4 << 20, ..limits };
    let spec = PluginSpec { limits, ..PluginSpec::new("large", guest("stateful")) };
    let error = Plugin::load(&sandbox, spec).await.err().unwrap();
    assert!(matches!(error, LoadError::MemoryLimit { .. }), "{error}");
}

#[tokio::test]
async fn every_column_arrives() {
    let sandbox = sandbox();
    let plugin = load(&sandbox, "echo-metadata").await;
    let sample = sample();
    let Outcome::Scored(score) = plugin.score(&sample, 1).await.outcome else { panic!("not scored") };
    let seen: Value = serde_json::from_str(&score.note.unwrap()).unwrap();
    assert_eq!(seen["task_id"], "train/row-7");
    assert_eq!(seen["data_source"], "digits");
    assert_eq!(seen["ground_truth"], "1 3");
    assert_eq!(seen["group_index"], 2);
    assert_eq!(seen["response"], "Answer: 1 3");
    assert_eq!(seen["columns"], serde_json::to_value(&sample.task.reference.columns).unwrap());
}

#[tokio::test]
async fn numbers_arrive_as_they_are_written() {
    let sandbox = sandbox();
    let plugin = load(&sandbox, "echo-metadata").await;
    let row = r#"{"prompt":"?","answer":4.50,"long":123456789012345678901234567890,"deep":[{"x":-0,"y":1E400}]}"#;
    let task = Task::from_row(serde_json::from_str(row).unwrap(), 0, "train").unwrap();
    let sample = Arc::new(Sample { task: Arc::new(task), ..(*sample()).clone() });
    // Each column is read, too: a Rust plugin reports a value that its type cannot hold.
    let outcome = plugin.score(&sample, 1).await.outcome;
    assert!(matches!(&outcome, Outcome::Fault { whose: Blame::Input, what } if what.contains("deep")), "{outcome:?}");
    let row = row.replace("E400", "E4");
    let task = Task::from_row(serde_json::from_str(&row).unwrap(), 0, "train").unwrap();
    let sample = Arc::new(Sample { task: Arc::new(task), ..(*sample).clone() });
    let Outcome::Scored(score) = plugin.score(&sample, 1).await.outcome else { panic!("not scored") };
    let seen: Value = serde_json::from_str(&score.note.unwrap()).unwrap();
    assert_eq!(seen["columns_json"], row);
    assert_eq!(seen["ground_truth"], "4.50");
}

#[tokio::test]
async fn credit_is_kept_with_the_score() {
    let sandbox = sandbox();
    let given = json!({"start": 8, "end": 11, "value": "-0.5", "times": 2});
    let plugin = load_with(&sandbox, "false-credit", given).await.unwrap();
    let Outcome::Scored(score) = plugin.score(&sample(), 1).await.outcome else { panic!("not scored") };
    assert_eq!(score.credit, [Credit { trajectory: 0, message: 0, start: 8, end: 11, value: -0.5 }; 2]);
}

#[tokio::test]
async fn what_is_absent_is_seen_as_absent() {
    let sandbox = sandbox();
    let plugin = load(&sandbox, "echo-metadata").await;
    let mut bare = (*sample()).clone();
    let task = Task { data_source: None, reference: Reference::default(), ..(*bare.task).clone() };
    bare.task = Arc::new(task);
    let Outcome::Scored(score) = plugin.score(&Arc::new(bare), 1).await.outcome else { panic!("not scored") };
    let seen: Value = serde_json::from_str(&score.note.unwrap()).unwrap();
    assert_eq!((&seen["data_source"], &seen["ground_truth"]), (&Value::Null, &Value::Null));
    assert_eq!(seen["columns"], json!({}));
}

#[tokio::test]
async fn parameters_are_refused_at_load() {
    let sandbox = sandbox();
    let error = load_with(&sandbox, "sleepy", json!({"miliseconds": 1})).await.err().unwrap();
    assert!(matches!(error, LoadError::Params { .. }), "{error}");
    assert!(error.to_string().contains("miliseconds"), "{error}");
}

#[tokio::test]
async fn what_is_no_reward_is_refused_by_name() {
    let sandbox = sandbox();
    let folder = tempfile::tempdir().unwrap();
    let load = async |bytes: &[u8]| {
        let path = folder.path().join("p.wasm");
        std::fs::write(&path, bytes).unwrap();
        let spec = PluginSpec { limits: limits(), ..PluginSpec::new("p", path) };
        Plugin::load(&sandbox, spec).await.err().unwrap()
    };
    let whole = std::fs::read(guest("abstain")).unwrap();
    assert!(matches!(load(b"\0asm\x01\0\0\0").await, LoadError::CoreModule { .. }));
    assert!(matches!(load(b"#!/bin/sh").await, LoadError::Invalid { .. }));
    assert!(matches!(load(&whole[..whole.len() / 2]).await, LoadError::Invalid { .. }));
    // An empty component exports nothing.
    assert!(matches!(load(b"\0asm\x0d\0\x01\0").await, LoadError::MissingExport { .. }));
}
