//! `[schedule]`: what a run draws, trains on and keeps if its judges are slow.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

#[path = "../project/mod.rs"]
mod project;
mod waits;

use project::{Project, lines, stderr};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;
use std::time::Duration;

/// A run of 12 steps with a slow judge.
fn project(params: &str) -> Project {
    let project = Project::new();
    let more = format!("weight = 0.0\nparams = {{ {params} }}\ngrant = {{ clock = \"real\" }}");
    project.add_reward("slow", "guests/sleepy.wasm", &more);
    project
}

/// Trains it with a schedule, as the run `name`.
fn args(name: &str, schedule: &str) -> Vec<String> {
    let settings = format!("train.steps=12 checkpoint.every=2 checkpoint.keep_best=false log.name={name} {schedule}");
    let settings = settings.split_whitespace().flat_map(|setting| ["--set".to_owned(), setting.to_owned()]);
    ["train", "-c", "train.toml"].map(str::to_owned).into_iter().chain(settings).collect()
}

fn train(project: &Project, name: &str, schedule: &str) {
    let args = args(name, schedule);
    project.succeed(&args.iter().map(String::as_str).collect::<Vec<_>>());
}

/// The trajectories of a run, in the order in which they were kept.
fn trajectories(project: &Project, run: &str) -> Vec<Map<String, Value>> {
    let mut files: Vec<_> = std::fs::read_dir(project.path(run).join("trajectories")).unwrap().collect();
    files.sort_by_key(|file| file.as_ref().unwrap().path());
    files.into_iter().flat_map(|file| lines(&file.unwrap().path())).collect()
}

fn number(line: &Map<String, Value>, key: &str) -> u64 {
    line[key].as_u64().unwrap_or_else(|| panic!("{key} of {}", line["id"]))
}

/// Every draw that a run of 12 steps was to make, with 4 samples each.
fn all_draws() -> BTreeSet<String> {
    (1..=12)
        .flat_map(|step| (0..4).map(move |group| (step, group)))
        .flat_map(|(step, group)| (0..4).map(move |sample| format!("{step}.{group}.{sample}")))
        .collect()
}

/// The staleness of a trajectory: how many versions the policy that drew it was behind the policy that was trained on
/// it.
fn staleness(line: &Map<String, Value>) -> u64 {
    number(line, "trained_step") - 1 - line["tokens"]["policy_version"].as_u64().unwrap()
}

fn ids(lines: &[Map<String, Value>]) -> Vec<String> {
    lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn where_nothing_depends_on_a_clock_random_delays_change_nothing() {
    let quick = project("milliseconds = 0");
    let slow = project("milliseconds = 0, random = 60");
    for schedule in [
        "schedule.max_staleness=0",
        "schedule.max_staleness=1",
        "schedule.max_staleness=1 train.filter_groups.max_num_gen_batches=3",
    ] {
        train(&quick, "run", schedule);
        train(&slow, "run", schedule);
        let newest = |project: &Project| project.metrics(&format!("runs/{}", newest_run(project)));
        assert_eq!(newest(&quick), newest(&slow), "{schedule}");
    }
}

#[test]
fn a_device_of_its_own_draws_what_one_device_would() {
    let project = project("milliseconds = 0");
    train(&project, "one", "schedule.max_staleness=1");
    train(&project, "two", "schedule.max_staleness=1 rollout.device=cpu");
    assert_eq!(project.metrics("runs/one"), project.metrics("runs/two"));
    let weights =
        |run: &str| std::fs::read(project.path(run).join("checkpoints/step-000012/model.safetensors")).unwrap();
    assert!(weights("runs/one") == weights("runs/two"), "the weights differ");
}

fn newest_run(project: &Project) -> String {
    let runs = std::fs::read_dir(project.path("runs")).unwrap();
    let names = runs.map(|run| run.unwrap().file_name().into_string().unwrap());
    names.max_by_key(|name| (name.len(), name.clone())).unwrap()
}

#[test]
fn nothing_is_staler_than_allowed_and_every_draw_is_trained_on_once_however_slow() {
    // Longer responses take longer to judge.
    let project = project("milliseconds = 5, each_byte = 6, random = 40");
    for (name, allowed, schedule) in [
        ("pipeline", 0, "schedule.stream=true"),
        ("behind", 1, "schedule.max_staleness=1"),
        ("both", 3, "schedule.stream=true schedule.max_staleness=3"),
        ("partial", 2, "schedule.stream=true schedule.max_staleness=2 schedule.partial_rollout=true"),
        (
            "anew",
            1,
            "schedule.max_staleness=1 schedule.partial_rollout=true schedule.recompute_cache=true rollout.max_batch=5",
        ),
        ("beside", 2, "rollout.device=cpu schedule.stream=true schedule.max_staleness=2"),
    ] {
        train(&project, name, schedule);
        let lines = trajectories(&project, &format!("runs/{name}"));
        let found = ids(&lines);
        assert_eq!(found.len(), all_draws().len(), "{name}");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), all_draws(), "{name}");
        let stalest = lines.iter().map(staleness).max().unwrap();
        assert!(stalest <= allowed, "{name}: {stalest}");
        assert_eq!(allowed == 0, stalest == 0, "{name} never ran ahead");
        // Each step trains on the full number of groups.
        let mut of_step: BTreeMap<u64, u64> = BTreeMap::new();
        lines.iter().for_each(|line| *of_step.entry(number(line, "trained_step")).or_default() += 1);
        assert_eq!(of_step, (1..=12).map(|step| (step, 16)).collect(), "{name}");
    }
}

#[test]
fn groups_that_teach_nothing_are_replaced_within_a_bound() {
    let project = project("milliseconds = 0");
    train(&project, "run", "train.filter_groups.max_num_gen_batches=4");
    let metrics = project.metrics("runs/run");
    let value = |step: &Map<String, Value>, name: &str| step[name].as_f64().unwrap();
    assert!(metrics[1..].iter().any(|step| value(step, "groups/dropped") > 0.0), "nothing was dropped");
    for step in &metrics[1..] {
        let (tried, dropped) = (value(step, "groups/tried"), value(step, "groups/dropped"));
        assert_eq!(step["frac_reward_zero_std"], 0.0);
        assert!(tried - dropped == 4.0 || dropped >= 12.0, "{tried} tried, {dropped} dropped");
        assert!(tried <= 16.0 + 4.0, "{tried} tried");
    }
    let lines = trajectories(&project, "runs/run");
    let unique: BTreeSet<String> = ids(&lines).into_iter().collect();
    assert_eq!(unique.len(), lines.len(), "a draw came twice");
    // A dropped group has no advantage and no trained step.
    let (trained, dropped): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.contains_key("trained_step"));
    assert!(!dropped.is_empty() && dropped.iter().all(|line| line["advantage"].is_null()));
    assert!(trained.iter().all(|line| line["advantage"].is_number()));
}

/// Kills a run `times` times, each time at another place between two steps, and resumes it to its end.
fn kill_and_resume(project: &Project, name: &str, schedule: &str, times: u32) {
    let args = args(name, schedule);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let metrics = project.path(&format!("runs/{name}/metrics.jsonl"));
    let checkpoints = project.path(&format!("runs/{name}/checkpoints"));
    for time in 0..times {
        let has_checkpoint = || {
            std::fs::read_dir(&checkpoints).is_ok_and(|entries| {
                entries.flatten().any(|entry| !entry.file_name().to_string_lossy().ends_with(".partial"))
            })
        };
        let resume: &[&str] = if has_checkpoint() { &["--resume"] } else { &[] };
        let mut child = project.command(&[&args[..], resume].concat()).stderr(Stdio::null()).spawn().unwrap();
        let before = lines(&metrics).len();
        let enough = before + 1 + (time as usize * 7) % 4;
        while (lines(&metrics).len() < enough.min(12) || !has_checkpoint()) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(6 * u64::from(time)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    project.succeed(&[&args[..], &["--resume"]].concat());
}

#[test]
fn a_killed_run_trains_on_every_draw_once() {
    let project = project("milliseconds = 5, each_byte = 3, random = 30");
    train(&project, "whole", "schedule.max_staleness=1");
    kill_and_resume(&project, "killed", "schedule.max_staleness=1", 3);
    assert_eq!(project.metrics("runs/killed"), project.metrics("runs/whole"));
    let weights =
        |run: &str| std::fs::read(project.path(run).join("checkpoints/step-000012/model.safetensors")).unwrap();
    assert!(weights("runs/killed") == weights("runs/whole"), "the weights differ");

    for (name, schedule) in [
        ("both", "schedule.stream=true schedule.max_staleness=2"),
        ("partial", "schedule.stream=true schedule.max_staleness=2 schedule.partial_rollout=true"),
    ] {
        kill_and_resume(&project, name, schedule, 3);
        let lines = trajectories(&project, &format!("runs/{name}"));
        let found = ids(&lines);
        assert_eq!(found.len(), all_draws().len(), "{name}");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), all_draws(), "{name}");
        assert!(lines.iter().map(staleness).max() <= Some(2), "{name}");
        let state = project.path(&format!("runs/{name}/checkpoints/step-000012/state.json"));
        let state: Value = serde_json::from_slice(&std::fs::read(state).unwrap()).unwrap();
        let count = |fate: &str| state["groups"].get(fate).and_then(Value::as_u64).unwrap_or_default();
        assert_eq!((state["draws"].as_u64(), count("trained") + count("too-few-scored")), (Some(48), 48), "{name}");
    }
}

#[test]
fn the_proximal_policy_is_that_before_the_step_also_where_mini_batches_come_one_by_one() {
    let project = project("milliseconds = 0, random = 60");
    let schedule = "schedule.stream=true schedule.max_staleness=1 train.steps=2 train.mini_batch_prompts=1";
    train(&project, "run", &format!("{schedule} train.learning_rate=0.01"));
    let metrics = &project.metrics("runs/run")[1..];
    let number = |step: usize, name: &str| metrics[step][name].as_f64().unwrap();
    // The policy before the first step drew all of its data; the one before the second did not.
    assert!(number(0, "off_policy/k3_kl") < 1e-9 && number(0, "kl") > 1e-6, "{:?}", metrics[0]);
    assert!(number(1, "off_policy/k3_kl") > 1e-6, "{:?}", metrics[1]);
}

#[test]
fn a_run_without_groups_in_its_checkpoints_draws_them_again() {
    let project = project("milliseconds = 0");
    train(&project, "run", "schedule.max_staleness=1 schedule.checkpoint_groups=false");
    // The version that drew the responses of step 11.
    let versions = || -> BTreeSet<u64> {
        let lines = trajectories(&project, "runs/run").into_iter();
        let of_step = lines.filter(|line| number(line, "trained_step") == 11);
        of_step.map(|line| line["tokens"]["policy_version"].as_u64().unwrap()).collect()
    };
    assert_eq!(versions(), [9].into());
    let queue = lines(&project.path("runs/run/checkpoints/step-000010/queue.jsonl"));
    let of_group = |group: &Map<String, Value>| (number(group, "draw"), group["samples"].as_array().unwrap().len());
    assert_eq!(queue.iter().map(of_group).collect::<Vec<_>>(), [(40, 0), (41, 0), (42, 0), (43, 0)]);
    // The key may change with a resumed run.
    let args = args("run", "schedule.max_staleness=1");
    project.succeed(&args.iter().map(String::as_str).chain(["--resume-from", "10"]).collect::<Vec<_>>());
    assert_eq!(versions(), [10].into());
    let found = ids(&trajectories(&project, "runs/run"));
    assert_eq!((found.len(), found.into_iter().collect()), (all_draws().len(), all_draws()));
}

#[test]
fn tokens_that_are_older_than_allowed_teach_nothing() {
    let project = project("milliseconds = 0");
    let masked = |name: &str, schedule: &str| {
        train(&project, name, &format!("train.steps=3 schedule.max_staleness={schedule}"));
        let value = |step: &Map<String, Value>, name: &str| step[name].as_f64().unwrap();
        let of_step = |step| (value(step, "off_policy/masked_by_age"), value(step, "grad_norm") > 0.0);
        project.metrics(&format!("runs/{name}"))[1..].iter().map(of_step).collect::<Vec<_>>()
    };
    // Each step after the first trains on tokens that are one version old.
    assert_eq!(masked("masked", "1 train.off_policy.max_token_staleness=0"), [(0.0, true), (1.0, false), (1.0, false)]);
    assert_eq!(masked("kept", "2 train.off_policy.max_token_staleness=1")[..2], [(0.0, true), (0.0, true)]);
    let args = args("refused", "schedule.max_staleness=1 train.off_policy.max_token_staleness=1");
    let output = project.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let error = stderr(&output);
    assert!(!output.status.success());
    assert!(error.contains("train.off_policy.max_token_staleness must be below schedule.max_staleness = 1"), "{error}");
}
