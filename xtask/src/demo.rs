//! `cargo xtask demo`: from nothing to a policy that learned from two
//! WebAssembly rewards.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::summary::{self, Curve};
use crate::{guests, setup, ui};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Sets up, builds, makes the data, trains and sums up.
pub fn run(root: &Path, seed: u64) -> Result<()> {
    let libtorch = setup::all(root)?;
    guests::build(root)?;
    build_host(root, &libtorch)?;
    data(root)?;

    let begun = Instant::now();
    let runs = Runs::free(&root.join("runs"));
    let seed = format!("seed={seed}");
    let warm_up = format!("log.name={}", runs.warm_up);
    gavel(root, "warm-up", &["sft", "-c", "demo/sft.toml", "--set", &seed, "--set", &warm_up])?;
    let model = format!("model.path={}", newest_checkpoint(root, &runs.warm_up)?);
    let name = format!("log.name={}", runs.main);
    gavel(
        root,
        "reinforcement learning",
        &["train", "-c", "demo/train.toml", "--set", &seed, "--set", &name, "--set", &model],
    )?;
    let time = begun.elapsed();

    let folder = root.join("runs").join(&runs.main);
    let curve = Curve::read(&folder.join("metrics.jsonl"))?;
    let checkpoint = newest_checkpoint(root, &runs.main)?;
    print!("{}", summary::demo(&curve, &format!("runs/{}", runs.main), &checkpoint, time));
    Ok(())
}

fn build_host(root: &Path, libtorch: &Path) -> Result<()> {
    ui::loud_step("host", "building; the first time takes about 15 minutes on two cores", || {
        Call::cargo(["build", "--release", "--package", "gavel", "--package", "demo-data"])
            .within(root)
            .env("LIBTORCH", libtorch)
            .show("cannot build the host")
            .map_err(|failure| failure.hint("the compiler's message above says what is wrong in which file"))?;
        Ok("target/release/gavel".into())
    })
}

fn data(root: &Path) -> Result<()> {
    ui::step("dataset", || {
        let folder = Path::new("target/demo");
        Call::new(built(root, "demo-data"), [folder]).within(root).read("cannot make the demo's dataset")?;
        Ok("7,500 questions to train on and 500 others to validate on, in target/demo/".into())
    })
}

fn gavel(root: &Path, title: &str, arguments: &[&str]) -> Result<()> {
    ui::loud_step(title, &format!("gavel {}", arguments.join(" ")), || {
        Call::new(built(root, "gavel"), arguments)
            .within(root)
            .show(&format!("the demo's {title} failed"))
            .map_err(|failure| failure.hint("the message above says why; `cargo xtask demo` may be repeated"))?;
        Ok("done".into())
    })
}

fn built(root: &Path, program: &str) -> PathBuf {
    root.join("target/release").join(program).with_extension(std::env::consts::EXE_EXTENSION)
}

/// The newest checkpoint of the run `name`, relative to `root`: checkpoints
/// are named by their steps, `step-000120`.
fn newest_checkpoint(root: &Path, name: &str) -> Result<String> {
    let folder = format!("runs/{name}/checkpoints");
    let path = root.join(&folder);
    let entries = fs::read_dir(&path).map_err(|error| cannot("read", &path, &error))?;
    let newest = entries
        .flatten()
        .filter(|entry| entry.path().join("model.safetensors").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with("step-"))
        .max();
    newest
        .map(|step| format!("{folder}/{step}"))
        .ok_or_else(|| Failure::new(format!("the run {name} left no checkpoint in {folder}")))
}

/// The names of the demo's two runs, the same number after both.
#[derive(Debug, PartialEq, Eq)]
struct Runs {
    warm_up: String,
    main: String,
}

impl Runs {
    /// The first names that no run in `folder` has yet.
    fn free(folder: &Path) -> Self {
        let named = |suffix: &str| Self { warm_up: format!("demo-sft{suffix}"), main: format!("demo{suffix}") };
        let taken = |runs: &Self| folder.join(&runs.warm_up).exists() || folder.join(&runs.main).exists();
        let mut runs = named("");
        let mut number = 1;
        while taken(&runs) {
            number += 1;
            runs = named(&format!("-{number}"));
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_checkpoint_is_whole_and_has_the_highest_step() {
        let root = tempfile::tempdir().unwrap();
        let checkpoints = root.path().join("runs/demo/checkpoints");
        fs::create_dir_all(&checkpoints).unwrap();
        let error = newest_checkpoint(root.path(), "demo").unwrap_err().to_string();
        assert_eq!(error, "the run demo left no checkpoint in runs/demo/checkpoints");
        for step in ["step-000020", "step-000100"] {
            fs::create_dir(checkpoints.join(step)).unwrap();
            fs::write(checkpoints.join(step).join("model.safetensors"), "").unwrap();
        }
        fs::create_dir(checkpoints.join("step-000120")).unwrap();
        assert_eq!(newest_checkpoint(root.path(), "demo").unwrap(), "runs/demo/checkpoints/step-000100");
    }

    #[test]
    fn a_run_never_takes_the_name_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let names = || {
            let runs = Runs::free(folder.path());
            (runs.warm_up, runs.main)
        };
        assert_eq!(names(), ("demo-sft".into(), "demo".into()));
        fs::create_dir(folder.path().join("demo-sft")).unwrap();
        assert_eq!(names(), ("demo-sft-2".into(), "demo-2".into()));
        fs::create_dir(folder.path().join("demo-2")).unwrap();
        assert_eq!(names(), ("demo-sft-3".into(), "demo-3".into()));
    }
}
