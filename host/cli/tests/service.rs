//! Rewards that are servers: asked in training and by `gavel score`, and not in a replay.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use project::{Project, built, lines, stderr};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What calls of a reward have on a busy machine.
const LIMITS: &str = "limits = { cpu = \"60s\", timeout = \"120s\" }";

/// A server in Python, which ends when this is dropped.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start(kind: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reward_server.py");
        let mut process =
            Command::new("python3").arg(script).arg(kind).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned() }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// A project whose rewards are these tables.
fn project(rewards: &str) -> Project {
    let project = Project::new();
    let (before, rest) =
        project.read("train.toml").split_once("[[reward]]").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let after = rest.split_once("[checkpoint]").unwrap().1;
    project.write("train.toml", &format!("{before}{rewards}\n[checkpoint]{after}"));
    project
}

fn train(project: &Project) {
    project.succeed(&["train", "-c", "train.toml", "--set", "train.steps=2"]);
}

#[test]
fn a_run_learns_from_a_server_and_its_verdicts_replay_without_it() {
    let letters = Server::start("letter");
    let groups = Server::start("shortest");
    let verl = Server::start("verl");
    let table = |name: &str, url: &str, more: &str| {
        format!("[[reward]]\nname = {name:?}\nurl = \"{url}/score\"\nweight = 0.5\n{LIMITS}\n{more}\n")
    };
    let rewards = [
        table("letter", &letters.url, ""),
        table("shortest", &groups.url, "batch = \"group\""),
        table("found", &verl.url, "retries = 0"),
        format!(
            "[[reward]]\nname = \"here\"\npath = {:?}\nweight = 0.0\n{LIMITS}\nparams = {{ pattern = '(?s).*[a-z].*' }}",
            built("plugins/format.wasm")
        ),
    ];
    let project = project(&rewards.concat());
    train(&project);

    let trajectories = lines(&project.path("runs/run/trajectories/step-000001.jsonl"));
    let mut unavailable = 0;
    for line in &trajectories {
        let of = |name: &str| &line["plugins"][name];
        match of("letter")["outcome"].as_str().unwrap() {
            // The same rule as a component.
            "scored" => assert_eq!(of("letter")["score"], of("here")["score"], "{line:?}"),
            outcome => {
                assert_eq!((outcome, &of("letter")["reason"]), ("unavailable", &json!("no worker is free")));
                assert_eq!(line["reward"], Value::Null);
                unavailable += 1;
            }
        }
        let index = of("found")["metrics"]["index"].as_f64().unwrap();
        assert_eq!(index, line["task"].as_str().unwrap_or("-1").rsplit('/').next().unwrap().parse().unwrap_or(index));
    }
    assert!(unavailable > 0, "no attempt failed");
    for group in trajectories.chunks(4) {
        let scores: Vec<f64> =
            group.iter().map(|line| line["plugins"]["shortest"]["score"].as_f64().unwrap()).collect();
        let lengths: Vec<usize> = group.iter().map(|line| line["response"].as_str().unwrap().chars().count()).collect();
        let least = lengths.iter().min().unwrap();
        let expected: Vec<f64> = lengths.iter().map(|length| f64::from(u8::from(length == least))).collect();
        assert_eq!(scores, expected);
    }

    drop((letters, groups, verl));
    let said = String::from_utf8(project.succeed(&["replay", "runs/run", "--allow-grants"]).stdout).unwrap();
    assert!(said.contains("all the same"), "{said}");
}

#[test]
fn a_server_that_is_down_or_wrong_is_found_before_the_first_step() {
    let wrong = Server::start("wrong");
    let refused = |url: &str| {
        let project = project(&format!("[[reward]]\nname = \"lean\"\nurl = {url:?}\nretries = 0\n"));
        let output = project.run(&["train", "-c", "train.toml"]);
        assert!(!output.status.success());
        assert!(!project.path("runs/run/metrics.jsonl").exists());
        stderr(&output)
    };
    let at = |path: &str| refused(&format!("{}/{path}", wrong.url));
    for (said, what) in [
        (refused("http://127.0.0.1:9/score"), "http://127.0.0.1:9/score: no answer"),
        (at("away"), "/away answered with the status 404: not here"),
        (at("key"), "who are you? (no `api_key_env` is set)"),
        (at("text"), "the service answered with no verdicts"),
    ] {
        assert!(said.contains("lean") && said.contains(what), "{what}: {said}");
    }
}

#[test]
fn each_answer_has_its_outcome() {
    let wrong = Server::start("wrong");
    let project = Project::empty();
    project.write("rows.jsonl", "{\"prompt\": \"2 + 2?\", \"response\": \"4\", \"answer\": \"4\"}\n");
    let score = |path: &str, retries: u32| {
        let plugin = format!("s={}", built("plugins/service.wasm").display());
        let params = format!("s={}", json!({"url": format!("{}/{path}", wrong.url), "retries": retries}));
        let grant = format!("s={{ http = [\"{}\"], clock = \"real\" }}", wrong.url);
        let arguments = [
            "score",
            "--plugin",
            &plugin,
            "--params",
            &params,
            "--grant",
            &grant,
            "--cpu",
            "60s",
            "--timeout",
            "120s",
            "--data",
            "rows.jsonl",
            "--out",
            "o.jsonl",
        ];
        project.run(&arguments);
        let line = lines(&project.path("o.jsonl")).remove(0);
        std::fs::remove_file(project.path("o.jsonl")).unwrap();
        line
    };
    assert_eq!(score("late", 2)["reward"], 0.5);
    for (path, outcome, reason) in [
        ("busy", "unavailable", "answered with the status 503: busy"),
        ("few", "fault", "the service gave 0 verdicts about 1 samples"),
        ("inf", "fault", "the service answered with no verdicts"),
        ("text", "fault", "the service answered with no verdicts"),
        ("flood", "fault", "the service answered with no verdicts"),
    ] {
        let line = score(path, 1);
        let found = &line["plugins"]["s"];
        assert_eq!((found["outcome"].as_str(), &line["reward"]), (Some(outcome), &Value::Null), "{path}: {line:?}");
        assert!(found["reason"].as_str().unwrap().contains(reason), "{path}: {line:?}");
    }
}
