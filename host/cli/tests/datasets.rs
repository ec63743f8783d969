//! The rows that people bring: under other names, in several files, with weights.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use project::{Project, built, lines, stderr};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// JSON Lines of these rows.
fn jsonl(rows: impl IntoIterator<Item = Value>) -> String {
    rows.into_iter().map(|row| format!("{row}\n")).collect()
}

/// A run whose only reward notes its sample.
fn echoing(project: &Project) {
    project.add_reward("echo", "guests/echo-metadata.wasm", "weight = 0.0");
}

/// What the reward of [`echoing`] noted in the first step.
fn seen(project: &Project, run: &str) -> Vec<Value> {
    let trajectories = lines(&project.path(run).join("trajectories/step-000001.jsonl"));
    assert!(!trajectories.is_empty());
    let note = |trajectory: &serde_json::Map<String, Value>| {
        serde_json::from_str(trajectory["plugins"]["echo"]["reason"].as_str().unwrap()).unwrap()
    };
    trajectories.iter().map(note).collect()
}

const ONE_STEP: [&str; 5] = ["train", "-c", "train.toml", "--set", "train.steps=1"];

#[test]
fn columns_of_other_names_reach_the_policy_and_the_reward() {
    let project = Project::new();
    echoing(&project);
    let row = |number: usize| json!({"question": format!("Say {number}"), "extra": {"final": number}, "answer": "no"});
    project.write("train.jsonl", &jsonl((0..8).map(row)));
    let columns = "data.columns={ prompt = 'question', ground_truth = 'extra.final' }";
    // Validation has its own names.
    let validation = "data.validation={ path = 'validation.jsonl', columns = {} }";
    project.succeed(&[&ONE_STEP[..], &["--set", columns, "--set", validation]].concat());
    for seen in seen(&project, "runs/run") {
        let number = seen["columns"]["extra"]["final"].as_u64().unwrap();
        assert_eq!(seen["columns"]["prompt"], format!("Say {number}"));
        assert_eq!(seen["ground_truth"], number.to_string());
    }
    assert!(project.read("runs/run/config.toml").contains("[data.columns]"));

    let output = project.run(&[&ONE_STEP[..], &["--set", "data.columns.prompt=qestion", "--set", validation]].concat());
    let expected = "train.jsonl, line 1: the row has no column `qestion` to read `prompt` from (it has: question, extra, answer)\nhint: ";
    assert!(output.status.code() == Some(2) && stderr(&output).contains(expected), "{}", stderr(&output));
    let output = project.run(&[&ONE_STEP[..], &["--set", validation]].concat());
    let expected = "train.jsonl, line 1: the row has neither `prompt` nor `messages` (it has: question, extra, answer)\nhint: say which column it is, such as --set 'data.columns.prompt=\"question\"'";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    let output = project.run(&[&ONE_STEP[..], &["--set", "data.columns.promt=question"]].concat());
    assert!(stderr(&output).contains("unknown field `promt`, expected one of `prompt`"), "{}", stderr(&output));
}

#[test]
fn rows_of_trl_and_whole_conversations_are_trained_on() {
    let project = Project::new();
    echoing(&project);
    let user = |number: usize| json!({"role": "user", "content": format!("Say {number}")});
    let said = |text: &str| json!({"role": "assistant", "content": text});
    let conversation = |number: usize| json!({"messages": [user(number), said("a")], "solution": number});
    project.write("train.jsonl", &jsonl((0..8).map(conversation)));
    project.succeed(&ONE_STEP);
    for seen in seen(&project, "runs/run") {
        assert_eq!(seen["ground_truth"], seen["columns"]["solution"].to_string());
    }
    let trajectories = lines(&project.path("runs/run/trajectories/step-000001.jsonl"));
    assert!(trajectories.iter().all(|line| line["prompt"].as_array().unwrap().len() == 1));

    let completion = |number: usize| json!({"prompt": [user(number)], "completion": [said(&format!("{number} a"))]});
    let text = |number: usize| json!({"prompt": format!("Say {number}"), "completion": format!("{number} a")});
    // These rows are the same as those with `response`, so the same is learned, to the last bit.
    for (name, rows) in [("messages", jsonl((0..40).map(completion))), ("texts", jsonl((0..40).map(text)))] {
        project.write("completions.jsonl", &rows);
        let log = format!("log.name={name}");
        project.succeed(&["sft", "-c", "sft.toml", "--set", "data.train=completions.jsonl", "--set", &log]);
    }
    project.write(
        "train.jsonl",
        &jsonl((0..40).map(|n| json!({"prompt": format!("Say {n}"), "response": format!("{n} a")}))),
    );
    project.succeed(&["sft", "-c", "sft.toml", "--set", "log.name=responses"]);
    assert_eq!(project.metrics("runs/messages"), project.metrics("runs/responses"));
    assert_eq!(project.metrics("runs/texts"), project.metrics("runs/responses"));
}

#[test]
fn one_path_draws_the_same_however_it_is_written() {
    let project = Project::new();
    let rows = project.read("train.jsonl");
    let half = rows.match_indices('\n').nth(19).unwrap().0 + 1;
    std::fs::create_dir(project.path("parts")).unwrap();
    project.write("parts/0.jsonl", &rows[..half]);
    project.write("parts/1.jsonl", &rows[half..]);
    project.write("parts/README.md", "Rows.");
    project.succeed(&["train", "-c", "train.toml", "--set", "log.name=file"]);
    for (name, train) in [
        ("list-of-one", "['train.jsonl']"),
        ("table", "{ path = 'train.jsonl' }"),
        ("weight", "{ path = 'train.jsonl', weight = 3 }"),
        ("folder", "'parts'"),
        ("pattern", "'parts/*.jsonl'"),
        ("list", "['parts/0.jsonl', 'parts/1.jsonl']"),
    ] {
        let (train, log) = (format!("data.train={train}"), format!("log.name={name}"));
        project.succeed(&["train", "-c", "train.toml", "--set", &train, "--set", &log]);
        assert_eq!(project.metrics(&format!("runs/{name}")), project.metrics("runs/file"), "{name}");
    }
}

#[test]
fn weighted_datasets_share_the_draws_and_a_resumed_run_draws_the_same() {
    let project = Project::new();
    echoing(&project);
    let row = |number: usize| json!({"prompt": format!("Say {number}"), "answer": number});
    project.write("few.jsonl", &jsonl((0..3).map(row)));
    project.write("many.jsonl", &jsonl((0..90).map(row)));
    let train = "data.train=[{ path = 'few.jsonl', weight = 3, data_source = 'few' }, { path = 'many.jsonl', weight = 1, data_source = 'many' }]";
    let run = |more: &[&str]| {
        project.succeed(&[&["train", "-c", "train.toml", "--set", train][..], more].concat());
    };
    run(&["--set", "log.name=whole", "--set", "train.steps=8"]);
    run(&["--set", "log.name=pieces", "--set", "train.steps=3"]);
    run(&["--set", "log.name=pieces", "--set", "train.steps=8", "--resume"]);
    // Only the run in pieces is validated after step 3, the last step of its first piece.
    let trained = |run: &str| {
        let mut steps = project.metrics(run);
        steps.iter_mut().for_each(|step| step.retain(|name, _| !name.starts_with("val/")));
        steps
    };
    assert_eq!(trained("runs/pieces"), trained("runs/whole"));
    let mut sources = BTreeMap::<String, usize>::new();
    for step in 1..=8 {
        let file = format!("runs/whole/trajectories/step-{step:06}.jsonl");
        for line in lines(&project.path(&file)) {
            let note: Value = serde_json::from_str(line["plugins"]["echo"]["reason"].as_str().unwrap()).unwrap();
            *sources.entry(note["data_source"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    // 32 groups of 4.
    assert!((23..=25).contains(&(sources["few"] / 4)), "{sources:?}");
    assert_eq!(sources["few"] + sources["many"], 128);

    for (train, says) in [
        ("[{ path = 'few.jsonl', weight = 3 }, 'many.jsonl']", "data.train: 1 of 2 datasets have a weight\nhint: "),
        ("[{ path = 'few.jsonl', weight = -1 }]", "data.train: weight must be a number above 0, not -1"),
        ("['few.jsonl', 'none/*.jsonl']", "dataset none/*.jsonl has no file whose name ends in .jsonl or .parquet"),
        ("[]", "data.train names no dataset"),
        (
            "3",
            "data.train=3: invalid type: integer `3`, expected a path, a table such as { path = \"a.jsonl\", weight = 2 }, or a list of these",
        ),
    ] {
        let output = project.run(&["train", "-c", "train.toml", "--set", &format!("data.train={train}")]);
        assert!(output.status.code() == Some(2) && stderr(&output).contains(says), "{train}: {}", stderr(&output));
    }
}

#[test]
fn several_datasets_are_validated_on_by_their_data_sources() {
    let project = Project::new();
    project.write("others.jsonl", &jsonl((0..3).map(|number| json!({"prompt": format!("Say {number}")}))));
    let validation = "data.validation=['validation.jsonl', { path = 'others.jsonl', data_source = 'others' }]";
    project.succeed(&[&ONE_STEP[..], &["--set", validation]].concat());
    let last = project.metrics("runs/run").pop().unwrap();
    assert!(last["val/letters/mean@1"].is_number() && last["val/others/mean@1"].is_number(), "{last:?}");
    let weighted = "data.validation={ path = 'others.jsonl', weight = 2 }";
    let output = project.run(&[&ONE_STEP[..], &["--set", weighted]].concat());
    assert!(stderr(&output).contains("data.validation: a weight is for data.train"), "{}", stderr(&output));
}

#[test]
fn completions_are_scored_whatever_their_columns_are_called() {
    let project = Project::empty();
    std::fs::create_dir(project.path("out")).unwrap();
    let row = |number: usize, said: &str| json!({"question": "?", "output": [{"role": "assistant", "content": said}], "final": number});
    project.write("out/0.jsonl", &jsonl([row(4, "Answer: 4"), row(5, "Answer: 6")]));
    project.write("out/1.jsonl", &jsonl([row(7, "Answer: 7")]));
    let plugin = format!("answer={}", built("plugins/exact-answer.wasm").display());
    let score = |more: &[&str]| {
        project.run(&[&["score", "--plugin", &plugin, "--data", "out", "--out", "scores.jsonl"][..], more].concat())
    };
    let output = score(&["--column", "response=output", "--column", "ground_truth=final"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let rows = lines(&project.path("scores.jsonl"));
    assert_eq!(rows.iter().map(|row| &row["reward"]).collect::<Vec<_>>(), [1.0, 0.0, 1.0]);
    assert_eq!(rows.iter().map(|row| &row["id"]).collect::<Vec<_>>(), ["data/row-0", "data/row-1", "data/row-2"]);

    let output = score(&["--column", "response=outptu"]);
    let expected =
        "out/0.jsonl, line 1: the row has no column `outptu` to read `response` from (it has: question, output, final)";
    assert!(output.status.code() == Some(1) && stderr(&output).contains(expected), "{}", stderr(&output));
}
