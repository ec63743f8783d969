//! `gavel reward-model` and `gavel dpo` as a user runs them, on a model that is small enough to be trained in a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use project::{Project, lines, stderr};
use serde_json::{Value, json};

const MODEL: &str = r#"
[model.init]
vocab_size = 259
hidden_size = 32
intermediate_size = 64
num_hidden_layers = 1
num_attention_heads = 2
max_position_embeddings = 64
tie_word_embeddings = true
"#;

const DATA: &str = r#"
[data]
train = "pairs.jsonl"
validation = "held-out.jsonl"
"#;

const TRAIN: &str = r#"
[train]
steps = 6
batch_size = 8
learning_rate = 1e-2
validate_every = 3
[checkpoint]
every = 3
"#;

/// Pairs in which the better answer has an `a`, in two of TRL's forms.
fn pairs(count: u32, first: u32) -> String {
    let row = |index: u32| {
        let (user, said) = (
            |text: String| json!({"role": "user", "content": text}),
            |text: String| json!({"role": "assistant", "content": text}),
        );
        let (question, better, worse) = (format!("Say {index}"), format!("{index} a"), format!("{index} b"));
        let row = match index % 2 {
            0 => json!({"prompt": question, "chosen": better, "rejected": worse, "margin": 0.5}),
            _ => json!({
                "chosen": [user(question.clone()), said(better)], "rejected": [user(question), said(worse)], "margin": null
            }),
        };
        row.to_string() + "\n"
    };
    (first..first + count).map(row).collect()
}

fn project() -> Project {
    let project = Project::empty();
    project.write("pairs.jsonl", &pairs(40, 0));
    project.write("held-out.jsonl", &pairs(10, 100));
    let path = "[model]\npath = \"start\"\n";
    project.write("reward.toml", &[MODEL, DATA, TRAIN].concat());
    project.write("continued.toml", &[path, DATA, TRAIN].concat());
    project.write("dpo.toml", &[path, DATA, TRAIN].concat());
    project
}

/// Trains a policy for a step, and names its checkpoint `start`.
fn start(project: &Project) {
    project.write("rows.jsonl", &(json!({"prompt": "Say 1", "response": "1"}).to_string() + "\n"));
    let data = "[data]\ntrain = \"rows.jsonl\"\n[rollout]\nmax_tokens = 4\n";
    let train = "[train]\nsteps = 1\nbatch_size = 2\nlearning_rate = 1e-3\n";
    project.write("sft.toml", &[MODEL, data, train].concat());
    project.succeed(&["sft", "-c", "sft.toml", "--set", "log.name=sft"]);
    std::fs::rename(project.path("runs/sft/checkpoints/step-000001"), project.path("start")).unwrap();
}

fn weights(project: &Project, folder: &str) -> Vec<u8> {
    std::fs::read(project.path(folder).join("model.safetensors")).unwrap()
}

/// Runs `command` for 6 steps, and for 3 and then 3: both are the same.
fn resumes_exactly(project: &Project, command: &'static str, config: &'static str, more: &[&'static str], file: &str) {
    let run = |settings: &[&'static str]| {
        project.succeed(&[&[command, "-c", config][..], more, settings].concat());
    };
    run(&["--set", "log.name=whole"]);
    run(&["--set", "log.name=parts", "--set", "train.steps=3"]);
    run(&["--set", "log.name=parts", "--resume"]);
    assert_eq!(project.metrics("runs/parts"), project.metrics("runs/whole"));
    let last = |run: &str| std::fs::read(project.path(run).join("checkpoints/step-000006").join(file)).unwrap();
    assert!(last("runs/parts") == last("runs/whole"), "{file} differs");
}

#[test]
fn a_reward_model_learns_pairs_and_scores() {
    let project = project();
    resumes_exactly(&project, "reward-model", "reward.toml", &[], "model.safetensors");
    let metrics = project.metrics("runs/whole");
    assert_eq!(metrics.len(), 7);
    for name in ["loss", "accuracy", "margin", "rewards/chosen", "rewards/rejected", "grad_norm", "tokens/read"] {
        assert!(metrics[1][name].is_number(), "{name}: {:?}", metrics[1]);
    }
    for (step, is_validated) in [(0, true), (1, false), (3, true), (6, true)] {
        assert_eq!(metrics[step].contains_key("val/accuracy"), is_validated, "{step}");
    }
    assert!(metrics[6]["loss"].as_f64() < metrics[1]["loss"].as_f64(), "{metrics:?}");

    // Learned for longer, it tells the answers apart, and `gavel score` gives the scores.
    let longer = ["--set", "train.steps=40", "--set", "log.name=longer", "--set", "train.validate_every=40"];
    project.succeed(&[&["reward-model", "-c", "reward.toml", "--json"][..], &longer].concat());
    let last = &project.metrics("runs/longer")[40];
    assert_eq!(last["val/accuracy"], json!(1.0), "{last:?}");
    let checkpoint = "runs/longer/checkpoints/step-000040";
    let config: Value = serde_json::from_str(&project.read(&format!("{checkpoint}/config.json"))).unwrap();
    assert_eq!(config["architectures"], json!(["Qwen2ForSequenceClassification"]));
    assert_eq!(config["id2label"], json!({"0": "LABEL_0"}));
    assert!(config["pad_token_id"].is_u64(), "transformers needs it for batches: {config}");
    let row = |answer: &str| json!({"prompt": "Say 200", "response": answer}).to_string() + "\n";
    project.write("answers.jsonl", &(row("200 a") + &row("200 b")));
    let model = format!("quality={checkpoint}");
    project.succeed(&["score", "--reward-model", &model, "--data", "answers.jsonl", "--out", "out.jsonl"]);
    let scores: Vec<f64> =
        lines(&project.path("out.jsonl")).iter().map(|line| line["reward"].as_f64().unwrap()).collect();
    assert!(scores[0] > scores[1] + 0.5, "{scores:?}");
}

#[test]
fn a_reward_model_is_made_of_a_policy_or_continued() {
    let project = project();
    start(&project);
    let args =
        |name: &'static str| ["reward-model", "-c", "continued.toml", "--set", "train.steps=1", "--set", name].to_vec();
    project.succeed(&args("log.name=first"));
    // A new head, whose scores are near each other.
    let first = &project.metrics("runs/first")[0];
    assert!(first["val/margin"].as_f64().unwrap().abs() < 0.1, "{first:?}");
    let path = "model.path=runs/first/checkpoints/step-000001";
    project.succeed(&[args("log.name=second"), vec!["--set", path]].concat());
    let (first, second) = (project.metrics("runs/first"), project.metrics("runs/second"));
    assert_eq!(second[0]["val/loss"], first[1]["val/loss"], "the head was drawn again");
}

#[test]
fn a_reward_model_of_adapters_learns_pairs_scores_and_can_be_merged() {
    let project = project();
    start(&project);
    let before = weights(&project, "start");
    let lora = ["--set", "model.lora={rank = 4}", "--set", "train.learning_rate=3e-2"];
    resumes_exactly(&project, "reward-model", "continued.toml", &lora, "adapter_model.safetensors");
    let longer = ["--set", "train.steps=40", "--set", "log.name=longer", "--set", "train.validate_every=40"];
    project.succeed(&[&["reward-model", "-c", "continued.toml"][..], &lora, &longer].concat());
    let last = &project.metrics("runs/longer")[40];
    assert_eq!(last["val/accuracy"], json!(1.0), "{last:?}");
    assert!(weights(&project, "start") == before, "the base was changed");

    let checkpoint = "runs/longer/checkpoints/step-000040";
    let row = |answer: &str| json!({"prompt": "Say 200", "response": answer}).to_string() + "\n";
    project.write("answers.jsonl", &(row("200 a") + &row("200 b")));
    project.succeed(&["merge", "-m", checkpoint, "-o", "merged"]);
    let scores = |folder: &str, out: &str| -> Vec<f64> {
        let model = format!("quality={folder}");
        project.succeed(&["score", "--reward-model", &model, "--data", "answers.jsonl", "--out", out]);
        lines(&project.path(out)).iter().map(|line| line["reward"].as_f64().unwrap()).collect()
    };
    let (adapted, merged) = (scores(checkpoint, "adapted.jsonl"), scores("merged", "merged.jsonl"));
    assert!(adapted[0] > adapted[1] + 0.5, "{adapted:?}");
    assert!(adapted.iter().zip(&merged).all(|(one, other)| (one - other).abs() < 1e-4), "{adapted:?}, {merged:?}");
}

#[test]
fn dpo_starts_at_the_policy_and_learns_pairs() {
    let project = project();
    start(&project);
    resumes_exactly(&project, "dpo", "dpo.toml", &[], "model.safetensors");
    let metrics = project.metrics("runs/whole");
    // Before the first step, the policy is its reference: all pairs are ties, of which each counts a half.
    assert!((metrics[1]["loss"].as_f64().unwrap() - 2f64.ln()).abs() < 1e-6, "{:?}", metrics[1]);
    assert_eq!((&metrics[0]["val/margin"], &metrics[0]["val/accuracy"]), (&json!(0.0), &json!(0.5)));
    let last = &metrics[6];
    assert!(last["val/margin"].as_f64() > Some(0.0) && last["val/accuracy"].as_f64() > Some(0.5), "{last:?}");
    assert!(last["logps/chosen"].as_f64() > last["logps/rejected"].as_f64(), "{last:?}");
    let start = std::fs::metadata(project.path("start/model.safetensors")).unwrap().len();
    assert_eq!(weights(&project, "runs/whole/checkpoints/step-000006").len() as u64, start);
}

#[test]
fn dpo_trains_adapters_with_the_base_as_its_reference() {
    let project = project();
    start(&project);
    let before = weights(&project, "start");
    resumes_exactly(&project, "dpo", "dpo.toml", &["--set", "model.lora={rank = 4}"], "adapter_model.safetensors");
    let metrics = project.metrics("runs/whole");
    assert!((metrics[1]["loss"].as_f64().unwrap() - 2f64.ln()).abs() < 1e-6, "{:?}", metrics[1]);
    assert!(metrics[6]["val/margin"].as_f64() > Some(0.0), "{:?}", metrics[6]);
    assert!(weights(&project, "start") == before, "the base was changed");
}

#[test]
fn a_run_that_fails_leaves_a_checkpoint_of_its_last_whole_step() {
    let project = project();
    start(&project);
    for (command, config) in [("sft", "sft.toml"), ("reward-model", "reward.toml"), ("dpo", "dpo.toml")] {
        // The first step ruins the weights, and the loss of the second is not finite.
        let (name, rate) = (format!("log.name=failing-{command}"), "train.learning_rate=1e38");
        let args = [command, "-c", config, "--set", &name, "--set", rate, "--set", "train.steps=6"];
        let checkpoints = format!("runs/failing-{command}/checkpoints");
        for resume in [&[][..], &["--resume"]] {
            let output = project.run(&[&args[..], resume].concat());
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{command}: {said}");
            assert!(said.contains("step 2: ") && said.contains("nothing was changed"), "{command}: {said}");
            let entries = std::fs::read_dir(project.path(&checkpoints)).unwrap();
            let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            assert_eq!(names, ["step-000001"], "{command}");
        }
    }
}

#[test]
fn epochs_are_as_many_steps_as_their_pairs_need() {
    let project = project();
    project.write("epochs.toml", &project.read("reward.toml").replace("steps = 6", "epochs = 2"));
    project.succeed(&["reward-model", "-c", "epochs.toml", "--set", "log.name=epochs"]);
    project.succeed(&["reward-model", "-c", "reward.toml", "--set", "log.name=steps", "--set", "train.steps=10"]);
    assert_eq!(project.metrics("runs/epochs"), project.metrics("runs/steps"));
}

#[test]
fn a_dry_run_has_the_pairs_and_the_memory() {
    let project = project();
    start(&project);
    for (args, reference) in
        [(["reward-model", "-c", "reward.toml", "--dry-run"], false), (["dpo", "-c", "dpo.toml", "--dry-run"], true)]
    {
        let output = String::from_utf8(project.succeed(&args).stdout).unwrap();
        for part in
            ["# ok: training data: 40 rows of pairs.jsonl", "# ok: validation data: 10 rows", "# memory, at most"]
        {
            assert!(output.contains(part), "no {part:?} in {output}");
        }
        assert_eq!(output.contains("# memory, always: reference"), reference, "{output}");
        assert!(!project.path("runs/run").exists());
    }
}

#[test]
fn mistakes_are_found_before_the_first_step() {
    let project = project();
    start(&project);
    let refused = |args: &[&str]| {
        let output = project.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        stderr(&output)
    };
    project.write("long.jsonl", &json!({"prompt": "a".repeat(80), "chosen": "b", "rejected": "c"}).to_string());
    project.write("half.jsonl", &json!({"prompt": "a", "chosen": "b"}).to_string());
    let call = json!({"role": "assistant", "content": "b"});
    let turns =
        json!({"prompt": "a", "chosen": [call.clone(), {"role": "user", "content": "c"}, call], "rejected": "d"});
    project.write("turns.jsonl", &turns.to_string());
    let reward = |setting: &str| refused(&["reward-model", "-c", "reward.toml", "--set", setting]);
    let dpo = |setting: &str| refused(&["dpo", "-c", "dpo.toml", "--set", setting]);
    for (error, says) in [
        (reward("train.beta=0.1"), "unknown field `beta`"),
        (reward("train.center_rewards_coefficient=-1.0"), "train.center_rewards_coefficient must be"),
        (reward("rollout.max_tokens=8"), "[rollout] is not used by `gavel reward-model`"),
        (dpo("data.validation_samples=4"), "data.validation_samples is not used by `gavel dpo`"),
        (dpo("train.label_smoothing=0.7"), "train.label_smoothing must be at least 0 and below 0.5"),
        (reward("data.train=long.jsonl"), "long.jsonl, line 1: a conversation has "),
        (reward("data.train=half.jsonl"), "half.jsonl, line 1: the row has no `rejected`"),
        (dpo("data.train=long.jsonl"), "long.jsonl, line 1: the prompt has "),
        (dpo("data.train=turns.jsonl"), "`chosen` has 3 messages after the prompt: `gavel dpo` learns one"),
        (
            refused(&["dpo", "-c", "dpo.toml", "--set", "data.columns.chosen=\"best\""]),
            "the row has no column `best` to read `chosen` from",
        ),
    ] {
        assert!(error.contains(says), "no {says:?} in {error}");
    }
    assert!(!project.path("runs/run").exists());
    // A row that is too long may be left out.
    project.write("some.jsonl", &(pairs(4, 0) + &project.read("long.jsonl")));
    let dropped = ["--set", "data.train=some.jsonl", "--set", "data.overlong_prompts=drop", "--dry-run"];
    let output = project.succeed(&[&["reward-model", "-c", "reward.toml"][..], &dropped].concat());
    assert!(String::from_utf8(output.stdout).unwrap().contains("training data: 4 rows"));
}
