//! Runs whose advantages a plugin gives.

use super::tests::{config, repository};
use super::*;
use gavel_scoring::recording::PluginSet;
use std::path::Path;

const RESUME: Start = Start::Resume { from: None, allow_changed_plugins: false };

/// A run whose advantages the guest `estimators` gives.
fn of_plugin(folder: &Path, name: &str, estimator: &str, added: &str) -> Config<RlTable> {
    let guest = repository().join("target/guests/estimators.wasm");
    assert!(guest.exists(), "{} is missing: run `cargo xtask plugins`", guest.display());
    let text = format!(
        "[train]\nadvantage = 'plugin:own'\nmin_scored = 2\n{added}\n[plugin.own]\npath = {guest:?}\n\
         params = {{ estimator = '{estimator}' }}\nlimits = {{ cpu = '1m', timeout = '2m' }}"
    );
    config(folder, name, &text)
}

fn run(config: &Config<RlTable>, start: Start) -> Result<Summary> {
    train(config, start, &Peers::alone(), &Control::default())
}

fn weights(summary: &Summary) -> Vec<u8> {
    std::fs::read(summary.checkpoint.as_ref().unwrap().join("model.safetensors")).unwrap()
}

/// The lines of a run's metrics.
fn metrics(summary: &Summary) -> Vec<serde_json::Map<String, serde_json::Value>> {
    let text = std::fs::read_to_string(summary.folder.join("metrics.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_plugin_that_repeats_an_algorithm_trains_the_same_weights() {
    let folder = tempfile::tempdir().unwrap();
    for estimator in ["grpo", "rloo", "gdpo"] {
        let built_in = format!("[train]\nalgorithm = '{estimator}'");
        let built_in = run(&config(folder.path(), estimator, &built_in), Start::New).unwrap();
        let name = format!("own-{estimator}");
        let own = run(&of_plugin(folder.path(), &name, estimator, ""), Start::New).unwrap();
        assert!(weights(&own) == weights(&built_in), "{estimator}");
        let (of_own, of_built_in) = (metrics(&own), metrics(&built_in));
        assert!(of_own[1]["grad_norm"].as_f64().unwrap() > 0.0, "{estimator}: {of_own:?}");
        assert!(of_own[1].contains_key("time/advantage") && !of_built_in[1].contains_key("time/advantage"));
        assert_eq!(of_own[1]["advantage/max"], of_built_in[1]["advantage/max"]);
    }
    let sets = gavel_runs::read_plugin_sets::<PluginSet>(&folder.path().join("runs/own-grpo")).unwrap();
    let record = serde_json::to_value(&sets[0].actors).unwrap();
    let hash = blake3::hash(&std::fs::read(repository().join("target/guests/estimators.wasm")).unwrap());
    assert_eq!(
        [&record[0]["role"], &record[0]["name"], &record[0]["component"], &record[0]["params"]["estimator"]],
        ["advantage", "own", hash.to_hex().as_ref(), "grpo"]
    );
}

#[test]
fn a_step_whose_advantages_are_not_finite_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let config = of_plugin(folder.path(), "failing", "fails", "steps = 3");
    let error = run(&config, Start::New).unwrap_err().to_string();
    let says = "step 2: the advantage plugin `own` returned no advantages: group 0 (task ";
    assert!(error.starts_with(says), "{error}");
    assert!(
        error.contains("), sample 0: the advantage is NaN\nhint: repair it, or raise plugin.own.limits"),
        "{error}"
    );
    let checkpoints = folder.path().join("runs/failing/checkpoints");
    let names: Vec<_> = std::fs::read_dir(&checkpoints).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["step-000001"]);
    let repaired = of_plugin(folder.path(), "failing", "grpo", "steps = 3");
    let refused = run(&repaired, RESUME).unwrap_err().to_string();
    assert!(refused.contains("the advantage plugin `own` has another set of parameters"), "{refused}");
    let changed = Start::Resume { from: None, allow_changed_plugins: true };
    assert_eq!(run(&repaired, changed).unwrap().step, 3);
}

#[test]
fn the_state_of_a_plugin_is_in_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let config = |name: &str, steps: u64| {
        of_plugin(folder.path(), name, "running", &format!("steps = {steps}\nmini_batch_prompts = 4"))
    };
    let whole = run(&config("whole", 3), Start::New).unwrap();
    let first = run(&config("stopped", 1), Start::New).unwrap();
    let state = std::fs::read_to_string(first.checkpoint.unwrap().join("state.json")).unwrap();
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    // Sixteen bytes in base64.
    assert_eq!(state["advantage"].as_str().unwrap().len(), 24);
    let resumed = run(&config("stopped", 3), RESUME).unwrap();
    assert!(weights(&resumed) == weights(&whole));
}

#[test]
fn a_plugin_that_is_no_advantage_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = of_plugin(folder.path(), "wrong", "grpo", "");
    let own = config.plugin.get_mut("own").unwrap();
    own.path = repository().join("target/plugins/format.wasm");
    own.params = serde_json::from_str(r#"{"pattern": "."}"#).unwrap();
    let error = run(&config, Start::New).unwrap_err().to_string();
    let says = "plugin `own` does not turn rewards into advantages: it does not export gavel:plugin/advantage\nhint: ";
    assert!(error.starts_with(says), "{error}");
}
