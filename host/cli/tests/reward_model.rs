//! Reward models of a run: a file is scored, a policy is trained, and the verdicts are replayed without the model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use gavel_data::Message;
use gavel_policy::{Device, Model, ModelConfig, Tensor};
use gavel_text::{RenderOptions, TextModel};
use project::{Project, lines, stderr};
use serde_json::{Value, json};

/// Saves a random model with this head as the folder `name`.
fn save(project: &Project, name: &str, architecture: &str, more: Value) -> Model {
    let mut sizes = json!({"architectures": [architecture], "vocab_size": 259, "hidden_size": 32, "intermediate_size": 32,
        "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 256});
    sizes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let config: ModelConfig = serde_json::from_value(sizes).unwrap();
    let model = Model::random(config, 5, Device::Cpu).unwrap();
    std::fs::create_dir_all(project.path(name)).unwrap();
    TextModel::byte_level().save(&project.path(name)).unwrap();
    model.save(&project.path(name)).unwrap();
    model
}

/// The score of a conversation, computed alone.
fn alone(model: &Model, conversation: &[Message]) -> f64 {
    let text = TextModel::byte_level();
    let ids = text.prompt_ids_with(conversation, &RenderOptions::default()).unwrap();
    let ids: Vec<i64> = ids.into_iter().map(i64::from).collect();
    let scores = model.scores(&Tensor::from_slice(&ids).unsqueeze(0), &[ids.len()]).unwrap();
    scores.double_value(&[0, 0])
}

const CLASSIFIER: &str = "Qwen2ForSequenceClassification";

#[test]
fn a_file_is_scored_by_a_reward_model_and_again_without_it() {
    let project = Project::empty();
    let model = save(&project, "rm", CLASSIFIER, json!({"num_labels": 1}));
    let responses: Vec<String> = (0..20).map(|number| "word ".repeat(number * 2)).collect();
    let row = |response: &String| json!({"prompt": "Say it.", "response": response}).to_string() + "\n";
    project.write("rows.jsonl", &responses.iter().map(row).collect::<String>());
    let scoring = ["score", "--reward-model", "quality=rm", "--data", "rows.jsonl", "--out", "out.jsonl"];
    project.succeed(&[&scoring[..], &["--record", "kept"]].concat());
    let rewards = |file: &str| -> Vec<f64> {
        lines(&project.path(file)).iter().map(|line| line["reward"].as_f64().unwrap()).collect()
    };
    let found = rewards("out.jsonl");
    for (response, found) in responses.iter().zip(&found) {
        let conversation =
            [Message::new(gavel_data::Role::User, "Say it."), Message::new(gavel_data::Role::Assistant, response)];
        let expected = alone(&model, &conversation);
        assert!((found - expected).abs() < 1e-5, "{response:?}: {found} {expected}");
    }
    assert!(found.iter().any(|score| (score - found[0]).abs() > 1e-3), "{found:?}");
    std::fs::remove_dir_all(project.path("rm")).unwrap();
    project.succeed(&["score", "--replay", "kept", "--out", "again.jsonl"]);
    assert_eq!(rewards("again.jsonl"), found);
}

#[test]
fn a_policy_is_trained_on_a_reward_model_and_its_verdicts_replay() {
    let project = Project::new();
    save(&project, "rm", CLASSIFIER, json!({"num_labels": 1}));
    let reward = "[[reward]]\nname = \"liked\"\nreward_model = \"quality\"\nscale = 2.0\nclip = [-3.0, 3.0]\n[reward_model.quality]\npath = \"rm\"\n";
    project.write("train.toml", &project.read("train.toml").replace("[checkpoint]", &format!("{reward}[checkpoint]")));
    project.succeed(&["train", "-c", "train.toml", "--set", "log.name=run", "--set", "train.steps=2"]);
    let metrics = project.metrics("runs/run");
    assert_eq!(metrics[1]["outcome/liked/scored"], json!(16), "{:?}", metrics[1]);
    assert!(metrics[1]["reward/liked/mean"].as_f64().unwrap() != 0.0, "{:?}", metrics[1]);
    std::fs::remove_dir_all(project.path("rm")).unwrap();
    let output = project.succeed(&["replay", "runs/run", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["different"], json!(0), "{found}");
}

#[test]
fn a_mistake_is_found_before_the_run_and_named() {
    let project = Project::new();
    save(&project, "policy", "Qwen2ForCausalLM", json!({}));
    save(&project, "many", CLASSIFIER, json!({"num_labels": 3}));
    let rows = json!({"prompt": "a", "response": "b"}).to_string();
    project.write("rows.jsonl", &rows);
    let error = |model: &str| {
        let model = format!("quality={model}");
        let output = project.run(&["score", "--reward-model", &model, "--data", "rows.jsonl", "--out", "out.jsonl"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    for (model, says) in [("none", "none"), ("policy", "hint: "), ("many", "3 labels")] {
        let error = error(model);
        assert!(error.starts_with("error: reward_model.quality: ") && error.contains(says), "{error}");
    }
    let base = project.read("train.toml");
    for (table, says) in [
        ("reward_model = \"quality\"", "grant.reward_model: there is no reward model `quality`"),
        ("reward_model = \"q\"\n[reward_model.q]\npath = \"policy\"\nyes_no = [\"a\", \"a\"]", "reward_model.q.yes_no"),
        ("reward_model = \"q\"\n[reward_model.q]\npath = \"policy\"\nyes_no = [\"maybe\", \"b\"]", "maybe"),
        ("reward_model = \"q\"\n[reward_model.q]\npath = \"policy\"\ndevice = \"cuda:7\"", "reward_model.q: "),
        ("scale = 2.0\npath = \"a.wasm\"", "scale and clip are for a reward with reward_model"),
    ] {
        let reward = format!("[[reward]]\nname = \"liked\"\n{table}\n[checkpoint]");
        project.write("wrong.toml", &base.replace("[checkpoint]", &reward));
        let output = project.run(&["train", "-c", "wrong.toml", "--dry-run"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{table}: {}", stderr(&output));
    }
}
