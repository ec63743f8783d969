//! The demos, each from nothing to a trained policy:
//!
//! - `cargo xtask demo`: it learned from two WebAssembly rewards;
//! - `cargo xtask demo-tools`: it learned to call a tool;
//! - `cargo xtask demo-shop`: it learned from the state in which it left a tool;
//! - `cargo xtask demo-reward-model`: it was trained on a reward model.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::plot::{self, Series};
use crate::summary::{self, Curve, RewardModelRuns, ToolsDemo};
use crate::{guests, setup, ui};
use serde_json::{Value, json};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// The rewards of `demo/train.toml`. The other plugins are not built, as they
/// take as long as the host.
const REWARDS: [&str; 2] = ["exact-answer", "format"];

/// The reward and the tool of `demo/tools.toml`.
const TOOLS: [&str; 2] = ["exact-answer", "calculator"];

/// The reward and the tool of `demo/shop.toml`.
const SHOP: [&str; 2] = ["final-state", "shop"];

/// Sets up, builds, makes the data, trains and sums up.
pub fn run(root: &Path, seed: u64) -> Result<()> {
    let (run, time) = train(root, &REWARDS, seed, &["demo/sft.toml"], "demo/train.toml")?;
    let curve = Curve::read(&root.join(&run.folder).join("metrics.jsonl"))?;
    print!("{}", summary::demo(&curve, &run, time));
    Ok(())
}

/// The same with a policy that learns to call a calculator.
pub fn run_tools(root: &Path, seed: u64) -> Result<()> {
    let about = ToolsDemo {
        asked: "300 products",
        config: "demo/tools.toml",
        read: "docs/agents.md says how to offer other tools",
    };
    with_tools(root, &TOOLS, seed, &["demo/tools-sft.toml"], &about)
}

/// The same with a policy that learns to buy, from a reward that sees what was bought.
pub fn run_shop(root: &Path, seed: u64) -> Result<()> {
    let about = ToolsDemo {
        asked: "60 orders",
        config: "demo/shop.toml",
        read: "plugins/shop and plugins/final-state are a tool and a reward to start yours from",
    };
    with_tools(root, &SHOP, seed, &["demo/shop-copy.toml", "demo/shop-sft.toml"], &about)
}

/// Trains a policy that calls tools, and sums up.
fn with_tools(root: &Path, plugins: &[&str], seed: u64, warm_ups: &[&str], about: &ToolsDemo) -> Result<()> {
    let (run, time) = train(root, plugins, seed, warm_ups, about.config)?;
    let metrics = root.join(&run.folder).join("metrics.jsonl");
    let (accuracy, calls) = (Curve::read(&metrics)?, Curve::read_metric(&metrics, "val/tool_turns/mean")?);
    print!("{}", summary::demo_tools(about, &accuracy, &calls, &run, time));
    Ok(())
}

/// The rewards of `demo/reward-model-train.toml`.
const REWARD_MODEL: [&str; 2] = ["exact-answer", "reward-model"];

/// Trains a reward model on pairs and a policy on the reward model, and plots what both rewards gave the policy's
/// samples.
pub fn run_reward_model(root: &Path, seed: u64) -> Result<()> {
    build(root, &REWARD_MODEL)?;
    let begun = Instant::now();
    let seed = format!("seed={seed}");
    let warm_up = warm_up(root, "demo/reward-model-sft.toml", &seed)?;
    let policy = format!("model.path={}", warm_up.checkpoint);
    let pairs = ["reward-model", "-c", "demo/reward-model.toml", "--set", &seed, "--set", &policy];
    let reward_model = gavel(root, "reward model", &pairs)?;
    let judge = format!("reward_model.pairs.path={}", reward_model.checkpoint);
    let settings = ["--set", &seed, "--set", &policy, "--set", &judge];
    let train = [&["train", "-c", "demo/reward-model-train.toml"][..], &settings].concat();
    let run = gavel(root, "reinforcement learning", &train)?;

    let metrics = root.join(&run.folder).join("metrics.jsonl");
    let liked = Curve::read_metric(&metrics, "reward/liked/mean")?;
    let exact = Curve::read_metric(&metrics, "reward/answer/mean")?;
    let accuracy = Curve::read(&root.join(&reward_model.folder).join("metrics.jsonl"))?;
    let plot = format!("{}/over-optimisation.svg", run.folder);
    plot::write(
        &root.join(&plot),
        "A policy trained on a reward model",
        &Series { name: "score of the reward model", points: liked.points() },
        &Series { name: "share of right answers", points: exact.points() },
    )?;
    let runs = RewardModelRuns { reward_model: &reward_model, policy: &run, plot: &plot };
    print!("{}", summary::demo_reward_model(&accuracy, &liked, &exact, &runs, begun.elapsed()));
    Ok(())
}

/// Warms up with each of these configurations, from the last checkpoint of the one before, and then trains with
/// `config`; gives the last run and how long all of them took.
fn train(root: &Path, plugins: &[&str], seed: u64, warm_ups: &[&str], config: &str) -> Result<(Run, Duration)> {
    build(root, plugins)?;
    let begun = Instant::now();
    let seed = format!("seed={seed}");
    let mut model: Option<String> = None;
    for warm_up in warm_ups {
        let set: Vec<&str> = std::iter::once(seed.as_str()).chain(model.as_deref()).collect();
        let run = once(root, "warm-up", "sft", warm_up, &set)?;
        model = Some(format!("model.path={}", run.checkpoint));
    }
    let set = std::iter::once(seed.as_str()).chain(model.as_deref()).flat_map(|setting| ["--set", setting]);
    let arguments: Vec<&str> = ["train", "-c", config].into_iter().chain(set).collect();
    let run = gavel(root, "reinforcement learning", &arguments)?;
    Ok((run, begun.elapsed()))
}

/// Sets up, builds the host and these plugins, and makes the data.
pub fn build(root: &Path, plugins: &[&str]) -> Result<()> {
    let libtorch = setup::for_rust(root)?;
    guests::build_plugins(root, plugins)?;
    build_host(root, &libtorch)?;
    data(root)
}

/// The warm-up of a configuration.
pub fn warm_up(root: &Path, config: &str, seed: &str) -> Result<Run> {
    once(root, "warm-up", "sft", config, &[seed])
}

/// A run of `gavel COMMAND` with this configuration and these settings, as the part `title` of a demo. One that was
/// finished before with the same settings and programs is used again.
pub fn once(root: &Path, title: &str, command: &str, config: &str, set: &[&str]) -> Result<Run> {
    let settings = settings(root, config, set)?;
    let finished = Finished::at(root, config, set);
    if let Some(run) = finished.read(root, &settings) {
        return ui::step(title, || {
            let found = format!("{}/ is finished with the same settings and is used again", run.folder);
            Ok((run, found))
        });
    }
    let set = set.iter().flat_map(|setting| ["--set", setting]);
    let arguments: Vec<&str> = [command, "-c", config].into_iter().chain(set).collect();
    let run = gavel(root, title, &arguments)?;
    finished.write(&settings, &run)?;
    Ok(run)
}

/// Everything that determines a run: the configuration, what is set, and the programs that make its data and train.
fn settings(root: &Path, config: &str, set: &[&str]) -> Result<Value> {
    let text = fs::read_to_string(root.join(config))
        .map_err(|error| Failure::new(format!("cannot read {config}")).why(error.to_string()))?;
    let program = |name: &str| {
        let about = fs::metadata(built(root, name)).ok()?;
        let modified = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(json!([about.len(), modified.as_nanos().to_string()]))
    };
    Ok(json!({"config": text, "set": set, "gavel": program("gavel"), "data": program("demo-data")}))
}

/// The file that records a finished run.
struct Finished(PathBuf);

impl Finished {
    fn at(root: &Path, config: &str, set: &[&str]) -> Self {
        let mut hasher = DefaultHasher::new();
        set.hash(&mut hasher);
        let name = Path::new(config).file_stem().unwrap_or_default().to_string_lossy();
        Self(root.join(format!("target/demo/{name}-{:016x}.finished.json", hasher.finish())))
    }

    /// The run, if it had these settings and its checkpoint is still there.
    fn read(&self, root: &Path, settings: &Value) -> Option<Run> {
        let record: Value = serde_json::from_slice(&fs::read(&self.0).ok()?).ok()?;
        let run = Run::parse(&record.get("run")?.to_string())?;
        let is_there = root.join(&run.checkpoint).join("model.safetensors").is_file();
        (record.get("settings")? == settings && is_there).then_some(run)
    }

    fn write(&self, settings: &Value, run: &Run) -> Result<()> {
        let record = json!({"settings": settings, "run": {"folder": run.folder, "checkpoint": run.checkpoint}});
        fs::write(&self.0, record.to_string())
            .map_err(|error| Failure::new(format!("cannot write {}", self.0.display())).why(error.to_string()))
    }
}

fn build_host(root: &Path, libtorch: &Path) -> Result<()> {
    ui::loud_step("host", "building; the first time takes about 10 minutes on two cores", || {
        // The whole workspace, as the tests build it. With other packages, dependencies would get other features, and
        // wasmtime would be compiled again.
        Call::cargo(["build", "--release", "--workspace"])
            .within(root)
            .env("LIBTORCH", libtorch)
            .show("cannot build the host")
            .map_err(|failure| failure.hint("the compiler's message above names the file and the error"))?;
        Ok(((), "target/release/gavel".into()))
    })
}

fn data(root: &Path) -> Result<()> {
    ui::step("dataset", || {
        let folder = Path::new("target/demo");
        Call::new(built(root, "demo-data"), [folder]).within(root).read("cannot make the demo's dataset")?;
        Ok(((), "questions to train on and others to validate on, in target/demo/".into()))
    })
}

/// Runs `gavel` with these arguments, as the part `title` of a demo.
pub fn gavel(root: &Path, title: &str, arguments: &[&str]) -> Result<Run> {
    ui::loud_step(title, &format!("gavel {}", arguments.join(" ")), || {
        let what = format!("the demo's {title} failed");
        let arguments = arguments.iter().chain(&["--json"]);
        let answer = Call::new(built(root, "gavel"), arguments)
            .within(root)
            .answer(&what)
            .map_err(|failure| failure.hint("the message above says why; `cargo xtask demo` may be repeated"))?;
        let run = Run::parse(&answer)
            .ok_or_else(|| Failure::new(what).why(format!("it left no checkpoint; its summary is {answer}")))?;
        let found = format!("{}/", run.folder);
        Ok((run, found))
    })
}

/// A program of the host.
pub fn built(root: &Path, program: &str) -> PathBuf {
    root.join("target/release").join(program).with_extension(std::env::consts::EXE_EXTENSION)
}

/// The folders that a run of gavel made, relative to the repository.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    /// The run's folder.
    pub folder: String,
    /// Its newest checkpoint.
    pub checkpoint: String,
}

impl Run {
    /// Reads the summary that gavel prints with `--json`.
    fn parse(summary: &str) -> Option<Self> {
        let summary: Value = serde_json::from_str(summary).ok()?;
        let text = |key: &str| summary.get(key)?.as_str().map(str::to_owned);
        Some(Self { folder: text("folder")?, checkpoint: text("checkpoint")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_warm_up_is_used_again() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for folder in ["demo", "target/demo", "runs/warm/checkpoints/step-000010"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("demo/sft.toml"), "seed = 1").unwrap();
        let checkpoint = "runs/warm/checkpoints/step-000010";
        let weights = root.join(checkpoint).join("model.safetensors");
        fs::write(&weights, "").unwrap();
        let run = || Run { folder: "runs/warm".into(), checkpoint: checkpoint.into() };
        let finished = Finished::at(root, "demo/sft.toml", &["seed=1"]);
        let found = |seed: &str| finished.read(root, &settings(root, "demo/sft.toml", &[seed]).unwrap());
        assert_eq!(found("seed=1"), None);
        finished.write(&settings(root, "demo/sft.toml", &["seed=1"]).unwrap(), &run()).unwrap();
        assert_eq!((found("seed=1"), found("seed=2")), (Some(run()), None));
        assert_eq!(warm_up(root, "demo/sft.toml", "seed=1").unwrap(), run());
        fs::write(root.join("demo/sft.toml"), "seed = 2").unwrap();
        assert_eq!(found("seed=1"), None);
        fs::write(root.join("demo/sft.toml"), "seed = 1").unwrap();
        fs::remove_file(weights).unwrap();
        assert_eq!(found("seed=1"), None);
    }

    #[test]
    fn a_run_is_read_from_its_summary() {
        let summary =
            r#"{"folder":"runs/demo-2","step":100,"checkpoint":"runs/demo-2/checkpoints/step-000100","best":null}"#;
        let run = Run::parse(summary).unwrap();
        assert_eq!(
            (run.folder.as_str(), run.checkpoint.as_str()),
            ("runs/demo-2", "runs/demo-2/checkpoints/step-000100")
        );
        assert_eq!(Run::parse(r#"{"folder":"runs/demo","checkpoint":null}"#), None);
        assert_eq!(Run::parse("done"), None);
    }
}
