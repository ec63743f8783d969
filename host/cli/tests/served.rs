//! A run whose responses are drawn by two `gavel serve` processes.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use gavel_policy::{Device, Model, ModelConfig};
use gavel_text::TextModel;
use project::{Project, lines, stderr};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

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

/// How long a test waits for what takes seconds, so that it ends where it would hang.
const PATIENCE: Duration = Duration::from_secs(600);

/// A run in a process of its own, which ends with the test, whether or not the test passes.
struct Running<'a> {
    child: Child,
    project: &'a Project,
    name: &'a str,
}

impl<'a> Running<'a> {
    fn start(project: &'a Project, name: &'a str, args: &[String]) -> Self {
        // A file holds as much as the run says while nobody reads it.
        let said = File::create(project.path(&format!("{name}.stderr"))).unwrap();
        let mut command = project.command(&["train", "-c", "train.toml"]);
        let child = command.args(args).stdout(Stdio::null()).stderr(said).spawn().unwrap();
        Self { child, project, name }
    }

    fn said(&self) -> String {
        self.project.read(&format!("{}.stderr", self.name))
    }

    /// Waits for a step after the first `after` that is as `is_enough` says.
    fn wait_for_step(&mut self, after: usize, is_enough: impl Fn(&Map<String, Value>) -> bool) {
        let asked = Instant::now();
        while !steps(self.project, &format!("runs/{}", self.name)).iter().skip(after).any(&is_enough) {
            assert!(asked.elapsed() < PATIENCE, "no such step: {}", self.said());
            assert!(self.child.try_wait().unwrap().is_none(), "the run has ended: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asks it to end, and waits until it has.
    fn interrupt(&mut self) -> ExitStatus {
        assert!(Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap().success());
        self.end()
    }

    /// Waits until it has ended.
    fn end(&mut self) -> ExitStatus {
        let asked = Instant::now();
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return status,
                None => assert!(asked.elapsed() < PATIENCE, "the run does not end: {}", self.said()),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

#[test]
fn two_servers_draw_for_a_run_and_one_is_killed() {
    let project = project();
    let trainable = ["--trainable", "weights"];
    let (kept, mut killed) = (Server::start(&project, &trainable), Server::start(&project, &trainable));
    let args = |name: &str, more: &[String]| {
        // More steps than it takes; it is asked to end.
        let settings =
            format!("log.name={name} train.steps=1000000 train.validate_every=1000000 schedule.max_staleness=1");
        let settings = settings.split(' ').map(str::to_owned).chain(more.iter().cloned());
        settings.flat_map(|setting| ["--set".to_owned(), setting]).collect::<Vec<_>>()
    };
    let mut run = Running::start(&project, "served", &args("served", &[engine(&[&kept, &killed])]));
    // Any step will do.
    run.wait_for_step(3, |_| true);
    killed.kill();
    let up = |line: &Map<String, Value>| number(line, "rollout/servers_up");
    run.wait_for_step(0, |line| up(line) == 1.0);
    let status = run.interrupt();
    assert_eq!(status.code(), Some(130), "{}", run.said());
    let steps_of_run = steps(&project, "runs/served");
    for line in &steps_of_run {
        assert!(number(line, "off_policy/rollout_mismatch") < 1e-5, "{line:?}");
        assert!(number(line, "tokens/response") > 0.0, "{line:?}");
    }
    assert_eq!((up(&steps_of_run[0]), up(&steps_of_run[steps_of_run.len() - 1])), (2.0, 1.0), "{steps_of_run:?}");
    assert!(run.said().contains(&format!("{}: ", killed.url)), "{}", run.said());
    // Nothing is left in the folder of weights.
    assert_eq!(std::fs::read_dir(project.path("weights")).unwrap().count(), 0);
    // The engine of the run draws the same first step.
    let mut own = project.command(&["train", "-c", "train.toml"]);
    let output = own.args(args("own", &["train.steps=2".into()])).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for name in ["reward/mean", "reward/std", "response_length/mean"] {
        let [served, own] = ["runs/served", "runs/own"].map(|run| number(&steps(&project, run)[0], name));
        assert!((served - own).abs() < 1e-9, "{name}: {served} {own}");
    }
}

#[test]
fn a_server_that_reports_what_could_be_drawn_draws_as_the_engine_of_a_run() {
    let project = project();
    let server = Server::start(&project, &["--trainable", "weights"]);
    let cuts = ["rollout.top_k=40", "rollout.top_p=0.9", "rollout.min_p=0.001"];
    for (name, engine) in [("served", Some(engine(&[&server]))), ("own", None)] {
        let name = format!("log.name={name}");
        // One update of each step.
        let settings = [name.as_str(), "train.steps=2", "train.mini_batch_prompts=4"];
        let settings = settings.into_iter().chain(cuts).chain(engine.as_deref());
        let mut command = project.command(&["train", "-c", "train.toml"]);
        let output = command.args(settings.flat_map(|setting| ["--set", setting])).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let [served, own] = ["runs/served", "runs/own"].map(|run| steps(&project, run));
    assert_eq!((served.len(), own.len()), (2, 2));
    for name in ["reward/mean", "reward/std", "response_length/mean", "rollout/allowed_tokens"] {
        let (served, own) = (number(&served[0], name), number(&own[0], name));
        assert!((served - own).abs() < 1e-9, "{name}: {served} {own}");
    }
    assert!((1.0..=40.0).contains(&number(&served[0], "rollout/allowed_tokens")), "{:?}", served[0]);
    // Log-probabilities are of what could be drawn, in training as at the server.
    for line in served.iter().chain(&own) {
        assert!(number(line, "logprob_mismatch_max") < 1e-5, "{line:?}");
    }
    assert!(served.iter().all(|line| number(line, "off_policy/rollout_mismatch") < 1e-5), "{served:?}");
}

#[test]
fn a_step_whose_weights_a_server_refuses_is_kept() {
    let project = project();
    let server = Server::start(&project, &["--trainable", "weights"]);
    symlink("weights", project.path("shared")).unwrap();
    let engine = engine(&[&server]).replace("\"weights\"", "\"shared\"");
    let settings = ["log.name=refused", "train.steps=1000000", "train.validate_every=1000000", &engine];
    let args: Vec<String> = settings.iter().flat_map(|setting| ["--set".to_owned(), (*setting).to_owned()]).collect();
    let mut run = Running::start(&project, "refused", &args);
    run.wait_for_step(1, |_| true);
    // From now on, the run writes to a folder from which the server loads nothing.
    for of_run in std::fs::read_dir(project.path("weights")).unwrap() {
        std::fs::create_dir_all(project.path("elsewhere").join(of_run.unwrap().file_name())).unwrap();
    }
    symlink("elsewhere", project.path("other")).unwrap();
    std::fs::rename(project.path("other"), project.path("shared")).unwrap();
    let status = run.end();
    assert!(!status.success() && run.said().contains("error: rollout.engine"), "{}", run.said());
    let last = steps(&project, "runs/refused").len();
    assert!(project.path(&format!("runs/refused/checkpoints/step-{last:06}")).is_dir(), "{}", run.said());
}

#[test]
fn a_server_that_cannot_be_trained_stops_the_run_before_it_begins() {
    let project = project();
    let server = Server::start(&project, &[]);
    let output = project.run(&["train", "-c", "train.toml", "--set", &engine(&[&server])]);
    let said = stderr(&output);
    assert!(!output.status.success() && said.contains("pause: it answered 404"), "{said}");
}

#[test]
fn what_servers_cannot_do_is_refused_before_anything_is_asked() {
    let project = project();
    let engine = "rollout.engine={url = \"http://127.0.0.1:1\", kind = \"gavel\", weights = \"weights\"}";
    for (setting, says) in [
        ("rollout.top_p=0.9", "rollout.top_p and min_p need rollout.top_k"),
        ("rollout.repetition_penalty=1.1", "rollout.repetition_penalty and logit_bias are for an engine of the run"),
        ("rollout.grammar={regex = \"a\"}", "rollout.grammar is for an engine of the run, not yet for servers"),
    ] {
        let output = project.run(&["train", "-c", "train.toml", "--set", engine, "--set", setting]);
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains("rollout.engine") && said.contains(says), "{said}");
    }
}
