//! What a run waits for: how it reports waits, what they cost, and how they end.

use crate::project::{Project, lines, stderr};
use crate::{args, ids, project, train, trajectories};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn a_sample_whose_judge_is_unavailable_is_drawn_again_a_bounded_number_of_times() {
    let project = Project::new();
    // The first requests of a run are refused, after the one with which the reward is tried.
    let (address, refused) = (server(10, Duration::ZERO), "retries = 0");
    let chat = format!("[chat.judge]\nbase_url = \"http://{address}/v1\"\nmodel = \"none\"\n{refused}\n");
    project.add_reward("asks", "guests/asks.wasm", &asks(&chat));
    leave_validation_out(&project);
    train(&project, "run", "train.steps=2 schedule.retries=1");
    let metrics = project.metrics("runs/run");
    let outcomes = |step: usize| (&metrics[step]["outcome/asks/scored"], &metrics[step]["outcome/asks/unavailable"]);
    assert_eq!(outcomes(1), (&16.into(), &0.into()));
    assert_eq!(outcomes(2), (&16.into(), &0.into()));
    // A sample that was drawn again has seeds of its own, and the id of its draw.
    let lines = trajectories(&project, "runs/run");
    let seeds: BTreeSet<u64> = lines.iter().map(|line| line["plugins"]["letter"]["seed"].as_u64().unwrap()).collect();
    assert_eq!((seeds.len(), ids(&lines).into_iter().collect::<BTreeSet<_>>().len()), (32, 32));

    // Without retries they are dropped, and the run continues.
    let address = server(10, Duration::ZERO);
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

/// The settings of a reward that asks the endpoint `judge`.
fn asks(chat: &str) -> String {
    format!("weight = 0.5\ngrant = {{ chat = [\"judge\"] }}\nlimits = {{ timeout = \"2m\" }}\n{chat}")
}

fn leave_validation_out(project: &Project) {
    project.write("train.toml", &project.read("train.toml").replace("validation = \"validation.jsonl\"\n", ""));
}

/// Gives honest calls of a slow judge enough time on a busy machine.
fn be_patient(project: &Project) {
    project.write("train.toml", &(project.read("train.toml") + "[limits]\ntimeout = \"1m\"\n"));
}

/// The address of a server that answers 1 to the first request, refuses the next `refused` requests, and answers 1 to
/// all others. It answers one request after another, each after `delay`.
fn server(refused: usize, delay: Duration) -> SocketAddr {
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
            std::thread::sleep(delay);
            let body = r#"{"choices": [{"message": {"role": "assistant", "content": "1"}, "finish_reason": "stop"}]}"#;
            let status = if (1..=refused).contains(&number) { "503 Service Unavailable" } else { "200 OK" };
            let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n");
            let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    address
}

#[test]
fn waits_for_an_endpoint_are_told_and_charged_to_it() {
    let project = Project::new();
    let address = server(0, Duration::from_millis(600));
    let chat = format!("[chat.judge]\nbase_url = \"http://{address}/v1\"\nmodel = \"none\"\nconcurrency = 1\n");
    project.add_reward("asks", "guests/asks.wasm", &asks(&chat));
    leave_validation_out(&project);
    let args = args("run", "train.steps=1 train.prompts_per_step=2");
    let log = project.path("run.log");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut run = project.command(&args).stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    let said = || std::fs::read_to_string(&log).unwrap();
    wait_for(&mut run, said, || said().contains("run folder"));
    // Its first requests are sent soon after.
    while !said().contains(": its turn at the endpoint judge") {
        signal(&run, "-USR1");
        std::thread::sleep(Duration::from_millis(100));
        assert!(run.try_wait().unwrap().is_none(), "{}", said());
    }
    assert!(run.wait().unwrap().success());
    let said = said();
    assert!(said.contains(": its turn at the endpoint judge, for reward asks, "), "{said}");
    assert!(said.contains(": the answer of the endpoint judge, for reward asks, "), "{said}");
    // The threads come before the waits, with what each of them calls.
    let (_, stacks) = said.split_once("\nthe stacks of ").expect(&said);
    let calls = |name: &str| stacks.contains(&format!("\n    {name}")) || stacks.contains(&format!("\n    <{name}"));
    assert!(stacks.contains("\n  gavel-models (") && calls("gavel_pipeline::"), "{stacks}");
    let metrics = &lines(&project.path("runs/run/metrics.jsonl"))[1];
    let waited = |name: &str| metrics.get(&format!("device_wait/{name}")).and_then(Value::as_f64).unwrap_or_default();
    assert!(waited("chat/judge") > 1.0 && waited("chat/judge") > 5.0 * waited("reward/asks"), "{metrics:?}");
}

#[test]
fn samples_of_a_validation_are_told_too() {
    let project = project("milliseconds = 2000");
    be_patient(&project);
    let args = args("run", "train.steps=1");
    let log = project.path("run.log");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut run = project.command(&args).stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    let said = || std::fs::read_to_string(&log).unwrap();
    wait_for(&mut run, said, || said().contains("run folder"));
    while !said().contains("\n  sample validation/0.0: reward slow, ") {
        signal(&run, "-USR1");
        std::thread::sleep(Duration::from_millis(50));
        assert!(run.try_wait().unwrap().is_none(), "{}", said());
    }
    assert!(run.wait().unwrap().success(), "{}", said());
}

/// Sends a signal to a run.
fn signal(child: &std::process::Child, name: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
}

#[test]
fn a_judge_that_hangs_or_crashes_now_and_then_costs_what_the_ledger_says() {
    let hangs = project("milliseconds = 0, hangs = 10");
    hangs.write("train.toml", &(hangs.read("train.toml") + "[limits]\ntimeout = \"3s\"\n"));
    let waited = |metrics: &[Map<String, Value>]| -> f64 {
        metrics.iter().filter_map(|step| step.get("device_wait/reward/slow")?.as_f64()).sum()
    };
    let count = |metrics: &[Map<String, Value>], name: &str| -> u64 {
        metrics.iter().filter_map(|step| step.get(name)?.as_u64()).sum()
    };
    train(&hangs, "waits", "train.steps=4");
    train(&hangs, "goes-on", "train.steps=4 schedule.max_staleness=3 schedule.stream=true");
    let (waits, goes_on) =
        (lines(&hangs.path("runs/waits/metrics.jsonl")), lines(&hangs.path("runs/goes-on/metrics.jsonl")));
    for metrics in [&waits, &goes_on] {
        assert!(count(metrics, "outcome/slow/out-of-budget/deadline") > 1);
        assert_eq!(count(metrics, "outcome/slow/scored") + count(metrics, "outcome/slow/out-of-budget"), 64);
    }
    // With the synchronous schedule a step waits for its slowest sample, after it has drawn all.
    let late =
        waits.iter().filter(|step| step.get("outcome/slow/out-of-budget").and_then(Value::as_u64) > Some(0)).count();
    assert!(waited(&waits) > 0.7 * 3.0 * late as f64, "{}", waited(&waits));
    assert!(waited(&goes_on) < waited(&waits), "{} {}", waited(&goes_on), waited(&waits));

    let crashes = project("milliseconds = 0, crashes = 10");
    train(&crashes, "run", "train.steps=4");
    let metrics = lines(&crashes.path("runs/run/metrics.jsonl"));
    assert!(count(&metrics, "outcome/slow/fault") > 1);
    // Less than the time limit of one call.
    assert!(waited(&metrics) < 10.0, "{}", waited(&metrics));
}

/// Waits until something has happened, while the run continues.
fn wait_for(run: &mut std::process::Child, said: impl Fn() -> String, happened: impl Fn() -> bool) {
    while !happened() {
        assert!(run.try_wait().unwrap().is_none(), "it ended before: {}", said());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_run_says_what_it_waits_for_and_ends_with_a_checkpoint_when_asked_to() {
    let project = project("milliseconds = 0, random = 40");
    let schedule = "schedule.max_staleness=1 schedule.watchdog=1s checkpoint.every=100";
    train(&project, "whole", schedule);
    // The checkpoint at its end is its first one.
    let args = args("asked", schedule);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let said = ask_to_end(&project, &args, "asked");
    assert!(said.contains("ending after the step under way, with a checkpoint"), "{said}");
    assert!(said.contains("stopped after step "), "{said}");
    let steps = lines(&project.path("runs/asked/metrics.jsonl")).len() - 1;
    assert!(steps < 12 && project.path(&format!("runs/asked/checkpoints/step-{steps:06}")).is_dir(), "{said}");
    project.succeed(&[&args[..], &["--resume"]].concat());
    assert_eq!(project.metrics("runs/asked"), project.metrics("runs/whole"));
}

/// Asks a run what it waits for and then to end, on the way. Returns what it said.
fn ask_to_end(project: &Project, args: &[&str], name: &str) -> String {
    let (log, run) = (project.path("asked.log"), project.path(&format!("runs/{name}")));
    let said = || std::fs::read_to_string(&log).unwrap();
    for _ in 0..10 {
        let mut child = project.command(args).stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
        let mut has_ended = false;
        while !has_ended && lines(&run.join("metrics.jsonl")).len() < 3 {
            std::thread::sleep(Duration::from_millis(1));
            has_ended = child.try_wait().unwrap().is_some();
        }
        while !has_ended && !said().contains(" samples that wait for their group, ") {
            signal(&child, "-USR1");
            std::thread::sleep(Duration::from_millis(10));
            has_ended = child.try_wait().unwrap().is_some();
        }
        if !has_ended {
            signal(&child, "-INT");
        }
        let status = child.wait().unwrap();
        if status.code() == Some(130) {
            return said();
        }
        // On a busy machine, the run may end before it is asked to.
        assert!(status.success(), "{}", said());
        std::fs::remove_dir_all(&run).unwrap();
    }
    panic!("the run was always over before it could be asked");
}

#[test]
fn a_silent_run_says_what_it_waits_for_and_who_the_device_waited_for() {
    let project = project("milliseconds = 5000");
    be_patient(&project);
    leave_validation_out(&project);
    let args = args("run", "train.steps=1 schedule.watchdog=1s");
    let start = Instant::now();
    let output = project.succeed(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let whole = start.elapsed().as_secs_f64();
    let said = stderr(&output);
    assert!(said.contains("nothing has ended for 1 s (schedule.watchdog)"), "{said}");
    assert!(said.contains("\n  sample 1.0.0: reward slow, "), "{said}");
    assert!(said.contains("the device waited for\n    reward/slow "), "{said}");
    assert!(said.contains(" s for reward/slow of sample 1."), "{said}");
    let step = &lines(&project.path("runs/run/metrics.jsonl"))[1];
    let seconds = |name: &str| step[name].as_f64().unwrap();
    // How much of the reward's 5 s the device computes depends on how busy the machine is.
    let wait = seconds("device_wait/reward/slow");
    assert!(wait > 0.0 && wait < whole, "{step:?}");
    assert_eq!(step["device_wait/total"], step["device_wait/reward/slow"]);
    assert!(wait / whole < seconds("perf/device_idle") && seconds("perf/device_idle") <= 1.0, "{step:?}");
    assert!(seconds("reward/slow/latency_p50") >= 5.0, "{step:?}");
}
