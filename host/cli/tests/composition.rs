//! Runs with gates and data sources, and their replay, as a user runs them.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use project::{Project, lines, stderr};
use serde_json::Value;

const DIGIT: &str = "params = { pattern = '(?s).*[0-9].*' }";

fn write_train(project: &Project, change: impl FnOnce(String) -> String) {
    let text = std::fs::read_to_string(project.path("train.toml")).unwrap();
    project.write("train.toml", &change(text));
}

#[test]
fn a_gated_run_says_what_was_not_called_and_replays() {
    let project = Project::new();
    project.add_reward("digit", "plugins/format.wasm", &format!("only_if = \"letter > 0\"\n{DIGIT}"));
    project.add_reward("poem", "plugins/format.wasm", &format!("data_sources = [\"poems*\"]\n{DIGIT}"));
    project.succeed(&["train", "-c", "train.toml", "--set", "train.steps=2"]);

    let (mut shut, mut open) = (0, 0);
    for step in 1..=2 {
        for line in lines(&project.path(&format!("runs/run/trajectories/step-00000{step}.jsonl"))) {
            let letter = line["plugins"]["letter"]["score"].as_f64().unwrap();
            let digit = &line["plugins"]["digit"]["score"];
            assert_eq!(line["not_called"]["poem"], "data-source", "{line:?}");
            if letter > 0.0 {
                open += 1;
                assert_eq!(line["reward"].as_f64().unwrap(), letter + digit.as_f64().unwrap());
            } else {
                shut += 1;
                assert_eq!((&line["not_called"]["digit"], digit), (&"gate".into(), &Value::Null));
                assert_eq!(line["reward"], 0.0);
            }
        }
    }
    assert!(shut > 0 && open > 0, "{shut} and {open}");
    let metrics = project.metrics("runs/run");
    let sum = |name: &str| metrics.iter().filter_map(|line| line.get(name)?.as_f64()).sum::<f64>();
    assert_eq!(sum("outcome/digit/not-called/gate"), f64::from(shut));
    assert_eq!(sum("outcome/digit/scored"), f64::from(open));

    project.succeed(&["replay", "runs/run"]);
    // A gate that is always open calls what is behind it.
    let always = r#"letter={"pattern":"(?s).*"}"#;
    let output = project.run(&["replay", "runs/run", "--params", always, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let digit = found["plugins"].as_array().unwrap().iter().find(|plugin| plugin["name"] == "digit").unwrap();
    assert_eq!((&digit["only_replayed"], &digit["samples"]), (&shut.into(), &open.into()));
    assert_eq!(digit["agreed"], digit["samples"]);
    assert!(found["rewards"]["replayed_mean"].as_f64().unwrap() > found["rewards"]["recorded_mean"].as_f64().unwrap());
}

#[test]
fn rows_that_nobody_would_judge_stop_the_run_before_it_starts() {
    let project = Project::new();
    write_train(&project, |text| text.replace("name = \"letter\"", "name = \"letter\"\ndata_sources = [\"poems\"]"));
    let output = project.run(&["train", "-c", "train.toml", "--dry-run"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("no [[reward]] with a weight covers the data source `letters`"), "{said}");
    assert!(said.contains("validation.jsonl") && said.contains("hint: "), "{said}");
    write_train(&project, |text| text.replace("[\"poems\"]", "[\"poems\", \"lett*\"]"));
    project.succeed(&["train", "-c", "train.toml", "--dry-run"]);
}

#[test]
fn a_gate_that_cannot_be_is_refused() {
    for (written, said) in [
        (
            "only_if = \"lettr > 0\"",
            "`only_if` names `lettr`, but no reward has this name; the rewards are: letter, digit",
        ),
        ("only_if = \"letter\"", "\"letter\" is not a condition"),
        ("only_if = \"digit > 0\"", "`only_if` of `digit` names `digit`"),
        ("weight = nan", "reward.digit.weight must be a finite number, not NaN"),
        ("data_sources = []", "reward.digit.data_sources must be"),
    ] {
        let project = Project::new();
        project.add_reward("digit", "plugins/format.wasm", &format!("{written}\n{DIGIT}"));
        let output = project.run(&["train", "-c", "train.toml", "--dry-run"]);
        assert_eq!(output.status.code(), Some(2), "{written}");
        assert!(stderr(&output).contains(said), "{written}: {}", stderr(&output));
    }
}
