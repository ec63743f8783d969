//! `--resume` and `--resume-from`: where a stopped run resumes, and when that is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use project::{Project, lines, stderr};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Six steps with checkpoints of steps 3 and 6.
const TRAIN: [&str; 5] = ["train", "-c", "train.toml", "--set", "checkpoint.keep_best=false"];

fn flip_a_bit(project: &Project, path: &str) {
    let path = project.path(path);
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_run_in_progress_is_not_resumed_and_its_process_is_named() {
    let project = Project::new();
    let long = [&TRAIN[..], &["--set", "train.steps=100000"]].concat();
    let metrics = project.path("runs/run/metrics.jsonl");
    let mut running = project.command(&long).stderr(Stdio::null()).spawn().unwrap();
    while lines(&metrics).len() < 8 && running.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let before = std::fs::read(&metrics).unwrap();
    let output = project.run(&[&long[..], &["--resume"]].concat());
    let after = std::fs::read(&metrics).unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    let holder = format!("error: the run runs/run is in use by process {} on ", running.id());
    assert!(said.contains(&holder) && said.contains(" since 20"), "{said}");
    assert!(said.contains("\nhint: wait until that process ends, or end it"), "{said}");
    assert!(after.starts_with(&before), "the run lost metrics");

    // The lock is released when its process ends.
    let output = project.succeed(&[&TRAIN[..], &["--resume", "--set", "train.steps=3"]].concat());
    assert!(stderr(&output).contains("resuming runs/run after step "), "{}", stderr(&output));
}

#[test]
fn a_signal_ends_supervised_training_after_a_step_with_a_checkpoint() {
    let project = Project::new();
    let args = |name| {
        let settings = ["train.steps=300", "train.validate_every=100", "checkpoint.every=1000", name];
        ["sft", "-c", "sft.toml"].into_iter().chain(settings.into_iter().flat_map(|setting| ["--set", setting]))
    };
    project.succeed(&args("log.name=whole").collect::<Vec<_>>());
    for (signal, name) in [("-TERM", "log.name=terminated"), ("-INT", "log.name=interrupted")] {
        let run = name.replace("log.name=", "runs/");
        let args = args(name).collect::<Vec<_>>();
        let said = signal_on_the_way(&project, &args, &run, signal);
        assert!(said.contains("ending after the step under way, with a checkpoint"), "{said}");
        let steps = lines(&project.path(&run).join("metrics.jsonl")).len() - 1;
        assert!(steps < 300, "{said}");
        assert!(said.contains(&format!("stopped after step {steps}: {run}")), "{said}");
        assert!(project.path(&format!("{run}/checkpoints/step-{steps:06}")).is_dir(), "{said}");
        project.succeed(&[&args[..], &["--resume"]].concat());
        assert_eq!(project.metrics(&run), project.metrics("runs/whole"));
    }
}

/// Sends a run a signal after some steps. Returns what it said until it ended for that reason.
fn signal_on_the_way(project: &Project, args: &[&str], run: &str, signal: &str) -> String {
    let metrics = project.path(run).join("metrics.jsonl");
    for _ in 0..10 {
        let mut running = project.command(args).stderr(Stdio::piped()).spawn().unwrap();
        let mut has_ended = false;
        while !has_ended && lines(&metrics).len() < 4 {
            std::thread::sleep(Duration::from_millis(1));
            has_ended = running.try_wait().unwrap().is_some();
        }
        if !has_ended {
            assert!(Command::new("kill").args([signal, &running.id().to_string()]).status().unwrap().success());
        }
        let output = running.wait_with_output().unwrap();
        if output.status.code() == Some(130) {
            return stderr(&output);
        }
        // On a busy machine, the run may end before it has the signal.
        assert!(output.status.success(), "{}", stderr(&output));
        std::fs::remove_dir_all(project.path(run)).unwrap();
    }
    panic!("the run was always over before it had the signal");
}

#[test]
fn a_damaged_checkpoint_is_named_and_an_older_one_is_taken_when_asked_for() {
    let project = Project::new();
    project.succeed(&TRAIN);
    let newest = "runs/run/checkpoints/step-000006";
    let file = |name: &str| project.path(newest).join(name);
    let (metrics, weights) = (project.metrics("runs/run"), std::fs::read(file("model.safetensors")).unwrap());
    for name in ["model.safetensors", "optimizer.safetensors", "tokenizer.json", "state.json"] {
        flip_a_bit(&project, &format!("{newest}/{name}"));
        let output = project.run(&[&TRAIN[..], &["--resume", "--set", "train.steps=8"]].concat());
        assert_eq!(output.status.code(), Some(2));
        let expected = format!(
            "error: checkpoint {newest} is damaged: {newest}/{name}: its content is not what was saved (its hash differs)\nhint: the checkpoint of step 3 is whole: --resume-from 3 resumes from it, and drops what the run has of later steps\n"
        );
        assert!(stderr(&output).ends_with(&expected), "{}", stderr(&output));
        flip_a_bit(&project, &format!("{newest}/{name}"));
    }
    flip_a_bit(&project, &format!("{newest}/model.safetensors"));
    assert_eq!(project.metrics("runs/run"), metrics, "a refusal dropped something");

    let output = project.run(&[&TRAIN[..], &["--resume-from", "4"]].concat());
    let expected =
        "error: the run runs/run has no checkpoint of step 4\nhint: --resume-from takes one of these steps: 3, 6\n";
    assert!(stderr(&output).ends_with(expected), "{}", stderr(&output));

    let output = project.succeed(&[&TRAIN[..], &["--resume-from", "3"]].concat());
    let dropped = "dropped what the run had of later steps: 3 lines of metrics, the trajectories of 3 steps, the checkpoints of steps 6\n";
    assert!(stderr(&output).contains(dropped), "{}", stderr(&output));
    assert_eq!(project.metrics("runs/run"), metrics);
    assert!(std::fs::read(file("model.safetensors")).unwrap() == weights, "the weights differ");
}

#[test]
fn damaged_weights_are_not_used_and_other_files_may_be_edited() {
    let project = Project::new();
    project.succeed(&TRAIN);
    let newest = "runs/run/checkpoints/step-000006";
    let eval = ["eval", "-c", "train.toml", "--checkpoint", newest];
    let path = format!("model.path={newest:?}");
    let train = ["train", "-c", "path.toml", "--set", &path];
    let config = project.read("train.toml");
    let (before, after) = config.split_once("[model.init]").unwrap();
    project.write("path.toml", &format!("{before}[model]\n{}", &after[after.find("[data]").unwrap()..]));
    let generate = ["generate", "-m", newest, "--prompt", "a", "--max-tokens", "2"];
    let edited = project.read(&format!("{newest}/config.json")) + "\n";
    project.write(&format!("{newest}/config.json"), &edited);
    std::fs::remove_file(project.path(&format!("{newest}/optimizer.safetensors"))).unwrap();
    project.succeed(&eval);
    project.succeed(&generate);
    flip_a_bit(&project, &format!("{newest}/model.safetensors"));
    for args in [&eval[..], &train, &generate] {
        let output = project.run(args);
        let says = format!(
            "error: {newest}/model.safetensors: its content is not what was saved (its hash differs)\nhint: take another checkpoint; "
        );
        assert!(output.status.code() == Some(2) && stderr(&output).contains(&says), "{}", stderr(&output));
    }
    std::fs::remove_file(project.path(&format!("{newest}/BLAKE3SUMS"))).unwrap();
    project.succeed(&eval);
}

#[test]
fn without_a_checkpoint_a_run_is_not_started_over() {
    let project = Project::new();
    project.succeed(&TRAIN);
    let metrics = project.metrics("runs/run");
    std::fs::remove_dir_all(project.path("runs/run/checkpoints")).unwrap();
    for resume in [&["--resume"][..], &["--resume-from", "3"], &["--resume", "--resume-from", "3"]] {
        let output = project.run(&[&TRAIN[..], resume].concat());
        assert_eq!(output.status.code(), Some(2));
        let expected = "error: the run runs/run has no checkpoint to resume from\nhint: leave --resume out to start a new run beside it\n";
        assert!(stderr(&output).ends_with(expected), "{}", stderr(&output));
    }
    assert_eq!(project.metrics("runs/run"), metrics);
    assert_eq!(lines(&project.path("runs/run/trajectories/step-000006.jsonl")).len(), 16);
}

#[test]
fn what_cannot_be_resumed_is_found_before_a_reward_is_tried() {
    let project = Project::new();
    project.succeed(&TRAIN);
    flip_a_bit(&project, "runs/run/checkpoints/step-000006/state.json");
    let absent = ["--set", "log.name=absent"];
    for (more, says) in
        [(&[][..], "is damaged"), (&["--resume-from", "4"], "no checkpoint of step 4"), (&absent, "absent")]
    {
        let output = project.run(&[&TRAIN[..], &["--resume"], more].concat());
        let said = stderr(&output);
        assert!(output.status.code() == Some(2) && said.contains(says), "{said}");
        assert!(!said.contains("trying each reward"), "{said}");
    }
    assert!(!project.path("runs/absent").exists());
}

#[test]
fn a_checkpoint_without_hashes_is_resumed_with_a_word_of_it() {
    let project = Project::new();
    project.succeed(&TRAIN);
    std::fs::remove_file(project.path("runs/run/checkpoints/step-000006/BLAKE3SUMS")).unwrap();
    let output = project.succeed(&[&TRAIN[..], &["--resume", "--set", "train.steps=8"]].concat());
    let said = "checkpoint runs/run/checkpoints/step-000006 was saved without hashes: its files are not checked";
    assert_eq!(stderr(&output).matches(said).count(), 1, "{}", stderr(&output));
    assert_eq!(project.metrics("runs/run").len(), 9);
    // Later checkpoints have them.
    assert!(project.path("runs/run/checkpoints/step-000008/BLAKE3SUMS").exists());
}
