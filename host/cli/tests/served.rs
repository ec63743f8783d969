//! A run whose responses are drawn by two `gavel serve` processes.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use gavel_policy::{Device, Model, ModelConfig};
use gavel_text::TextModel;
use project::{Project, lines, stderr};
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

/// A server that ends with the test, whether or not the test passes.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Serves a model of the project's sizes, with weights that the run does not begin with.
    fn start(project: &Project, more: &[&str]) -> Self {
        let mut command = project.command(&["serve", "-m", "model", "--port", "0"]);
        let command = command.args(more).env("OMP_NUM_THREADS", "1");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit(' ').next().unwrap().trim_end_matches("/v1").to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{line}");
        Self { child, url }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

/// A project, and a checkpoint of its sizes in `model`.
fn project() -> Project {
    let project = Project::new();
    let config: ModelConfig = serde_json::from_value(json!({
        "vocab_size": 259, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64,
        "tie_word_embeddings": true,
    }))
    .unwrap();
    let folder = project.path("model");
    TextModel::byte_level().save(&folder).unwrap();
    Model::random(config, 77, Device::Cpu).unwrap().save(&folder).unwrap();
    std::fs::create_dir(project.path("weights")).unwrap();
    project
}

/// The setting that makes these servers draw.
fn engine(servers: &[&Server]) -> String {
    let urls: Vec<&str> = servers.iter().map(|server| server.url.as_str()).collect();
    format!("rollout.engine={{url = {urls:?}, kind = \"gavel\", weights = \"weights\"}}")
}

fn number(line: &Map<String, Value>, name: &str) -> f64 {
    line.get(name).and_then(Value::as_f64).unwrap_or_else(|| panic!("{name} of {line:?}"))
}

/// The steps of a run's metrics.
fn steps(project: &Project, run: &str) -> Vec<Map<String, Value>> {
    let all = lines(&project.path(run).join("metrics.jsonl"));
    all.into_iter().filter(|line| line.contains_key("updates")).collect()
}

#[test]
fn two_servers_draw_for_a_run_and_one_is_killed() {
    let project = project();
    let trainable = ["--trainable", "weights"];
    let (kept, mut killed) = (Server::start(&project, &trainable), Server::start(&project, &trainable));
    let engine = engine(&[&kept, &killed]);
    let count = 60;
    let args = |name: &str| {
        let settings =
            format!("log.name={name} train.steps={count} train.validate_every=1000 schedule.max_staleness=1");
        settings.split(' ').flat_map(|setting| ["--set".to_owned(), setting.to_owned()]).collect::<Vec<_>>()
    };
    let mut run = project.command(&["train", "-c", "train.toml", "--set", &engine]);
    let child = run.args(args("served")).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Any step will do.
    while steps(&project, "runs/served").len() < 4 {
        std::thread::sleep(Duration::from_millis(1));
    }
    killed.kill();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let steps_of_run = steps(&project, "runs/served");
    assert_eq!(steps_of_run.len(), count);
    for line in &steps_of_run {
        assert!(number(line, "off_policy/rollout_mismatch") < 1e-5, "{line:?}");
        assert!(number(line, "tokens/response") > 0.0, "{line:?}");
    }
    let up: Vec<f64> = steps_of_run.iter().map(|line| number(line, "rollout/servers_up")).collect();
    assert_eq!((up[0], up[count - 1]), (2.0, 1.0), "{up:?}");
    assert!(stderr(&output).contains(&format!("{}: ", killed.url)), "{}", stderr(&output));
    // Nothing is left in the folder of weights.
    assert_eq!(std::fs::read_dir(project.path("weights")).unwrap().count(), 0);
    // The engine of the run draws the same first step.
    let mut own = project.command(&["train", "-c", "train.toml"]);
    let output = own.args(args("own")).args(["--set", "train.steps=2"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for name in ["reward/mean", "reward/std", "response_length/mean"] {
        let [served, own] = ["runs/served", "runs/own"].map(|run| number(&steps(&project, run)[0], name));
        assert!((served - own).abs() < 1e-9, "{name}: {served} {own}");
    }
}

#[test]
fn a_server_that_cannot_be_trained_stops_the_run_before_it_begins() {
    let project = project();
    let server = Server::start(&project, &[]);
    let output = project.run(&["train", "-c", "train.toml", "--set", &engine(&[&server])]);
    let said = stderr(&output);
    assert!(!output.status.success() && said.contains("pause: it answered 404"), "{said}");
}
