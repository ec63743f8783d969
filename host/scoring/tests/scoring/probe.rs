//! Plugins that are tried before a run.

use gavel_data::{Message, Role, RowSources, Sample, Task, Trajectory};
use gavel_plugin::{PluginSpec, SandboxConfig};
use gavel_scoring::{Probe, Scorer, SourcePattern, WeightedPlugin};
use serde_json::json;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

fn plugin(name: &str, guest: &str, params: serde_json::Value) -> WeightedPlugin {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/guests/{guest}.wasm"));
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    let mut plugin = WeightedPlugin::new(PluginSpec::new(name, path), 1.0);
    plugin.spec.params = serde_json::from_value(params).unwrap();
    plugin
}

fn scorer(plugins: Vec<WeightedPlugin>) -> Scorer {
    Scorer::new(plugins, SandboxConfig::with_threads(NonZeroUsize::MIN).into()).unwrap()
}

fn tasks(split: &str, count: usize) -> Vec<Arc<Task>> {
    let row = |position: usize| {
        let source = ["even", "odd"][position % 2];
        let columns = serde_json::from_value(json!({"prompt": "?", "data_source": source})).unwrap();
        Arc::new(Task::from_row(columns, position, split).unwrap())
    };
    (0..count).map(row).collect()
}

fn probed(scorer: &Scorer, datasets: &[Vec<Arc<Task>>]) -> Vec<Probe> {
    let sources: Vec<RowSources> =
        datasets.iter().map(|tasks| tasks.iter().map(|task| task.data_source.as_deref()).collect()).collect();
    let task = |dataset: usize, row: usize| Ok::<_, Infallible>(datasets[dataset][row].clone());
    scorer.sandbox().handle().block_on(scorer.probe(&sources.iter().collect::<Vec<_>>(), task)).unwrap()
}

fn rows(probe: &Probe) -> Vec<&str> {
    probe.calls.iter().map(|row| row.task.id.as_str()).collect()
}

#[test]
fn each_plugin_is_tried_on_rows_that_it_is_for() {
    let mut odd = plugin("odd", "abstain", json!({}));
    odd.when.data_sources = vec![SourcePattern("odd".into())];
    // A gate that is shut hides nothing.
    odd.when.only_if = Some("all > 7".parse().unwrap());
    let scorer = scorer(vec![plugin("all", "obeys", json!({})), odd]);
    let probes = probed(&scorer, &[tasks("train", 40), tasks("validation", 3)]);
    let found: Vec<_> = probes.iter().map(|probe| (probe.plugin.as_str(), probe.dataset, rows(probe))).collect();
    let expected = [
        ("all", 0, vec!["train/row-0", "train/row-10", "train/row-20", "train/row-30"]),
        ("all", 1, vec!["validation/row-0", "validation/row-1", "validation/row-2"]),
        ("odd", 0, vec!["train/row-1", "train/row-11", "train/row-21", "train/row-31"]),
        ("odd", 1, vec!["validation/row-1"]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_judger_sees_two_responses_and_what_others_said_of_them() {
    let mut ranks = plugin("ranks", "ranks", json!({"by": "calls"}));
    ranks.when.after = vec!["calls".into()];
    let probes = probed(&scorer(vec![ranks, plugin("calls", "stateful", json!({}))]), &[tasks("train", 1)]);
    assert_eq!(probes[0].calls[0].evaluation.outcome.reason().unwrap(), "scored 1, no note");
    assert_eq!(probes[1].calls[0].evaluation.outcome.score(), Some(1.0));
}

#[test]
fn the_tokens_of_a_response_are_counted() {
    let length = plugin("length", "../plugins/length", json!({"max_response": 32, "buffer": 8}));
    let probes = probed(&scorer(vec![length]), &[tasks("train", 1)]);
    assert_eq!(probes[0].calls[0].evaluation.outcome.score(), Some(0.0));
}

#[test]
fn no_later_call_depends_on_it() {
    let mut stateful = plugin("calls", "stateful", json!({"pure": true}));
    stateful.spec.reuse = Some(1000.try_into().unwrap());
    let scorer = scorer(vec![stateful]);
    probed(&scorer, &[tasks("train", 8)]);
    let score = || {
        let messages = vec![Message::new(Role::Assistant, "a")];
        let trajectories = vec![Trajectory::of(messages)];
        let sample = Sample::new(tasks("train", 1).remove(0), 0, trajectories);
        scorer.wait(scorer.start_alone(sample, 1)).reward
    };
    // The first call after it is the first of its instance; the second is not.
    assert_eq!((score(), score()), (Some(1.0), Some(2.0)));
}
