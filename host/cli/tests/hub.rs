//! Models and datasets by their names on the hub, from a cache as its client fills it.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use gavel_policy::{Device, Model, ModelConfig};
use gavel_text::TextModel;
use project::{Project, stderr};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

/// Puts a folder's files into a cache: blobs with links to them in a snapshot, which `main` names.
fn download(cache: &Path, repository: &str, commit: &str, files: &Path) {
    let folder = cache.join(repository);
    let (blobs, snapshot, refs) = (folder.join("blobs"), folder.join("snapshots").join(commit), folder.join("refs"));
    for folder in [&blobs, &snapshot, &refs] {
        std::fs::create_dir_all(folder).unwrap();
    }
    for file in std::fs::read_dir(files).unwrap().map(|file| file.unwrap().path()) {
        let name = file.file_name().unwrap();
        std::fs::copy(&file, blobs.join(name)).unwrap();
        symlink(Path::new("../../blobs").join(name), snapshot.join(name)).unwrap();
    }
    std::fs::write(refs.join("main"), commit).unwrap();
}

#[test]
fn a_run_has_its_model_and_its_rows_from_the_cache_of_the_hub() {
    let project = Project::new();
    let (model, data, cache) = (project.path("model"), project.path("data"), project.path("home/hub"));
    let config: ModelConfig = serde_json::from_value(json!({
        "vocab_size": 259, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64, "tie_word_embeddings": true,
    }))
    .unwrap();
    TextModel::byte_level().save(&model).unwrap();
    Model::random(config, 3, Device::Cpu).unwrap().save(&model).unwrap();
    download(&cache, "models--tiny--random", "c0ffee", &model);
    std::fs::create_dir(&data).unwrap();
    std::fs::copy(project.path("train.jsonl"), data.join("train-0.jsonl")).unwrap();
    std::fs::copy(project.path("validation.jsonl"), data.join("test-0.jsonl")).unwrap();
    download(&cache, "datasets--tiny--letters", "beef", &data);
    let config = project.read("train.toml");
    let end = config.find("[data]").unwrap();
    project.write("train.toml", &format!("[model]\npath = \"tiny/random\"\n{}", &config[end..]));

    let run = |args: &[&str]| -> Output {
        project.command(args).env_remove("HF_HUB_CACHE").env("HF_HOME", project.path("home")).output().unwrap()
    };
    let train = |more: &[&str]| {
        let data = ["--set", "data.train=hf://datasets/tiny/letters/train-*.jsonl"];
        let validation = ["--set", "data.validation=hf://datasets/tiny/letters@beef/test-0.jsonl"];
        run(&[&["train", "-c", "train.toml"][..], &data, &validation, more].concat())
    };
    let output = train(&["--set", "train.steps=1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    // The revision stays that of the beginning.
    let kept = project.read("runs/run/config.toml");
    assert!(kept.contains("models--tiny--random/snapshots/c0ffee") && kept.contains("snapshots/beef/train-*.jsonl"));
    let said = run(&["generate", "-m", "tiny/random", "--prompt", "a", "--max-tokens", "2"]);
    assert!(said.status.success(), "{}", stderr(&said));
    let evaluated = run(&["eval", "-c", "train.toml", "--checkpoint", "tiny/random@c0ffee", "--json"]);
    assert!(evaluated.status.success(), "{}", stderr(&evaluated));

    let fails = |output: Output, says: &str| {
        assert!(output.status.code() == Some(2) && stderr(&output).contains(says), "{}", stderr(&output));
    };
    let says = "tiny/other is not here, and the hub's cache ";
    fails(train(&["--set", "model.path=tiny/other"]), says);
    let says = "home/hub has no such model\nhint: download it: hf download tiny/random --revision v2; or name a folder that has it";
    fails(run(&["generate", "-m", "tiny/random@v2", "--prompt", "a"]), says);
    let says = "has no such dataset\nhint: download it: hf download --repo-type dataset tiny/numbers; or";
    fails(train(&["--set", "data.train=hf://datasets/tiny/numbers/a.jsonl"]), says);
    fails(
        train(&["--set", "data.train=hf://datasets/tiny"]),
        "is not a dataset of the hub\nhint: write hf://datasets/ORG/NAME/FILES",
    );
    fails(train(&["--set", "data.train=hf://datasets/tiny/letters/none.jsonl"]), "cannot open dataset ");
}
