//! `gavel train`, `sft` and `eval` as a user runs them, on a model that is small enough to be trained in a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use project::{Project, lines, stderr};
use serde_json::{Map, Value, json};

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    let project = Project::new();
    project.succeed(&["train", "-c", "train.toml"]);
    project.succeed(&["train", "-c", "train.toml"]);
    project.succeed(&["train", "-c", "train.toml", "--set", "seed=5"]);
    let first = project.metrics("runs/run");
    assert_eq!(first.len(), 7);
    assert_eq!(first, project.metrics("runs/run-2"));
    assert_ne!(first, project.metrics("runs/run-3"));
    assert!(first[1..].iter().any(|step| step["grad_norm"].as_f64().unwrap() > 0.0), "nothing was learned from");
    for name in ["reward/mean", "reward/letter/std", "response_length/mean", "kl", "entropy", "clip_fraction"] {
        assert!(first[1].contains_key(name), "{name} is missing");
    }
    assert!(first[6].contains_key("val/accuracy") && first[6].contains_key("val/letters/mean@1"));
}

#[test]
fn a_killed_run_resumes_to_the_same_end() {
    for dtype in ["model.dtype=float32", "model.dtype=bfloat16"] {
        let project = Project::new();
        let args =
            |name| ["train", "-c", "train.toml", "--set", dtype, "--set", "train.steps=40", "--set", name].to_vec();
        project.succeed(&args("log.name=whole"));
        project.kill_after_some_steps(&args("log.name=killed"), "runs/killed", 40);
        let resumed = project.succeed(&[args("log.name=killed"), vec!["--resume"]].concat());
        assert!(stderr(&resumed).contains("resuming runs/killed"), "{}", stderr(&resumed));
        assert_eq!(project.metrics("runs/killed"), project.metrics("runs/whole"), "{dtype}");
        let weights =
            |run: &str| std::fs::read(project.path(run).join("checkpoints/step-000040/model.safetensors")).unwrap();
        assert!(weights("runs/killed") == weights("runs/whole"), "{dtype}: the weights differ");
    }
}

#[test]
fn a_run_is_not_resumed_with_another_configuration() {
    let project = Project::new();
    project.succeed(&["train", "-c", "train.toml"]);
    let output = project.run(&["train", "-c", "train.toml", "--resume", "--set", "rollout.temperature=0.5"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("another configuration, in rollout.temperature"), "{}", stderr(&output));
    let output = project.run(&["train", "-c", "train.toml", "--resume", "--set", "log.name=none"]);
    assert!(stderr(&output).contains("there is no run runs/none to resume"), "{}", stderr(&output));
    // A run may be resumed with more steps and another batch size, and with another learning rate that is set.
    project.succeed(&[
        "train",
        "-c",
        "train.toml",
        "--resume",
        "--set",
        "train.steps=8",
        "--set",
        "rollout.max_batch=4",
        "--set",
        "train.learning_rate=5e-4",
        "--set",
        "validation.max_tokens=4",
        "--set",
        "checkpoint.keep_last=3",
    ]);
    let metrics = project.metrics("runs/run");
    assert_eq!(metrics.len(), 9);
    let rates: Vec<f64> = metrics[6..].iter().map(|step| step["learning_rate"].as_f64().unwrap()).collect();
    assert_eq!(rates, [1e-3, 5e-4, 5e-4]);
    let output = project.run(&["train", "-c", "train.toml", "--resume", "--set", "train.steps=9"]);
    let error = stderr(&output);
    assert!(
        error.contains("another configuration, in checkpoint.keep_last, train.learning_rate, validation.max_tokens"),
        "{error}"
    );
}

#[test]
fn every_column_reaches_the_reward_in_training() {
    let project = Project::new();
    project.add_reward("echo", "guests/echo-metadata.wasm", "weight = 0.0");
    project.succeed(&["train", "-c", "train.toml", "--set", "train.steps=1"]);
    let trajectories = lines(&project.path("runs/run/trajectories/step-000001.jsonl"));
    assert_eq!(trajectories.len(), 16);
    let rows = lines(&project.path("train.jsonl"));
    for trajectory in &trajectories {
        let note = trajectory["plugins"]["echo"]["reason"].as_str().unwrap();
        let seen: Map<String, Value> = serde_json::from_str(note).unwrap();
        let index = trajectory["task_id"].as_str().unwrap().strip_prefix("train/").unwrap().parse::<usize>().unwrap();
        assert_eq!(seen["columns"], Value::Object(rows[index].clone()));
        assert_eq!(seen["response"], trajectory["response"]);
        assert_eq!((&seen["data_source"], &seen["ground_truth"]), (&json!("letters"), &json!(index.to_string())));
        assert!(trajectory["advantage"].is_number() && trajectory["prompt_length"].as_u64().unwrap() > 0);
        assert!(trajectory["prompt"][0]["content"].is_string() && trajectory["response_length"].is_u64());
        let prompt = trajectory["prompt"][0]["content"].as_str().unwrap();
        let read = trajectory["prompt_text"].as_str().unwrap();
        assert!(read.starts_with("<|im_start|>") && read.contains(prompt), "{read}");
    }
}

#[test]
fn the_first_answers_of_a_validation_are_kept() {
    let project = Project::new();
    let run = ["sft", "-c", "sft.toml", "--set", "train.steps=1", "--set"];
    project.succeed(&[&run[..], &["data.validation_samples=50"]].concat());
    for step in [0, 1] {
        let kept = lines(&project.path(&format!("runs/run/validation/trajectories/step-{step:06}.jsonl")));
        // 6 rows with 50 answers each.
        assert_eq!(kept.len(), 256);
        for (number, line) in kept.iter().enumerate() {
            let (row, answer) = (number / 50, number % 50);
            assert_eq!(line["id"], format!("{step}.{row}.{answer}"));
            assert_eq!(
                (&line["task_id"], &line["ground_truth"]),
                (&json!(format!("validation/{row}")), &json!(row.to_string()))
            );
            assert!(line["response"].is_string() && line["plugins"]["letter"]["outcome"] == "scored", "{line:?}");
        }
    }
    assert_eq!(lines(&project.path("runs/run/validation/tasks.jsonl")).len(), 6);
    let metrics = lines(&project.path("runs/run/metrics.jsonl"));
    assert!(metrics.len() == 2 && metrics.iter().all(|line| line["time/timestamp"].is_f64()), "{metrics:?}");
    project.succeed(&[&run[..], &["log.trajectories=false"]].concat());
    assert!(!project.path("runs/run-2/validation").exists());
}

#[test]
fn a_crash_is_never_a_score() {
    let project = Project::new();
    project.add_reward("broken", "hostile/trap.wasm", "");
    let stopped = project.run(&["train", "-c", "train.toml"]);
    assert_eq!(stopped.status.code(), Some(2));
    assert!(stderr(&stopped).contains("step 1: 16 of 16 samples could not be scored"), "{}", stderr(&stopped));
    for part in [
        "panics on every sample",
        "; the first: sample 0 of ",
        "\n  at ",
        "\n  | note: run with",
        "hint: ",
        "gavel replay",
    ] {
        assert!(stderr(&stopped).contains(part), "no {part:?} in {}", stderr(&stopped));
    }

    // If the run may continue, it learns nothing instead of learning from made-up zeros.
    let settings = ["--set", "train.max_failure_rate=1.0", "--set", "train.steps=2"];
    let unlearned = project.run(&[&["train", "-c", "train.toml"][..], &settings].concat());
    assert_eq!(unlearned.status.code(), Some(2));
    let said = stderr(&unlearned);
    for part in [
        "step 1/2: no sample had a reward (broken: 16 fault; the first: sample 0 of ",
        "; nothing was learned; length ",
        "error: step 2: nothing was learned in any step of the run: no sample had a reward (broken: 16 fault; ",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let step = &project.metrics("runs/run-2")[1];
    assert_eq!((&step["outcome/broken/fault"], &step["groups/dropped"]), (&json!(16), &json!(4)));
    assert_eq!(step["outcome/broken/fault/trap"], 16);
    assert!(!step.contains_key("reward/mean") && !step.contains_key("loss"));
    let trajectories = lines(&project.path("runs/run-2/trajectories/step-000001.jsonl"));
    assert!(trajectories.iter().all(|line| line["reward"].is_null() && line["advantage"].is_null()));
}

#[test]
fn a_run_whose_reward_abstains_from_everything_stops() {
    let project = Project::new();
    project.add_reward("none", "guests/abstain.wasm", "");
    let output = project.run(&["train", "-c", "train.toml"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let why = "no sample had a reward (none: 16 abstained; the first: sample 0 of train/";
    assert!(said.contains(&format!("step 2/6: {why}")), "{said}");
    let error = "error: step 3: nothing was learned in 3 steps in a row (train.max_steps_without_update = 3): ";
    assert!(said.contains(&format!("{error}{why}")), "{said}");
    assert_eq!(project.metrics("runs/run").len(), 1 + 3);
}

#[test]
fn a_run_whose_reward_tells_no_responses_apart_does_not_end_well() {
    let project = Project::new();
    let output = project.run(&[
        "train",
        "-c",
        "train.toml",
        "--set",
        "train.steps=2",
        "--set",
        "reward.letter.params.pattern=never 123",
    ]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let error = "error: step 2: nothing was learned in any step of the run: the rewards of each group are equal (letter: always 0)\nhint: ";
    assert!(said.contains(error), "{said}");
    let steps = project.metrics("runs/run");
    assert!(steps[1..].iter().all(|step| step["frac_reward_zero_std"] == json!(1.0)), "{steps:?}");
}

#[test]
fn a_looping_shadow_does_not_hold_up_the_run() {
    let project = Project::new();
    project.add_reward("loop", "hostile/endless-loop.wasm", "weight = 0.0\nlimits = { cpu = \"100ms\" }");
    project.succeed(&["train", "-c", "train.toml", "--set", "train.steps=2"]);
    let step = &project.metrics("runs/run")[1];
    assert_eq!(
        (&step["outcome/loop/out-of-budget"], &step["outcome/loop/out-of-budget/cpu"]),
        (&json!(16), &json!(16))
    );
    assert_eq!(step["outcome/letter/scored"], 16);
    assert!(step.contains_key("loss"));
}

#[test]
fn sft_imitates_and_its_checkpoint_evaluates_the_same() {
    let project = Project::new();
    project.succeed(&["sft", "-c", "sft.toml"]);
    let metrics = project.metrics("runs/run");
    assert!(metrics[6]["loss"].as_f64() < metrics[1]["loss"].as_f64());
    let checkpoint = "runs/run/checkpoints/step-000006";
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        assert!(project.path(checkpoint).join(file).exists(), "{file}");
    }
    let eval = ["eval", "-c", "sft.toml", "--checkpoint", checkpoint, "--json"];
    let output = project.succeed(&eval);
    let found: Map<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
    for name in ["val/accuracy", "val/reward/mean", "val/response_length/mean"] {
        assert_eq!(found[name], metrics[6][name], "{name}");
    }
    // Only training needs the range of 32 bits.
    project.succeed(&[&eval[..], &["--set", "model.dtype=float16"]].concat());
}

#[test]
fn a_response_ends_at_a_stop_text_and_keeps_it() {
    let project = Project::new();
    // The tokens of "a" and "b", which random weights draw as often as any other.
    let often = "rollout.logit_bias={100 = 6.0, 101 = 6.0}";
    let stop = "rollout.stop=[\"ab\"]";
    // Rewards that differ, so that the run has something to learn.
    let reward = "reward.letter.params.pattern=(?s)a.*";
    let settings = ["train.steps=2", often, stop, reward].map(|setting| ["--set", setting]).concat();
    project.succeed(&[&["train", "-c", "train.toml"][..], &settings].concat());
    let step = |step: u64| lines(&project.path(&format!("runs/run/trajectories/step-{step:06}.jsonl")));
    let trajectories: Vec<Map<String, Value>> = (1..=2).flat_map(step).collect();
    assert_eq!(trajectories.len(), 32);
    let mut stopped = 0;
    for trajectory in &trajectories {
        let (response, reason) = (trajectory["response"].as_str().unwrap(), &trajectory["finish_reason"]);
        if let Some(at) = response.find("ab") {
            stopped += 1;
            assert_eq!((at + 2, reason), (response.len(), &json!("stop")), "{response:?}");
        } else if *reason == "length" {
            assert_eq!(trajectory["response_length"], 8, "{response:?}");
        }
    }
    assert!(0 < stopped && stopped < trajectories.len(), "{stopped} responses have it");

    // In validation too, where the response is always "aaaaaaaa".
    let length = |setting: &str| {
        let always = "rollout.logit_bias={100 = 50.0}";
        let output = project.succeed(&["eval", "-c", "train.toml", "--json", "--set", always, "--set", setting]);
        let found: Map<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
        found["val/response_length/mean"].as_f64().unwrap()
    };
    assert_eq!(length("rollout.stop=[]"), 8.0);
    assert_eq!(length("rollout.stop=[\"b\", \"aa\"]"), 2.0);
    assert_eq!(length("rollout.stop_token_ids=[100]"), 1.0);
}

#[test]
fn a_correction_of_on_policy_data_corrects_only_rounding() {
    let project = Project::new();
    project.succeed(&["train", "-c", "train.toml"]);
    project.succeed(&["train", "-c", "train.toml", "--set", "train.off_policy={}"]);
    let config: toml::Table = std::fs::read_to_string(project.path("runs/run-2/config.toml")).unwrap().parse().unwrap();
    assert_eq!(config["train"]["loss"]["old_logprobs"].as_str(), Some("proximal"));
    assert_eq!(config["train"]["off_policy"]["rollout_is"].as_str(), Some("token"));
    let (plain, corrected) = (project.metrics("runs/run"), project.metrics("runs/run-2"));
    assert!(!plain[1].keys().any(|name| name.starts_with("off_policy/")));
    for (step, (plain, corrected)) in plain.iter().zip(&corrected).enumerate().skip(1) {
        assert_eq!(corrected["off_policy/staleness_max"], 0);
        let number = |metrics: &Map<String, Value>, name: &str| metrics[name].as_f64().unwrap();
        assert!((number(corrected, "off_policy/effective_sample_size") - 1.0).abs() < 1e-4, "step {step}");
        assert!(number(corrected, "off_policy/k3_kl") < 1e-6, "step {step}");
        assert!((number(corrected, "loss") - number(plain, "loss")).abs() < 1e-3, "step {step}");
    }
}

#[test]
fn several_samples_of_a_row_are_validated_together() {
    let project = Project::new();
    let several = ["--set", "data.validation_samples=3", "--set", "validation.max_tokens=20"];
    project.succeed(&[&["train", "-c", "train.toml"], &several[..]].concat());
    let metrics = project.metrics("runs/run");
    let last = &metrics[6];
    let number = |name: &str| last[name].as_f64().unwrap();
    assert_eq!(number("val/outcome/letter/scored"), 18.0);
    assert!((number("val/letters/pass@1") - number("val/accuracy")).abs() < 1e-12);
    assert!(number("val/letters/pass@1") <= number("val/letters/pass@2"));
    assert!(number("val/letters/pass@2") <= number("val/letters/pass@3"));
    // The reward is 1 or 0, and its weight 1.
    assert_eq!(number("val/letters/best@3/mean"), number("val/letters/pass@3"));
    assert_eq!(number("val/letters/mean@3"), number("val/reward/mean"));
    assert!(!last.contains_key("val/letters/mean@1"));
    // Random weights seldom end a response.
    assert!(number("val/response_length/mean") > 8.0 && number("response_length/max") == 8.0);
    // The same policy gives the same samples.
    let eval = ["eval", "-c", "train.toml", "--checkpoint", "runs/run/checkpoints/step-000006", "--json"];
    let output = project.succeed(&[&eval[..], &several[..]].concat());
    let found: Map<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
    for name in ["val/accuracy", "val/letters/pass@2", "val/response_length/mean"] {
        assert_eq!(found[name], last[name], "{name}");
    }
}

#[test]
fn a_dry_run_checks_and_leaves_nothing() {
    let project = Project::new();
    let output = project.succeed(&["train", "-c", "train.toml", "--dry-run"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("max_failure_rate = 0.5"), "{text}");
    assert!(text.contains("# ok: training data: 40 rows of train.jsonl"), "{text}");
    assert!(text.contains("# ok: reward: letter: format"), "{text}");
    assert!(text.parse::<toml::Table>().is_ok());
    assert!(!project.path("runs").exists());
}

#[test]
fn a_byte_order_mark_is_not_a_part_of_a_configuration_or_a_dataset() {
    let project = Project::new();
    for name in ["train.toml", "train.jsonl"] {
        let text = std::fs::read_to_string(project.path(name)).unwrap();
        project.write(name, &format!("\u{feff}{text}"));
    }
    project.succeed(&["train", "-c", "train.toml", "--dry-run"]);
}

#[test]
fn mistakes_in_a_configuration_are_named_before_anything_starts() {
    let project = Project::new();
    let cases: [(&[&str], &str); 44] = [
        (&["train.setps=3"], "--set train.setps=3: unknown field `setps`"),
        (
            &["train.steps=many"],
            "--set train.steps=many: invalid type: string \"many\", expected a whole number of at least 0",
        ),
        (&["limits.cpu=5"], "--set limits.cpu=5: invalid type: integer `5`, expected a duration, such as \"500ms\""),
        (&["train={steps = \"a\"}"], "--set train={steps = \"a\"}: train.steps: invalid type"),
        (&["train.steps=0"], "train.steps must be at least 1, not 0"),
        (&["train.mini_batch_prompts=3"], "train.mini_batch_prompts must be a divisor of prompts_per_step (4), not 3"),
        (
            &["train.on_outcome={fault = \"lowest-if-caused\"}"],
            "train.on_outcome.fault: \"lowest-if-caused\" is for out-of-budget and abstained only",
        ),
        (
            &["train.on_outcome={fault = {score = nan}}"],
            "train.on_outcome.fault must be a score from -1e30 to 1e30, not NaN",
        ),
        (
            &["train.on_outcome.faulty=drop"],
            "--set train.on_outcome.faulty=drop: train.on_outcome: unknown field `faulty`, expected one of `scored`",
        ),
        (&["train.on_outcome.fault=3"], "--set train.on_outcome.fault=3: invalid type, expected a text or a table"),
        (
            &["data.columns.promt=x"],
            "--set data.columns.promt=x: data.columns: unknown field `promt`, expected one of `prompt`",
        ),
        (&["model.lora=8"], "--set model.lora=8: invalid type: integer `8`, expected a table"),
        (&["train.loss=3"], "--set train.loss=3: invalid type: integer `3`, expected a table"),
        (&["train.optimizer.betas=0.9"], "expected a list of 2 values"),
        (&["rollout.stop=3"], "--set rollout.stop=3: invalid type: integer `3`, expected a list"),
        (
            &["reward.letter.reuse=0"],
            "--set reward.letter.reuse=0: invalid value: integer `0`, expected a whole number of at least 1",
        ),
        (&["reward.letter.weight=inf"], "reward.letter.weight must be a finite number, not inf"),
        (&["reward.letter.limits.cpu=\"0s\""], "reward.letter.limits.cpu must be more than 0, not 0"),
        (&["train.learning_rate=-1.0"], "train.learning_rate must be a number above 0"),
        (&["train.loss.clip_low=2.0"], "train.loss.clip_low must be"),
        (
            &["train.off_policy.rollout_rs=token_k1", "train.off_policy.rollout_rs_threshold=0.5"],
            "train.off_policy.rollout_rs_threshold must be a number of at least 1, not 0.5",
        ),
        (
            &["train.off_policy.rollout_is=geometric"],
            "--set train.off_policy.rollout_is=geometric: unknown variant `geometric`",
        ),
        (
            &["train.off_policy={}", "train.loss.old_logprobs=rollout"],
            "train.off_policy.rollout_is must be \"none\" with old_logprobs = \"rollout\"",
        ),
        (&["data.validation_samples=0"], "data.validation_samples must be at least 1, not 0"),
        (&["rollout.temperature=0.0"], "rollout.temperature must be above 0"),
        (
            &["data.validation_samples=2", "validation.temperature=0.0"],
            "validation.temperature: 0 is greedy, and the 2 answers to a row would be alike",
        ),
        (&["validation.top_p=2.0"], "validation: `top_p` must be above 0 and at most 1, not 2"),
        (&["validation.max_tokens=64"], "validation.max_tokens must be below the model's 64 positions"),
        (&["validation.max_tokens=63"], "or lower validation.max_tokens to make room"),
        (&["rollout.repetition_penalty=0.0"], "rollout: `repetition_penalty` must be from 0.01 to 100, not 0"),
        (&["rollout.logit_bias={a = 1.0}"], "rollout.logit_bias must be keyed by token ids, not \"a\""),
        (&["rollout.logit_bias={259 = 1.0}"], "rollout.logit_bias must be below the vocabulary of 259, not 259"),
        (&["rollout.stop_token_ids=[4, 300]"], "rollout.stop_token_ids must be below the vocabulary of 259, not 300"),
        (&["rollout.stop=[\"\"]"], "rollout.stop must be texts that are not empty, not [\"\"]"),
        (&["rollout.max_tokens=64"], "rollout.max_tokens must be below the model's 64 positions"),
        (&["data.train=none.jsonl"], "cannot open dataset none.jsonl"),
        (&["data.max_prompt_tokens=4"], "validation.jsonl, line 1: the prompt has 24 tokens, at most 4 fit"),
        (&["data.accuracy=answer"], "data.accuracy must be the name of a [[reward]], not answer"),
        (&["model.dtype=half"], "--set model.dtype=half: unknown variant `half`, expected one of `float32`"),
        (&["model.dtype=float16"], "model.dtype = \"float16\" is for `gavel eval`"),
        (
            &["model.init.num_key_value_head=2"],
            "--set model.init.num_key_value_head=2: model.init: unknown field `num_key_value_head`",
        ),
        (&["model.path=none"], "[model] needs either `path`"),
        (&["train.prompts_per_step=64"], "has 40 usable rows, fewer than train.prompts_per_step = 64"),
        (&["steps"], "--set steps: there is no `=`"),
    ];
    for (settings, message) in cases {
        let mut args = vec!["train", "-c", "train.toml"];
        args.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        let output = project.run(&args);
        assert_eq!(output.status.code(), Some(2), "{settings:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{settings:?}: {}", stderr(&output));
        assert!(!project.path("runs").exists(), "{settings:?} left a run");
    }
}
