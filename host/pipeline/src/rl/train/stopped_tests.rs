//! A run that stops by a failure leaves a checkpoint of its last whole step, from which it continues with equal results.

use super::sampler_tests::{IMITATING, sampler, tasks};
use super::tests::config;
use super::*;
use gavel_rollout::CacheDuring;
use gavel_runs::{Checkpoints, Metrics, read_metrics};
use gavel_scoring::recording::KeptComponents;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

/// The limits of honest calls on a busy machine.
const PATIENT: &str = "limits = { cpu = '1m', timeout = '2m' }";

/// A judge whose score is the length of the response, until it has answered so many requests.
#[derive(Clone)]
struct Judge {
    url: String,
    left: Arc<AtomicU64>,
    /// The folder of a run, and a folder to make in it as soon as the first one is there.
    obstacle: Arc<Mutex<Option<(PathBuf, &'static str)>>>,
}

impl Judge {
    /// After that it gives `late` as the body of its answers, or no answers at all.
    fn start(late: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/score", listener.local_addr().unwrap());
        let judge = Self { url, left: Arc::new(AtomicU64::new(0)), obstacle: Arc::default() };
        let answering = judge.clone();
        std::thread::spawn(move || listener.incoming().for_each(|stream| answering.answer(stream.unwrap(), late)));
        judge
    }

    fn answer(&self, mut stream: TcpStream, late: Option<&str>) {
        let is_late = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err();
        let Some(request) = body(&stream) else { return };
        if let Some((run, name)) = self.obstacle.lock().unwrap().take_if(|(run, _)| run.is_dir()) {
            std::fs::create_dir_all(run.join(name)).unwrap();
        }
        let body = match (is_late, late) {
            (true, None) => return,
            (true, Some(late)) => late.to_owned(),
            (false, _) => {
                let response = request["samples"][0]["response"].as_str().unwrap();
                format!(r#"{{"verdicts": [{{"score": {}}}]}}"#, response.len())
            }
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close",
            body.len()
        );
        // The other side may be gone.
        let _ = write!(stream, "{head}\r\n\r\n{body}");
    }

    /// A run with this judge alone.
    fn config(&self, folder: &Path, name: &str, added: &str) -> Config<RlTable> {
        let mut config = config(folder, name, added);
        config.reward[0].weight = 0.0;
        let judge = format!("name = 'judge'\nurl = {:?}\non_endpoint_down = 'pause'\n{}", self.url, PATIENT);
        config.reward.push(toml::from_str(&judge).unwrap());
        let service = super::tests::repository().join("target/plugins/service.wasm");
        config.reward[1].path = Some(service);
        config
    }
}

/// The body of a request.
fn body(stream: &TcpStream) -> Option<serde_json::Value> {
    let (mut reader, mut length) = (BufReader::new(stream), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn run(config: &Config<RlTable>, start: Start) -> Result<Summary> {
    train(config, start, &Peers::alone(), &Control::default())
}

const RESUME: Start = Start::Resume { from: None, allow_changed_plugins: false };

/// The names of a run's checkpoints.
fn checkpoints(folder: &Path, name: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder.join("runs").join(name).join("checkpoints")) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn weights(summary: &Summary) -> Vec<u8> {
    std::fs::read(summary.checkpoint.as_ref().unwrap().join("model.safetensors")).unwrap()
}

/// The calls of the judge before the first step, and in each step.
const TRIED: u64 = 1;
const OF_STEP: u64 = 16;
/// How long a judge that restarts is away: its endpoint counts as down after 3 s.
const AWAY: Duration = Duration::from_secs(5);

#[test]
fn a_run_whose_judge_is_gone_continues_with_equal_results() {
    let (folder, judge) = (tempfile::tempdir().unwrap(), Judge::start(None));
    let added = "[train]\nsteps = 3\nmax_pause = '1ns'\n[schedule]\nretries = 1";
    let config = |name: &str| judge.config(folder.path(), name, added);
    judge.left.store(u64::MAX, Ordering::SeqCst);
    let whole = run(&config("whole"), Start::New).unwrap();
    judge.left.store(TRIED + OF_STEP + OF_STEP / 2, Ordering::SeqCst);
    let stopped = config("stopped");
    let error = run(&stopped, Start::New).unwrap_err().to_string();
    assert!(error.starts_with("step 2: the server http://") && error.contains("(train.max_pause): "), "{error}");
    assert_eq!(checkpoints(folder.path(), "stopped"), ["step-000001"]);
    judge.left.store(u64::MAX, Ordering::SeqCst);
    let resumed = run(&stopped, RESUME).unwrap();
    assert_eq!(resumed.step, 3);
    assert!(weights(&resumed) == weights(&whole));
}

#[test]
fn a_judge_that_restarts_ends_no_run() {
    let (folder, judge) = (tempfile::tempdir().unwrap(), Judge::start(None));
    judge.left.store(TRIED + OF_STEP / 2, Ordering::SeqCst);
    let left = judge.left.clone();
    let restart = std::thread::spawn(move || {
        while left.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(AWAY);
        left.store(u64::MAX, Ordering::SeqCst);
    });
    let summary = run(&judge.config(folder.path(), "restarted", "[train]\nsteps = 2"), Start::New).unwrap();
    restart.join().unwrap();
    assert_eq!(summary.step, 2);
    // A plugin gives a request up by itself while its server does not yet count as down.
    let (steps, _) = read_metrics(&summary.folder).unwrap();
    let outcomes = |step: u64| {
        let of_step = steps.iter().map(Metrics::as_json).find(|metrics| metrics["step"] == step).unwrap();
        ["scored", "unavailable"].map(|kind| of_step[&format!("outcome/judge/{kind}")].as_u64().unwrap())
    };
    let [[scored, lost], later] = [1, 2].map(outcomes);
    assert!(scored >= OF_STEP / 2 && scored + lost == OF_STEP, "{scored} and {lost}");
    assert_eq!(later, [OF_STEP, 0]);
}

#[test]
fn a_run_that_stops_after_refusals_of_a_step_draws_what_it_would_have_drawn() {
    let (folder, judge) = (tempfile::tempdir().unwrap(), Judge::start(None));
    // Two groups of each step are refused. In the first step, others are drawn in their place, or were started ahead.
    for (name, schedule) in [("on-policy", ""), ("ahead", "max_staleness = 1\n")] {
        let added =
            format!("{IMITATING}\nmax_pause = '1ns'\n[schedule]\n{schedule}retries = 1\n{}", sampler("refuses"));
        let config = |name: &str| judge.config(folder.path(), name, &added);
        judge.left.store(u64::MAX, Ordering::SeqCst);
        let whole = run(&config(&format!("{name}-whole")), Start::New).unwrap();
        let stopped = config(name);
        // All groups of the second step, without those in the place of the refused ones.
        judge.left.store(TRIED + 10, Ordering::SeqCst);
        let error = run(&stopped, Start::New).unwrap_err().to_string();
        assert!(error.starts_with("step 2: the server http://") && error.contains("(train.max_pause): "), "{error}");
        assert_eq!(judge.left.load(Ordering::SeqCst), 0);
        assert_eq!(checkpoints(folder.path(), name), ["step-000001"]);
        judge.left.store(u64::MAX, Ordering::SeqCst);
        let resumed = run(&stopped, RESUME).unwrap();
        assert_eq!((resumed.groups["refused: third"], &resumed.groups), (4, &whole.groups));
        assert_eq!(tasks(&resumed), tasks(&whole), "{name}");
        assert!(weights(&resumed) == weights(&whole), "{name}");
    }
}

#[test]
fn a_run_that_fails_after_a_whole_step_keeps_it() {
    let (folder, judge) = (tempfile::tempdir().unwrap(), Judge::start(Some("no verdicts")));
    let config = judge.config(folder.path(), "failing", "[train]\nsteps = 3");
    judge.left.store(TRIED + OF_STEP, Ordering::SeqCst);
    let error = run(&config, Start::New).unwrap_err().to_string();
    assert!(error.starts_with("step 2: 16 of 16 samples could not be scored"), "{error}");
    assert_eq!(checkpoints(folder.path(), "failing"), ["step-000002"]);
    judge.left.store(u64::MAX, Ordering::SeqCst);
    assert_eq!(run(&config, RESUME).unwrap().step, 3);
}

#[test]
fn weights_in_the_middle_of_a_step_are_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    // The first of two mini-batches ruins the weights, and the loss of the second is not finite.
    let text = "[train]\nlearning_rate = 1e38\nmini_batch_prompts = 2";
    let error = run(&config(folder.path(), "two", text), Start::New).unwrap_err().to_string();
    assert!(error.starts_with("step 1: ") && error.contains("nothing was changed"), "{error}");
    assert_eq!(checkpoints(folder.path(), "two"), [""; 0]);
    // With one mini-batch, the step is whole.
    let text = "[train]\nlearning_rate = 1e38\nmini_batch_prompts = 4";
    run(&config(folder.path(), "one", text), Start::New).unwrap_err();
    assert_eq!(checkpoints(folder.path(), "one"), ["step-000001"]);
}

#[test]
fn a_validation_that_was_not_finished_is_repeated() {
    let (folder, judge) = (tempfile::tempdir().unwrap(), Judge::start(None));
    let rows = folder.path().join("held-out.jsonl");
    std::fs::write(&rows, "{\"prompt\": \"Say a\"}\n{\"prompt\": \"Say b\"}\n").unwrap();
    let added =
        format!("[data]\nvalidation = {rows:?}\n[train]\nsteps = 2\nvalidate_every = 1\n[log]\ntrajectories = true");
    let config = |name: &str| judge.config(folder.path(), name, &added);
    judge.left.store(u64::MAX, Ordering::SeqCst);
    let whole = run(&config("whole"), Start::New).unwrap();
    let asked = |judge: &Judge| u64::MAX - judge.left.load(Ordering::SeqCst);
    let of_whole = asked(&judge);
    let (stopped, run_folder) = (config("stopped"), folder.path().join("runs/stopped"));
    let name = "validation/trajectories/step-000001.jsonl";
    *judge.obstacle.lock().unwrap() = Some((run_folder.clone(), name));
    let obstacle = run_folder.join(name);
    let says = format!("cannot write {}: ", obstacle.display());
    let error = run(&stopped, Start::New).unwrap_err().to_string();
    assert!(error.starts_with(&says), "{error}");
    assert_eq!(checkpoints(folder.path(), "stopped"), ["step-000001"]);
    let metrics = |name: &str| {
        let (steps, damaged) = read_metrics(&folder.path().join("runs").join(name)).unwrap();
        assert_eq!(damaged, []);
        let of_policy = |name: &str| name == "step" || name == "loss" || name.starts_with("val/reward/");
        let of_policy = |(name, value): (&String, &serde_json::Value)| {
            (of_policy(name) && !name.contains("/latency_")).then(|| (name.clone(), value.clone()))
        };
        steps.iter().map(|step| step.as_json().iter().filter_map(of_policy).collect()).collect::<Vec<Vec<_>>>()
    };
    // Again it does not end.
    let again = run(&stopped, RESUME).unwrap_err().to_string();
    assert!(again.starts_with(&says), "{again}");
    assert_eq!(metrics("stopped")[1], metrics("whole")[1][..2]);
    std::fs::remove_dir(&obstacle).unwrap();
    judge.left.store(u64::MAX, Ordering::SeqCst);
    let resumed = run(&stopped, RESUME).unwrap();
    let expected = metrics("whole");
    assert!(expected.len() == 3 && expected[1].len() > 2, "{expected:?}");
    assert_eq!(metrics("stopped"), expected);
    assert!(weights(&resumed) == weights(&whole));
    // It is repeated once: only the validation before the first step and this step are missing.
    assert_eq!(asked(&judge), of_whole - 2 - OF_STEP);
}

#[test]
fn the_line_of_a_step_outlives_the_validation_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let rows = folder.path().join("rows.jsonl");
    let added = format!("[data]\nvalidation = {rows:?}\n[train]\nvalidate_every = 1");
    let (config, ranks) = (config(folder.path(), "dropped", &added), Ranks::alone());
    let setup = Setup::new(&config, &KeptComponents::default(), &ranks).unwrap();
    let shape = RunShape {
        learning: config.train.learning(8),
        drawn: 8,
        grouping: config.train.grouping(),
        needs_reference: false,
        cache: CacheDuring::Kept,
    };
    let mut run = Run::open(&config, setup, shape, None, &ranks).unwrap();
    let runtime = run.rollout.scorer.sandbox().handle().clone();
    let mut metrics = Metrics::of_step(1);
    metrics.set("loss", 0.5);
    run.note_step(1, &metrics);
    runtime.block_on(async {
        let mut validating = std::pin::pin!(run.end_step(1, metrics));
        // A failure of a group beside it drops it.
        assert!(validating.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    });
    for _ in 0..2 {
        run.recorder.log_waiting().unwrap();
        let (steps, damaged) = read_metrics(&folder.path().join("runs/dropped")).unwrap();
        let losses: Vec<_> = steps.iter().map(|step| (step.get("step"), step.get("loss"))).collect();
        assert_eq!((losses, damaged), (vec![(Some(1.0), Some(0.5))], vec![]));
    }
}

#[test]
fn groups_of_a_step_without_an_update_are_kept_if_it_does_not_end() {
    let (folder, judge) = (tempfile::tempdir().unwrap(), Judge::start(None));
    judge.left.store(u64::MAX, Ordering::SeqCst);
    // No response is good enough to be imitated. The groups of both steps are started before the first.
    let added = "[train]\nsteps = 3\nalgorithm = 'raft'\nadvantage.threshold = 1e9\nloss.policy = 'gpg'\n[schedule]\nmax_staleness = 1\n[log]\ntrajectories = true";
    let config = judge.config(folder.path(), "failing", added);
    let run_folder = folder.path().join("runs/failing");
    let name = "trajectories/step-000002.jsonl";
    *judge.obstacle.lock().unwrap() = Some((run_folder.clone(), name));
    let obstacle = run_folder.join(name);
    let error = run(&config, Start::New).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot write {}: ", obstacle.display())), "{error}");
    assert_eq!(checkpoints(folder.path(), "failing"), ["step-000001"]);
    let kept = Checkpoints::queue(&run_folder.join("checkpoints/step-000001")).unwrap();
    let in_step = std::fs::read_to_string(run_folder.join("trajectories/step-000001.jsonl")).unwrap();
    let draw = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        (line["step"].as_u64().unwrap() - 1) * 4 + line["group"].as_u64().unwrap()
    };
    let mut draws: Vec<u64> = in_step.lines().map(draw).chain(kept.iter().map(|group| group.draw)).collect();
    draws.sort_unstable();
    draws.dedup();
    assert_eq!(draws, (0..8).collect::<Vec<u64>>());
    assert_eq!(kept.len(), 4);
}
