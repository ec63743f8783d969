//! Programs that a plugin runs.

use crate::common::{Sampled, guest, sandbox};
use gavel_data::{Budget, Evaluation, Message, Outcome, Role, Sample, Task, Trajectory};
use gavel_plugin::{Grants, Limits, LoadError, Plugin, PluginSpec, ProgramSpec, Sandbox};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn sample(response: &str) -> Arc<Sample> {
    let columns = serde_json::from_value(json!({"prompt": "?"})).unwrap();
    let messages = vec![Message::new(Role::Assistant, response)];
    let trajectories = vec![Trajectory::of(messages)];
    Arc::new(Sample::new(Arc::new(Task::from_row(columns, 0, "t").unwrap()), 0, trajectories))
}

fn with_child() -> Sandbox {
    with_child_of(1_000)
}

/// A sandbox with a child that may use this much processor time.
fn with_child_of(cpu_ms: u64) -> Sandbox {
    let sandbox = sandbox();
    let limits = Limits { cpu: Duration::from_millis(cpu_ms), memory: 16 << 20, log: 1 << 16, ..Limits::default() };
    let spec = ProgramSpec { name: "child".into(), path: guest("child"), limits };
    sandbox.add_program(spec).unwrap();
    sandbox
}

fn spec(params: Value) -> PluginSpec {
    let mut spec = PluginSpec::new("runs", guest("runs"));
    spec.params = serde_json::from_value(params).unwrap();
    spec.grants = Grants { exec: vec!["child".into()], ..Grants::default() };
    spec
}

fn score(sandbox: &Sandbox, spec: PluginSpec, response: &str, seed: u64) -> Evaluation {
    sandbox.handle().block_on(async { Plugin::load(sandbox, spec).await.unwrap().score(&sample(response), seed).await })
}

#[test]
fn each_ending_is_told_apart_and_none_is_the_plugins_fault() {
    let sandbox = with_child();
    let told = score(&sandbox, spec(json!({})), "echo exit loop bomb panic flood", 1).note();
    let echo = &told[0].as_array().unwrap()[..4];
    assert_eq!(json!(echo), json!(["exited 0", r#"["child", "echo"] input of echo"#, 31, false]));
    // WASI 0.2 knows success and failure, and no other status.
    assert_eq!(told[1][0], "exited 1");
    assert_eq!(told[2][0], "out of cpu");
    assert_eq!(told[3][0], "out of memory");
    assert_eq!((&told[4][0], &told[4][3]), (&json!("trapped"), &json!(true)));
    // The beginning of its output is kept.
    assert_eq!((&told[5][0], &told[5][2]), (&json!("out of log"), &json!(1 << 16)));
}

/// One less, one more, and the power of two itself.
fn around(powers: std::ops::RangeInclusive<u32>) -> impl Iterator<Item = usize> {
    powers.flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1])
}

#[test]
fn what_a_child_reads_and_prints_is_whole() {
    let (sandbox, most) = (sandbox(), 1 << 20);
    let limits = Limits { log: most, ..Limits::default() };
    sandbox.add_program(ProgramSpec { name: "child".into(), path: guest("child"), limits }).unwrap();
    let plugin = sandbox.handle().block_on(Plugin::load(&sandbox, spec(json!({})))).unwrap();
    let run = |job: &str| {
        let told = sandbox.handle().block_on(plugin.score(&sample(job), 1)).note();
        (told[0][0].as_str().unwrap().to_owned(), told[0][2].as_u64().unwrap() as usize)
    };
    for size in around(4..=20) {
        let expected = match size <= most {
            true => ("exited 0".to_owned(), size),
            false => ("out of log".to_owned(), most),
        };
        assert_eq!(run(&format!("once-{size}")), expected);
        // Its input is the job after these words.
        let rest = "x".repeat(size.saturating_sub("input of copy-".len()));
        assert_eq!(run(&format!("copy-{rest}")), expected);
    }
}

#[test]
fn a_child_may_print_more_at_once_than_a_plugin_may_say() {
    let sandbox = sandbox();
    let limits = Limits { log: 16 << 20, output: 1 << 20, ..Limits::default() };
    sandbox.add_program(ProgramSpec { name: "child".into(), path: guest("child"), limits }).unwrap();
    let told = score(&sandbox, spec(json!({})), "once-16777216 once-16777217", 1).note();
    assert_eq!((&told[0][0], &told[0][2]), (&json!("exited 0"), &json!(16 << 20)));
    assert_eq!((&told[1][0], &told[1][2]), (&json!("out of log"), &json!(16 << 20)));
}

#[test]
fn a_child_reaches_nothing() {
    let told = score(&with_child(), spec(json!({})), "reach", 1).note();
    assert_eq!(told[0][1], "[false, false, false, false]");
}

#[test]
fn what_a_child_sees_as_random_follows_from_the_call() {
    let sandbox = with_child();
    let chance = |seed| {
        let told = score(&sandbox, spec(json!({})), "chance chance", seed).note();
        [told[0][1].clone(), told[1][1].clone()]
    };
    let first = chance(1);
    assert_ne!(first[0], first[1]);
    assert_eq!(chance(1), first);
    assert_ne!(chance(2), first);
}

#[test]
fn a_job_may_have_less_and_not_more() {
    // The larger one is well before the deadlines, and far enough from the smaller for a slow machine.
    for (limit, asked) in [(2_000, 100), (200, 5_000)] {
        let evaluation = score(&with_child_of(limit), spec(json!({"cpu_ms": asked})), "loop", 1);
        let usage = evaluation.usage;
        let used = evaluation.note()[0][4].as_u64().unwrap();
        let (given, other) = (1_000 * limit.min(asked), 1_000 * limit.max(asked));
        assert!((given..other).contains(&used), "{used} µs used where {given} µs are allowed");
        // It is the child's time, which counts once in its parent's time.
        assert!(usage.cpu_us < used, "{usage:?}");
        assert!(usage.elapsed_us.abs_diff(used + usage.cpu_us) < 1_000, "{usage:?}, of which the child used {used} µs");
    }
}

#[test]
fn children_end_with_their_parent() {
    let sandbox = with_child();
    let mut spec = spec(json!({}));
    spec.limits.deadline = Duration::from_millis(300);
    let evaluation = score(&sandbox, spec, "loop loop loop loop loop loop loop loop", 1);
    assert!(matches!(evaluation.outcome, Outcome::OutOfBudget { .. }), "{evaluation:?}");
}

#[test]
fn a_child_has_no_longer_than_its_parent() {
    let (sandbox, minute) = (sandbox(), Duration::from_secs(60));
    let limits = Limits { cpu: minute, deadline: minute, memory: 16 << 20, ..Limits::default() };
    let program = ProgramSpec { name: "child".into(), path: guest("child"), limits };
    sandbox.add_program(program).unwrap();
    let mut spec = spec(json!({}));
    spec.limits.deadline = Duration::from_millis(300);
    for response in ["loop", "echo loop loop"] {
        let evaluation = score(&sandbox, spec.clone(), response, 1);
        let outcome = &evaluation.outcome;
        assert!(matches!(outcome, Outcome::OutOfBudget { which: Budget::Deadline, .. }), "{evaluation:?}");
        assert!(evaluation.usage.elapsed_us < 20_000_000, "{evaluation:?}");
    }
}

#[test]
fn more_parents_than_children_fit_and_all_get_their_turn() {
    let sandbox = with_child();
    let plugin = Arc::new(sandbox.handle().block_on(Plugin::load(&sandbox, spec(json!({})))).unwrap());
    let calls: Vec<_> = (0..300)
        .map(|seed| {
            let plugin = plugin.clone();
            sandbox.handle().spawn(async move { plugin.score(&sample("echo exit echo"), seed).await })
        })
        .collect();
    for call in calls {
        assert_eq!(sandbox.handle().block_on(call).unwrap().outcome.score(), Some(3.0));
    }
}

#[test]
fn what_cannot_be_run_is_named() {
    let sandbox = with_child();
    let load = |grants: Grants| {
        let spec = PluginSpec { grants, ..spec(json!({})) };
        sandbox.handle().block_on(Plugin::load(&sandbox, spec)).err().unwrap().to_string()
    };
    assert!(load(Grants::default()).contains(r#"grant = { exec = ["NAME"] }"#));
    let error = load(Grants { exec: vec!["perl".into()], ..Grants::default() });
    assert!(error.contains("there is no program `perl` (known: child)"), "{error}");
    let evaluation = score(&sandbox, spec(json!({"program": "perl"})), "echo", 1);
    let reason = evaluation.outcome.reason().unwrap();
    assert_eq!(reason, "the program `perl` is not granted to this plugin, which has: child");
    let spec = ProgramSpec { name: "runs".into(), path: guest("runs"), limits: Limits::default() };
    assert!(matches!(sandbox.add_program(spec), Err(LoadError::NoProgram { .. })));
}
