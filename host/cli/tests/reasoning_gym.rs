//! The standard plugin `reasoning-gym` as a run's dataset and its reward.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use project::{Project, built, lines, stderr};
use serde_json::json;

/// A project whose model can read the questions.
fn project() -> Project {
    let project = Project::new();
    let text = std::fs::read_to_string(project.path("train.toml")).unwrap();
    project.write("train.toml", &text.replace("max_position_embeddings = 64", "max_position_embeddings = 512"));
    project
}

#[test]
fn a_run_learns_from_the_rows_of_a_family_and_its_scorer() {
    let project = project();
    // The grants of the reward also hold for its rows.
    project.add_reward("gym", "plugins/reasoning-gym.wasm", "grant = { exec = [\"child\"] }");
    let text = std::fs::read_to_string(project.path("train.toml")).unwrap();
    let program = built("guests/child.wasm");
    project.write("train.toml", &format!("{text}\n[exec.child]\npath = \"{}\"\n", program.display()));
    let data = |which: &str, rows: &str| format!("data.{which}=plugin:gym?name=chain_sum&system=&{rows}");
    let (train, validation) = (data("train", "seed=1&rows=12"), data("validation", "seed=1000&rows=3"));
    let settings = ["--set", "train.steps=1", "--set", &train, "--set", &validation];
    project.succeed(&[&["train", "-c", "train.toml"][..], &settings].concat());

    let samples = lines(&project.path("runs/run/trajectories/step-000001.jsonl"));
    assert_eq!(samples.len(), 16);
    for sample in samples {
        assert_eq!(sample["data_source"], "reasoning-gym/chain_sum");
        // Random weights do not mark an answer.
        let verdict = &sample["plugins"]["gym"];
        assert_eq!((&verdict["score"], &verdict["metrics"]["answered"]), (&json!(0.0), &json!(0.0)), "{sample:?}");
    }
}

#[test]
fn what_is_wrong_with_a_family_is_told_before_the_run() {
    let project = project();
    let gym = built("plugins/reasoning-gym.wasm");
    for (query, expected) in [
        ("", "name a family, such as \"plugin:reasoning-gym?name=chain_sum\""),
        ("name=sokoban", "the family `sokoban` is not in this plugin: it needs numpy"),
    ] {
        let train = format!("data.train=plugin:{}?{query}", gym.display());
        let output = project.run(&["train", "-c", "train.toml", "--dry-run", "--set", &train]);
        assert_eq!(output.status.code(), Some(2), "{query}");
        assert!(stderr(&output).contains(expected), "{query}: {}", stderr(&output));
    }
}
