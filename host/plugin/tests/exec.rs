//! Programs that a plugin runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Sampled, guest, sandbox};
use gavel_data::{Evaluation, FinishReason, Message, Outcome, Role, Sample, Task, Trajectory};
use gavel_plugin::{Grants, Limits, LoadError, Plugin, PluginSpec, ProgramSpec, Sandbox};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn sample(response: &str) -> Arc<Sample> {
    let columns = serde_json::from_value(json!({"prompt": "?"})).unwrap();
    let messages = vec![Message::new(Role::Assistant, response)];
    let trajectories = vec![Trajectory { messages, tokens: None, finish_reason: FinishReason::Stop }];
    Arc::new(Sample { task: Arc::new(Task::from_row(columns, 0, "t").unwrap()), index: 0, trajectories })
}

fn with_child() -> Sandbox {
    let sandbox = sandbox();
    let limits = Limits { cpu: Duration::from_millis(200), memory: 16 << 20, log: 1 << 16, ..Limits::default() };
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
    assert_eq!(told[0], json!(["exited 0", r#"["child", "echo"] input of echo"#, 31, false]));
    // WASI 0.2 knows success and failure, and no other status.
    assert_eq!(told[1][0], "exited 1");
    assert_eq!(told[2][0], "out of cpu");
    assert_eq!(told[3][0], "out of memory");
    assert_eq!((&told[4][0], &told[4][3]), (&json!("trapped"), &json!(true)));
    // The beginning of what it printed is there.
    assert_eq!((&told[5][0], &told[5][2]), (&json!("out of log"), &json!(1 << 16)));
}

#[test]
fn a_child_reaches_nothing() {
    let told = score(&with_child(), spec(json!({})), "reach", 1).note();
    assert_eq!(told[0][1], "[false, false, false, false]");
}

#[test]
fn what_a_child_sees_as_random_follows_from_the_call() {
    let sandbox = with_child();
    let chance = |seed| score(&sandbox, spec(json!({})), "chance chance", seed).note();
    let first = chance(1);
    assert_ne!(first[0][1], first[1][1]);
    assert_eq!(chance(1), first);
    assert_ne!(chance(2), first);
}

#[test]
fn a_job_may_have_less_and_not_more() {
    let sandbox = with_child();
    let usage = |params| score(&sandbox, spec(params), "loop", 1).usage;
    let (less, more) = (usage(json!({"cpu_ms": 20})), usage(json!({"cpu_ms": 60_000})));
    assert!(less.elapsed_us >= 20_000 && less.elapsed_us < 150_000, "{less:?}");
    assert!(more.elapsed_us >= 200_000 && more.elapsed_us < 2_000_000, "{more:?}");
    // It is the child's time, and not its parent's.
    assert!(more.cpu_us < 100_000, "{more:?}");
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
