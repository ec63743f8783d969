//! `[schedule]`: what a run draws, trains on and keeps where judges are slow.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use project::{Project, lines, stderr};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A run of 12 steps whose judge takes its time.
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

/// How many versions the policy that drew a trajectory was behind when it was trained on.
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

#[test]
fn a_sample_whose_judge_is_unavailable_is_drawn_again_a_bounded_number_of_times() {
    let project = Project::new();
    // The first requests of a run are refused, after the one with which the reward is tried.
    let (address, refused) = (server(10), "retries = 0");
    let chat = format!("[chat.judge]\nbase_url = \"http://{address}/v1\"\nmodel = \"none\"\n{refused}\n");
    project.add_reward("asks", "guests/asks.wasm", &format!("weight = 0.5\ngrant = {{ chat = [\"judge\"] }}\n{chat}"));
    project.write("train.toml", &project.read("train.toml").replace("validation = \"validation.jsonl\"\n", ""));
    train(&project, "run", "train.steps=2 schedule.retries=1");
    let metrics = project.metrics("runs/run");
    let outcomes = |step: usize| (&metrics[step]["outcome/asks/scored"], &metrics[step]["outcome/asks/unavailable"]);
    assert_eq!(outcomes(1), (&16.into(), &0.into()));
    assert_eq!(outcomes(2), (&16.into(), &0.into()));
    // What was drawn again has seeds of its own, and the id of its draw.
    let lines = trajectories(&project, "runs/run");
    let seeds: BTreeSet<u64> = lines.iter().map(|line| line["plugins"]["letter"]["seed"].as_u64().unwrap()).collect();
    assert_eq!((seeds.len(), ids(&lines).into_iter().collect::<BTreeSet<_>>().len()), (32, 32));

    // Without retries they are dropped, and the run goes on.
    let address = server(10);
    let text = project.read("train.toml");
    let old = text.lines().find(|line| line.starts_with("base_url")).unwrap();
    project.write("train.toml", &text.replace(old, &format!("base_url = \"http://{address}/v1\"")));
    train(&project, "dropped", "train.steps=2 train.max_failure_rate=0.7");
    let metrics = project.metrics("runs/dropped");
    assert_eq!(
        (&metrics[1]["outcome/asks/unavailable"], &metrics[2]["outcome/asks/unavailable"]),
        (&10.into(), &0.into())
    );
}

/// The address of a server that answers 1 to the first request, refuses as many as it is to, and answers 1 to all others.
fn server(refused: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while stream.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            stream.read_exact(&mut vec![0; length]).unwrap();
            let body = r#"{"choices": [{"message": {"role": "assistant", "content": "1"}, "finish_reason": "stop"}]}"#;
            let status = if (1..=refused).contains(&number) { "503 Service Unavailable" } else { "200 OK" };
            let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n");
            let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    address
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
        // Each step trains on as many groups as ever.
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
    // What was dropped has no advantage, and no step that trained on it.
    let (trained, dropped): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.contains_key("trained_step"));
    assert!(!dropped.is_empty() && dropped.iter().all(|line| line["advantage"].is_null()));
    assert!(trained.iter().all(|line| line["advantage"].is_number()));
}

/// Kills a run `times` times, each time somewhere on its way, and resumes it to its end.
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
        let enough = before + 1 + (time as usize * 7 + std::process::id() as usize) % 4;
        while (lines(&metrics).len() < enough.min(12) || !has_checkpoint()) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(u64::from(std::process::id() % 13) * u64::from(time)));
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

/// Sends a signal to a run.
fn signal(child: &std::process::Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

#[test]
fn a_run_says_what_it_waits_for_and_ends_with_a_checkpoint_when_asked_to() {
    let project = project("milliseconds = 0, random = 40");
    let schedule = "schedule.max_staleness=1 schedule.watchdog=1s checkpoint.every=100";
    train(&project, "whole", schedule);
    // The checkpoint that it is to end with is the first one.
    let args = args("asked", schedule);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let log = project.path("asked.log");
    let mut run = project.command(&args).stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    let said = || std::fs::read_to_string(&log).unwrap();
    let metrics = project.path("runs/asked/metrics.jsonl");
    let wait_for = |run: &mut std::process::Child, happened: &dyn Fn() -> bool| {
        while !happened() {
            assert!(run.try_wait().unwrap().is_none(), "it ended before it did what it was asked to: {}", said());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    wait_for(&mut run, &|| lines(&metrics).len() > 2);
    signal(&run, "-USR1");
    wait_for(&mut run, &|| said().contains(" samples that wait for their group, "));
    signal(&run, "-INT");
    let status = run.wait().unwrap();
    let said = said();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("ending after the step under way, with a checkpoint"), "{said}");
    assert!(said.contains("stopped after step "), "{said}");
    let steps = lines(&metrics).len() - 1;
    assert!(steps < 12 && project.path(&format!("runs/asked/checkpoints/step-{steps:06}")).is_dir(), "{said}");
    project.succeed(&[&args[..], &["--resume"]].concat());
    assert_eq!(project.metrics("runs/asked"), project.metrics("runs/whole"));
}

#[test]
fn a_silent_run_says_what_it_waits_for_and_who_the_device_waited_for() {
    let project = project("milliseconds = 1500");
    let args = args("run", "train.steps=1 schedule.watchdog=1s");
    let output = project.succeed(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let said = stderr(&output);
    assert!(said.contains("nothing has ended for 1 s (schedule.watchdog)"), "{said}");
    assert!(said.contains("\n  sample 1.0.0: reward slow, 1."), "{said}");
    assert!(said.contains("the device waited for\n    reward/slow "), "{said}");
    assert!(said.contains(" s for reward/slow of sample 1."), "{said}");
    let step = &lines(&project.path("runs/run/metrics.jsonl"))[1];
    let seconds = |name: &str| step[name].as_f64().unwrap();
    assert!((1.4..2.5).contains(&seconds("device_wait/reward/slow")), "{step:?}");
    assert_eq!(step["device_wait/total"], step["device_wait/reward/slow"]);
    assert!((0.5..=1.0).contains(&seconds("perf/device_idle")), "{step:?}");
    assert!(seconds("reward/slow/latency_p50") >= 1.5, "{step:?}");
}
