//! Models and datasets by their names on the hub: from a cache as its client fills it, and downloaded into it.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod hub_server;
mod project;

use gavel_policy::{Device, Model, ModelConfig};
use gavel_text::TextModel;
use hub_server::{COMMIT, GATED, HubServer, TOKEN};
use project::{Project, built, lines, stderr};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
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

/// Makes a model of random weights in a folder.
fn random_model(folder: &Path) {
    let config: ModelConfig = serde_json::from_value(json!({
        "vocab_size": 259, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64, "tie_word_embeddings": true,
    }))
    .unwrap();
    TextModel::byte_level().save(folder).unwrap();
    Model::random(config, 3, Device::Cpu).unwrap().save(folder).unwrap();
}

/// The files of a model beside its weights.
fn described(folder: &Path) -> BTreeSet<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "model.safetensors").collect()
}

fn fails(output: &Output, says: &str) {
    assert!(output.status.code() == Some(2) && stderr(output).contains(says), "{}", stderr(output));
    assert!(!stderr(output).contains(TOKEN), "{}", stderr(output));
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", stderr(output));
    assert!(!stderr(output).contains(TOKEN), "{}", stderr(output));
}

#[test]
fn a_run_has_its_model_and_its_rows_from_the_cache_of_the_hub() {
    let project = Project::new();
    let (model, data, cache) = (project.path("model"), project.path("data"), project.path("home/hub"));
    random_model(&model);
    download(&cache, "models--tiny--random", "c0ffee", &model);
    std::fs::create_dir(&data).unwrap();
    std::fs::copy(project.path("train.jsonl"), data.join("train-0.jsonl")).unwrap();
    std::fs::copy(project.path("validation.jsonl"), data.join("test-0.jsonl")).unwrap();
    std::fs::write(data.join("completions.jsonl"), "{\"prompt\": \"?\", \"response\": \"score 0.5\"}\n").unwrap();
    download(&cache, "datasets--tiny--letters", "beef", &data);
    let config = project.read("train.toml");
    let end = config.find("[data]").unwrap();
    project.write("train.toml", &format!("[model]\npath = \"tiny/random\"\n{}", &config[end..]));

    let run = |args: &[&str]| -> Output {
        let mut command = project.command(args);
        command.env_remove("HF_HUB_CACHE").env("HF_HOME", project.path("home")).env("HF_HUB_OFFLINE", "1");
        command.output().unwrap()
    };
    let train = |more: &[&str]| {
        let data = ["--set", "data.train=hf://datasets/tiny/letters/train-*.jsonl"];
        let validation = ["--set", "data.validation=hf://datasets/tiny/letters@beef/test-0.jsonl"];
        run(&[&["train", "-c", "train.toml"][..], &data, &validation, more].concat())
    };
    succeeds(&train(&["--set", "train.steps=1"]));
    // The run keeps the revision that it began with.
    let kept = project.read("runs/run/config.toml");
    assert!(kept.contains("models--tiny--random/snapshots/c0ffee") && kept.contains("snapshots/beef/train-*.jsonl"));
    succeeds(&run(&["generate", "-m", "tiny/random", "--prompt", "a", "--max-tokens", "2"]));
    succeeds(&run(&["eval", "-c", "train.toml", "--checkpoint", "tiny/random@c0ffee", "--json"]));
    let plugin = built("guests/obeys.wasm").display().to_string();
    let score = |data: &str| run(&["score", "--plugin", &plugin, "--data", data, "--out", "scores.jsonl"]);
    succeeds(&score("hf://datasets/tiny/letters/completions.jsonl"));
    assert_eq!(lines(&project.path("scores.jsonl"))[0]["reward"], 0.5);
    for command in ["check", "bench", "diff"] {
        let more: &[&str] = match command {
            "bench" => &["--seconds", "1"],
            "diff" => &[&plugin],
            _ => &[],
        };
        let data = ["--data", "hf://datasets/tiny/letters/completions.jsonl"];
        let output = run(&[&["plugin", command, &plugin], more, &data].concat());
        // A check finds something.
        assert_ne!(output.status.code(), Some(2), "{command}: {}", stderr(&output));
    }
    fails(
        &score("hf://datasets/tiny/letters/none.jsonl"),
        "cannot find the dataset tiny/letters: it is not in the hub's cache ",
    );

    let says = "cannot find the model tiny/other: it is not in the hub's cache ";
    fails(&train(&["--set", "model.path=tiny/other"]), says);
    let says = "home/hub, and HF_HUB_OFFLINE forbids downloading it\nhint: download it where there is a network: hf download tiny/random --revision v2; or name a folder that has it";
    fails(&run(&["generate", "-m", "tiny/random@v2", "--prompt", "a"]), says);
    let says = "hf download --repo-type dataset tiny/numbers; or";
    fails(&train(&["--set", "data.train=hf://datasets/tiny/numbers/a.jsonl"]), says);
    let says = "is not a dataset of the hub\nhint: write hf://datasets/ORG/NAME/FILES";
    fails(&train(&["--set", "data.train=hf://datasets/tiny"]), says);
    fails(
        &train(&["--set", "data.train=hf://datasets/tiny/letters/none.jsonl"]),
        "cannot find the dataset tiny/letters: it is not in",
    );
    // A path in a folder that exists here is not a name on the hub.
    let says = "there is no folder model/other\nhint: name the folder of a checkpoint, or a model of the hub";
    fails(&run(&["generate", "-m", "model/other", "--prompt", "a"]), says);
}

/// A project, a hub with a model in two repositories and a dataset, and no cache yet.
struct Downloads {
    project: Project,
    hub: HubServer,
}

impl Downloads {
    fn new() -> Self {
        let (project, hub) = (Project::new(), HubServer::start());
        let folder = project.path("saved");
        random_model(&folder);
        let file = |name: &str| std::fs::read(folder.join(name)).unwrap();
        let index = json!({"weight_map": {"model.norm.weight": "model-00001-of-00001.safetensors"}}).to_string();
        let mut model: BTreeMap<String, Vec<u8>> = [
            ("model-00001-of-00001.safetensors", file("model.safetensors")),
            ("model.safetensors.index.json", index.into_bytes()),
            ("consolidated.safetensors", b"the same in another form".to_vec()),
            ("pytorch_model.bin", b"the same as a pickle".to_vec()),
            ("README.md", b"# Random".to_vec()),
        ]
        .map(|(name, content)| (name.to_owned(), content))
        .into();
        for name in described(&folder) {
            let content = file(&name);
            model.insert(name, content);
        }
        let rows = |name: &str| std::fs::read(project.path(name)).unwrap();
        let (train, validation) = (rows("train.jsonl"), rows("validation.jsonl"));
        let test = validation.split_inclusive(|byte| *byte == b'\n').take(3).collect::<Vec<_>>().concat();
        let dataset = [("data/train-0.jsonl", train), ("data/train-1.jsonl", validation), ("data/test-0.jsonl", test)];
        let dataset = dataset.map(|(name, rows)| (name.to_owned(), rows)).into();
        hub.state().repositories = [("tiny/random", model.clone()), (GATED, model), ("datasets/tiny/letters", dataset)]
            .map(|(page, files)| (page.to_owned(), files))
            .into();
        Self { project, hub }
    }

    fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = self.project.command(args);
        for name in ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE"] {
            command.env_remove(name);
        }
        command.env("HF_HOME", self.project.path("home")).env("HF_ENDPOINT", &self.hub.endpoint);
        command.envs(variables.iter().copied()).output().unwrap()
    }

    fn generate(&self, model: &str, variables: &[(&str, &str)]) -> Output {
        self.run(&["generate", "-m", model, "--prompt", "a", "--max-tokens", "2"], variables)
    }

    /// Checks a run whose rows are these.
    fn check(&self, data: &str, variables: &[(&str, &str)]) -> Output {
        self.run(&["train", "-c", "train.toml", "--dry-run", "--set", &format!("data.train={data}")], variables)
    }
}

#[test]
fn a_model_is_downloaded_once_and_only_the_files_that_it_needs() {
    let downloads = Downloads::new();
    let (hub, weights) = (&downloads.hub, "model-00001-of-00001.safetensors");
    hub.state().cut.insert(weights.into());
    let output = downloads.generate("tiny/random", &[("HF_TOKEN", TOKEN)]);
    succeeds(&output);
    let mut described = described(&downloads.project.path("saved"));
    described.insert("model.safetensors.index.json".into());
    let says = format!("downloading tiny/random from {}/: {} files, ", hub.endpoint, described.len());
    assert!(stderr(&output).contains(&says), "{}", stderr(&output));
    assert!(stderr(&output).contains(&format!(": {weights}, ")), "{}", stderr(&output));
    let size = hub.state().repositories["tiny/random"][weights].len();
    let mut expected = vec!["api/models/tiny/random/revision/main".to_owned()];
    expected.extend(described.iter().map(|name| format!("tiny/random/{name}")));
    // The half that was downloaded is not requested again.
    expected.extend([format!("tiny/random/{weights}"), format!("tiny/random/{weights} from {}", size / 2)]);
    assert_eq!(hub.asked(), expected);
    assert!(!hub.state().is_token_elsewhere, "the token is the hub's alone");
    let cache = downloads.project.path("home/hub/models--tiny--random");
    assert_eq!(std::fs::read_to_string(cache.join("refs/main")).unwrap(), COMMIT);
    let link = std::fs::read_link(cache.join("snapshots").join(COMMIT).join(weights)).unwrap();
    assert!(link.starts_with("../../blobs"), "{}", link.display());

    // The model is in the cache now.
    succeeds(&downloads.generate("tiny/random", &[]));
    succeeds(&downloads.generate("tiny/random", &[("HF_HUB_OFFLINE", "1")]));
    assert_eq!(hub.asked(), [""; 0]);
    succeeds(&downloads.generate("tiny/random@v1", &[]));
    assert_eq!(hub.asked(), ["api/models/tiny/random/revision/v1"]);
    // Files that the hub's client left out are downloaded.
    std::fs::remove_file(cache.join("snapshots").join(COMMIT).join("tokenizer.json")).unwrap();
    succeeds(&downloads.generate("tiny/random", &[]));
    assert_eq!(hub.asked(), ["api/models/tiny/random/revision/c0ffee"]);
}

#[test]
fn a_model_that_does_not_come_says_why_and_what_to_do() {
    let downloads = Downloads::new();
    let hub = &downloads.hub;
    let offline = downloads.generate("tiny/random", &[("HF_HUB_OFFLINE", "1")]);
    fails(
        &offline,
        "HF_HUB_OFFLINE forbids downloading it\nhint: download it where there is a network: hf download tiny/random; or name a folder that has it",
    );
    assert_eq!(hub.asked(), [""; 0]);
    let nobody = downloads.generate("tiny/random", &[("HF_ENDPOINT", "http://127.0.0.1:1")]);
    fails(
        &nobody,
        "home/hub, and http://127.0.0.1:1/api/models/tiny/random/revision/main?blobs=true: Connection refused",
    );
    fails(&nobody, "hf download tiny/random; or name a folder that has it");
    let with_token = format!("http://me:{TOKEN}@127.0.0.1:1");
    fails(
        &downloads.generate("tiny/random", &[("HF_ENDPOINT", &with_token)]),
        "HF_ENDPOINT: a token does not belong here",
    );
    let says = "the hub has no model tiny/none: ";
    fails(&downloads.generate("tiny/none", &[]), says);
    fails(&downloads.generate("tiny/none", &[]), "check its name; for a private repository, set HF_TOKEN");
    fails(&downloads.generate("tiny/none", &[("HF_TOKEN", TOKEN)]), "answered 404 Not Found (Repository not found)");
    fails(&downloads.generate("tiny/random@v9", &[]), "check the branch, tag or commit after @");

    let says = format!("accept its terms at {}/tiny/gated, and set HF_TOKEN to a token of that account", hub.endpoint);
    fails(&downloads.generate(GATED, &[]), &says);
    let says = "does not give the model tiny/gated to the account of the token in HF_TOKEN";
    fails(&downloads.generate(GATED, &[("HF_TOKEN", "hf_other")]), says);
    succeeds(&downloads.generate(GATED, &[("HF_TOKEN", TOKEN)]));
    assert!(!hub.state().is_token_elsewhere);

    hub.state().damaged.insert("tokenizer.json".into());
    fails(&downloads.generate("tiny/random", &[]), "tokenizer.json: the downloaded file does not have the hub's hash");
    hub.state().damaged.clear();
    succeeds(&downloads.generate("tiny/random", &[]));
    hub.state().repositories.get_mut("tiny/random").unwrap().remove("config.json");
    std::fs::remove_dir_all(downloads.project.path("home")).unwrap();
    fails(&downloads.generate("tiny/random", &[]), "the model tiny/random of the hub has no config.json");
}

#[test]
fn the_files_of_a_dataset_are_those_that_the_hub_has() {
    let downloads = Downloads::new();
    let (hub, down) = (&downloads.hub, [("HF_ENDPOINT", "http://127.0.0.1:1")]);
    succeeds(&downloads.check("hf://datasets/tiny/letters/data/train-0.jsonl", &[]));
    assert_eq!(hub.asked().len(), 2);
    succeeds(&downloads.check("hf://datasets/tiny/letters/data/train-0.jsonl", &down));
    // The cache has only some of the files that the pattern matches.
    let both = downloads.check("hf://datasets/tiny/letters/data/train-*.jsonl", &[]);
    succeeds(&both);
    assert!(String::from_utf8_lossy(&both.stdout).contains("46 "), "{}", String::from_utf8_lossy(&both.stdout));
    let listing = "api/datasets/tiny/letters/revision/c0ffee";
    assert_eq!(hub.asked(), [listing, "datasets/tiny/letters/data/train-1.jsonl"]);
    let again = downloads.check("hf://datasets/tiny/letters/data/train-*.jsonl", &down);
    succeeds(&again);
    assert!(stderr(&again).contains(" that are in the hub's cache: http://127.0.0.1:1/"), "{}", stderr(&again));
    succeeds(&downloads.check("hf://datasets/tiny/letters/data/", &[]));
    assert_eq!(hub.asked(), [listing, "datasets/tiny/letters/data/test-0.jsonl"]);
    let says = "the dataset tiny/letters of the hub has no train.parquet\nhint: it has data/test-0.jsonl, data/train-0.jsonl, data/train-1.jsonl";
    fails(&downloads.check("hf://datasets/tiny/letters/train.parquet", &[]), says);
}
