//! LoRA as a user runs it: adapters are trained, resumed, generated from and merged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use project::{Project, stderr};
use serde_json::Value;
use std::path::Path;

/// A project whose policy is a checkpoint in the folder `base`.
fn project() -> Project {
    let project = Project::new();
    project.succeed(&["sft", "-c", "sft.toml", "--set", "log.name=start"]);
    std::fs::rename(project.path("runs/start/checkpoints/step-000006"), project.path("base")).unwrap();
    for name in ["optimizer.safetensors", "state.json", "BLAKE3SUMS"] {
        std::fs::remove_file(project.path("base").join(name)).unwrap();
    }
    for name in ["train.toml", "sft.toml"] {
        let text = std::fs::read_to_string(project.path(name)).unwrap();
        let (start, end) = (text.find("[model.init]").unwrap(), text.find("[data]").unwrap());
        let lora = "[model]\npath = \"base\"\n[model.lora]\nrank = 4\n";
        project.write(name, &format!("{}{lora}{}", &text[..start], &text[end..]));
    }
    project
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn generated(project: &Project, model: &str) -> String {
    let args = ["generate", "-m", model, "--chat", "--prompt", "Say 3", "--temperature", "0", "--max-tokens", "24"];
    String::from_utf8(project.succeed(&args).stdout).unwrap()
}

#[test]
fn a_killed_run_resumes_to_the_same_end() {
    resumes_to_the_same_end("float32");
}

#[test]
fn a_killed_run_beside_16_bits_resumes_to_the_same_end() {
    resumes_to_the_same_end("bfloat16");
}

fn resumes_to_the_same_end(dtype: &str) {
    let project = project();
    let dtype = format!("model.dtype={dtype}");
    let before = read(&project.path("base/model.safetensors"));
    let settings = [&dtype, "train.steps=40", "train.mini_batch_prompts=4", "train.loss.kl={ coefficient = 0.01 }"];
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", *setting]).collect();
    let run = |name: &'static str| [&["train", "-c", "train.toml", "--set", name], &settings[..]].concat();
    let output = project.succeed(&run("log.name=whole"));
    assert!(stderr(&output).contains("LoRA: 2048 parameters are trained, "), "{}", stderr(&output));
    let args = run("log.name=killed");
    project.kill_after_some_steps(&args, "runs/killed", 40);
    project.succeed(&[&args[..], &["--resume"]].concat());
    let metrics = project.metrics("runs/whole");
    assert_eq!(project.metrics("runs/killed"), metrics);
    let file = |run: &str, name: &str| read(&project.path(run).join("checkpoints/step-000040").join(name));
    for name in ["adapter_model.safetensors", "optimizer.safetensors", "adapter_config.json"] {
        assert!(file("runs/killed", name) == file("runs/whole", name), "{name} differs");
    }
    // The reference is the policy that the run started from, also after it was resumed.
    assert_eq!(metrics[1]["kl"], 0.0);
    assert!(metrics[40]["kl"].as_f64().unwrap() > 0.0);
    assert!(before == read(&project.path("base/model.safetensors")));
}

#[test]
fn a_checkpoint_is_an_adapter_that_everything_takes() {
    let project = project();
    project.succeed(&["sft", "-c", "sft.toml", "--set", "train.learning_rate=0.02", "--set", "log.name=lora"]);
    let adapter = "runs/lora/checkpoints/step-000006";
    let mut files: Vec<String> = std::fs::read_dir(project.path(adapter))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let expected = [
        "BLAKE3SUMS",
        "adapter_config.json",
        "adapter_model.safetensors",
        "generation_config.json",
        "optimizer.safetensors",
        "state.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ];
    assert_eq!(files, expected);

    // The remains of an interrupted merge.
    std::fs::create_dir(project.path("merged.partial")).unwrap();
    project.write("merged.partial/model.safetensors", "");
    // The folder of the run stands for its newest checkpoint.
    project.succeed(&["merge", "-m", "runs/lora", "-o", "merged/"]);
    assert!(!project.path("merged.partial").exists());
    for name in ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"] {
        assert!(project.path("merged").join(name).exists(), "{name}");
    }
    assert_eq!(generated(&project, adapter), generated(&project, "merged"));
    assert_ne!(generated(&project, adapter), generated(&project, "base"));
    let eval = |checkpoint: &str| -> Value {
        let output = project.succeed(&["eval", "-c", "sft.toml", "--checkpoint", checkpoint, "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let metrics = project.metrics("runs/lora");
    assert_eq!(eval(adapter)["val/response_length/mean"], metrics[6]["val/response_length/mean"]);
    assert_eq!(eval("merged")["val/accuracy"], eval(adapter)["val/accuracy"]);

    // An adapter without a tokenizer, as PEFT saves it, has the tokenizer of its base.
    for name in ["tokenizer.json", "tokenizer_config.json", "generation_config.json"] {
        std::fs::remove_file(project.path(adapter).join(name)).unwrap();
    }
    assert_eq!(generated(&project, adapter), generated(&project, "merged"));

    let output = project.run(&["merge", "-m", adapter, "-o", "merged"]);
    assert!(stderr(&output).contains("merged is not empty\nhint: give a new folder"), "{}", stderr(&output));
    let output = project.run(&["merge", "-m", "base", "-o", "other"]);
    assert!(stderr(&output).contains("base has no adapter_config.json"), "{}", stderr(&output));
    std::fs::rename(project.path("base"), project.path("moved")).unwrap();
    let output = project.run(&["generate", "-m", adapter, "--prompt", "x"]);
    assert!(stderr(&output).contains("`base_model_name_or_path` \"base\" is not a folder here"), "{}", stderr(&output));
}

#[test]
fn an_adapter_is_trained_on_from_where_it_is() {
    let project = project();
    project.succeed(&["sft", "-c", "sft.toml", "--set", "train.learning_rate=0.02", "--set", "log.name=first"]);
    let adapter = "runs/first/checkpoints/step-000006";
    std::fs::rename(project.path(adapter), project.path("adapter")).unwrap();
    let path = "model.path=adapter";
    let both = project.run(&["train", "-c", "train.toml", "--dry-run", "--set", path]);
    assert!(stderr(&both).contains("model.path adapter is an adapter, and [model.lora]"), "{}", stderr(&both));

    let text = std::fs::read_to_string(project.path("train.toml")).unwrap();
    project.write("train.toml", &text.replace("[model.lora]\nrank = 4\n", ""));
    let settings = [path, "train.mini_batch_prompts=4", "train.loss.kl={ coefficient = 0.01 }"];
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", *setting]).collect();
    project.succeed(&[&["train", "-c", "train.toml"], &settings[..]].concat());
    let metrics = project.metrics("runs/run");
    // The reference is the adapter that the run started from, and not its base.
    assert_eq!(metrics[1]["kl"], 0.0);
    let config = read(&project.path("runs/run/checkpoints/step-000006/adapter_config.json"));
    let config: Value = serde_json::from_slice(&config).unwrap();
    assert_eq!((&config["r"], &config["base_model_name_or_path"]), (&4.into(), &"base".into()));
}

#[test]
fn settings_that_no_run_could_have_are_named() {
    let project = project();
    for (setting, says) in [
        ("model.lora.rank=0", "model.lora: model configuration: `rank` must be from 1 to 65536"),
        (
            "model.lora.target_modules=[\"qkv\"]",
            "model.lora.target_modules=[\"qkv\"]: must be \"all-linear\" or a list of some",
        ),
        ("model.lora.dropout=0.1", "model.lora.dropout=0.1: unknown field `dropout`"),
    ] {
        let output = project.run(&["train", "-c", "train.toml", "--set", setting]);
        assert!(stderr(&output).contains(says), "{setting}: {}", stderr(&output));
    }
    let output = Project::new().run(&["train", "-c", "train.toml", "--set", "model.lora.rank=4"]);
    assert!(stderr(&output).contains("[model.lora] needs `model.path`"), "{}", stderr(&output));
}
