//! `gavel runs`, as a user runs it, on folders of runs that were made without a model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use gavel_data::shown::is_seen;
use gavel_data::{Message, OutcomeKind, Role, Sample, SampleOutcome, Task, Trajectory};
use gavel_runs::{
    EndKind, FolderConfig, Metrics, Retention, RunError, RunFolder, ScoredSample, State, layout, write_plugin_sets,
};
use project::{Project, stderr};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

/// Clears the screen, sets the title, returns to the margin, reverses the direction of the text and begins lines of its
/// own.
const EVIL: &str = "x\u{1b}[2J\u{1b}]0;t\u{7}\rerror: forged\u{202e}\u{9b}31m\u{2028}\nerror: forged\nhint: forged";

fn config(project: &Project, name: &str) -> FolderConfig {
    let command = Some("gavel train -c run.toml".into());
    FolderConfig { dir: project.path("runs"), name: name.into(), tensorboard: false, token_ids: false, command }
}

fn metrics(step: u64, numbers: &[(&str, f64)]) -> Metrics {
    let mut metrics = Metrics::of_step(step);
    numbers.iter().for_each(|(name, value)| metrics.set(*name, *value));
    metrics
}

/// A run of two steps with a checkpoint, whose end is not recorded yet.
fn taken(project: &Project, name: &str, rate: &str, word: &str) -> RunFolder {
    let text = format!(
        "[model]\npath = \"base\"\n[data]\ntrain = {}\n[rollout]\ngroup_size = 8\n[[reward]]\nname = \"answer\"\nweight = 1.0\n[train]\nalgorithm = \"grpo\"\nsteps = 2\nprompts_per_step = 4\nlearning_rate = {rate}\n",
        toml::Value::from(word)
    );
    let mut folder = RunFolder::create(&config(project, name), &text).unwrap();
    write_plugin_sets(folder.path(), &[json!({"from_step": 1, "plugins": [{"name": "answer"}]})]).unwrap();
    folder.log(0, &metrics(0, &[("val/accuracy", 0.5), ("time/timestamp", 1e9)])).unwrap();
    for step in [1, 2] {
        let mut numbers = metrics(step, &[("reward/mean", 0.25 * step as f64), ("loss", 0.5), ("time/step", 2.0)]);
        numbers.set("device_wait/reward/answer", 1.0);
        numbers.set("val/accuracy", 1.0 - 0.125 * step as f64);
        numbers.set("time/timestamp", 1e9 + 60.0 * step as f64);
        numbers.count("outcome/answer/scored", 8);
        folder.log(step, &numbers).unwrap();
        samples(&mut folder, step, word);
    }
    let state = State { step: 2, ..State::default() };
    let write = |into: &Path| -> Result<(), RunError> {
        fs::write(into.join("weights"), vec![0; 2_000_000]).unwrap();
        Ok(())
    };
    folder.save_checkpoint(&state, &[], Retention { last: 1, best: false }, write).unwrap();
    folder
}

fn samples(folder: &mut RunFolder, step: u64, word: &str) {
    let row = serde_json::from_value(json!({"prompt": format!("say {word}"), "answer": "5"})).unwrap();
    let task = Arc::new(Task::from_row(row, 0, "train").unwrap());
    let outcome = SampleOutcome { reward: Some(0.5), ..SampleOutcome::without_calls(OutcomeKind::Scored, word) };
    let said = |index: u32| {
        let messages = vec![Message::new(Role::Assistant, format!("{word}, sample {index} of step {step}"))];
        Sample::new(task.clone(), index, vec![Trajectory::of(messages)])
    };
    let all: Vec<Sample> = (0..8).map(said).collect();
    let scored = all.iter().map(|sample| ScoredSample {
        step,
        group: 0,
        trained_step: Some(step),
        sample,
        outcome: &outcome,
        advantages: &[Some(0.5)],
    });
    folder.keep_samples(step, scored, |_| None).unwrap();
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn succeed(project: &Project, args: &[&str]) -> String {
    stdout(&project.succeed(&[&["runs"], args].concat()))
}

fn json_of(project: &Project, args: &[&str]) -> Value {
    serde_json::from_str(&succeed(project, args)).unwrap()
}

/// The error of a command that is refused.
fn refused(project: &Project, args: &[&str]) -> String {
    let output = project.run(&[&["runs"], args].concat());
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
    stderr(&output)
}

#[test]
fn runs_are_listed_with_how_far_they_are() {
    let project = Project::empty();
    assert!(refused(&project, &[]).contains("there is no folder runs\nhint: name the folder with the runs"));
    fs::create_dir(project.path("runs")).unwrap();
    assert_eq!((succeed(&project, &[]), succeed(&project, &["--json"])), ("runs has no runs\n".into(), "[]\n".into()));
    let running = taken(&project, "running", "0.1", "a");
    taken(&project, "ended", "0.1", "a").keep_end(EndKind::Ended, None).unwrap();
    taken(&project, "failed", "0.1", "a").keep_end(EndKind::Failed, Some("no memory\nhint: more".into())).unwrap();
    drop(RunFolder::create(&config(&project, "killed"), "[train]\nsteps = 30\n").unwrap());
    fs::remove_file(layout::metrics(&project.path("runs/killed"))).unwrap();
    fs::create_dir_all(project.path("runs/foreign/checkpoints")).unwrap();
    fs::write(project.path("runs/foreign/lock"), "{}").unwrap();

    let said = succeed(&project, &[]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("  run ") && lines[0].ends_with("waits for"), "{said}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{said}");
    let row = |name: &str| {
        let row = lines.iter().find(|line| line.trim_start().starts_with(name)).unwrap();
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("running")[..6], ["running", "running", "2/2", "75.0", "%", "0.5000"]);
    assert_eq!(row("running")[7..], ["reward/answer", "50", "%"]);
    assert_eq!(row("ended")[..3], ["ended", "ended", "2/2"]);
    assert_eq!(row("killed"), ["killed", "stopped", "0/30", "-", "-", "-"]);
    assert_eq!(row("failed:"), ["failed:", "no", "memory"]);
    assert!(!said.contains("foreign"), "{said}");

    let found = json_of(&project, &["--json"]);
    let running_pid = found.as_array().unwrap().iter().find(|run| run["state"] == "running").unwrap();
    assert_eq!(running_pid["writer"]["pid"], std::process::id());
    assert_eq!((&running_pid["accuracy"], &running_pid["last_record"]), (&json!(0.75), &json!(1e9 + 120.0)));
    drop(running);
    assert!(succeed(&project, &[]).lines().next().unwrap().ends_with("last"), "no run under way waits");

    // A run that cannot be read hides no other.
    fs::write(project.path("runs/ended/run.json"), r#"{"format": 9}"#).unwrap();
    let output = project.run(&["runs"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stdout(&output);
    assert!(said.contains("ended    unreadable") && said.contains("running  "), "{said}");
    assert!(said.contains("  ended: the run runs/ended was written by a newer version of gavel (format 9"), "{said}");
    let said = refused(&project, &["runs/failed"]);
    assert!(said.contains("is a run itself\nhint: gavel runs show runs/failed"), "{said}");
}

#[test]
fn a_run_and_its_samples_are_shown() {
    let project = Project::empty();
    taken(&project, "demo", "0.1", "hello").keep_end(EndKind::Ended, None).unwrap();
    let said = succeed(&project, &["show", "runs/demo"]);
    for expected in [
        "runs/demo: ended after step 2 of 2\n",
        "\n  command     gavel train -c run.toml\n",
        "\n  time        2m, 4s of it in steps; logged last ",
        ", on 2001-09-09T01:48:40Z\n",
        "\n  model       base\n",
        "\n  training    grpo, 4 prompts of 8 samples a step, learning rate 0.1\n",
        "\n  rewards     answer × 1.0\n",
        "\n  validation  50.0 % -> 75.0 %; the best 87.5 % after step 1\n",
        "\noutcomes in training\n  answer      16 scored\n",
        "\nthe device waited for\n  reward/answer                       2.0 s\n",
        "\n  step-000002 ",
    ] {
        assert!(said.contains(expected), "{expected:?}: {said}");
    }
    let found = json_of(&project, &["show", "runs/demo", "--json"]);
    assert_eq!((&found["state"], &found["config"]["train"]["steps"]), (&json!("ended"), &json!(2)));
    assert_eq!((&found["metrics"]["loss"], &found["outcomes"]["answer"]["scored"]), (&json!(0.5), &json!(16)));

    let said = succeed(&project, &["show", "runs/demo", "--sample", "2.0.5"]);
    assert!(said.starts_with("runs/demo: recorded by step 2; step 2 trained on it\n"), "{said}");
    assert!(said.contains("\n    response hello, sample 5 of step 2\n"), "{said}");
    assert_eq!(succeed(&project, &["show", "runs/demo", "--sample", "2/5"]), said);
    let found = json_of(&project, &["show", "runs/demo", "--sample", "1/7", "--json"]);
    assert_eq!((&found["sample"], &found["recorded_step"]), (&json!("1.0.7"), &json!(1)));
    assert_eq!(found["trajectories"][0][0]["content"], "hello, sample 7 of step 1");
    for (sample, says) in [
        ("2/8", "runs/demo has no sample 2/8\nhint: step 2 has 8 samples, 2/0 to 2/7"),
        ("3/0", "runs/demo has no sample 3/0\nhint: it has samples of the steps 1 to 2"),
        ("9.9.9", "runs/demo has no sample 9.9.9\nhint: it has samples of the steps 1 to 2"),
        ("a/b", "--sample a/b is no sample\nhint: write an id, such as 300.12.5"),
    ] {
        let said = refused(&project, &["show", "runs/demo", "--sample", sample]);
        assert!(said.contains(says), "{said}");
    }
    let said = refused(&project, &["show", "runs"]);
    assert!(said.contains("runs is no run: it has no configuration and records of one\nhint: "), "{said}");

    // A line of metrics that is being written does not count, and one that is damaged is named.
    let mut file = fs::OpenOptions::new().append(true).open(layout::metrics(&project.path("runs/demo"))).unwrap();
    file.write_all(b"{\"step\":3").unwrap();
    assert!(succeed(&project, &["show", "runs/demo"]).starts_with("runs/demo: ended after step 2 of 2\n"));
    file.write_all(b"\n").unwrap();
    let output = project.run(&["runs", "show", "runs/demo"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout(&output).contains("\n  damaged     1 lines of metrics.jsonl cannot be read\n"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn the_differences_of_two_runs_are_shown() {
    let project = Project::empty();
    drop(taken(&project, "a", "0.1", "hello"));
    drop(taken(&project, "b", "0.2", "hello"));
    let said = succeed(&project, &["diff", "runs/a", "runs/b"]);
    assert!(
        said.starts_with("A  runs/a: ended after step 2\nB  runs/b: ended after step 2\nconfiguration\n"),
        "{said}"
    );
    assert!(said.contains("\n  train.learning_rate  0.1  0.2\n"), "{said}");
    assert!(said.contains("\n  reward/mean   0.500000  0.500000  +0.000000\n"), "{said}");
    assert!(!said.contains("time/step"), "{said}");
    let found = json_of(&project, &["diff", "runs/a", "runs/b", "--json"]);
    assert_eq!(found["configuration"], json!([{"key": "train.learning_rate", "a": 0.1, "b": 0.2}]));
    assert!(found["metrics"].as_array().unwrap().contains(&json!({"name": "time/step", "a": 2.0, "b": 2.0})));
    let said = succeed(&project, &["diff", "runs/a", "runs/a"]);
    assert!(said.contains("their configurations are the same"), "{said}");
}

#[test]
fn a_run_is_exported() {
    let project = Project::empty();
    drop(taken(&project, "demo", "0.1", "hello"));
    let output = project.succeed(&["runs", "export", "runs/demo", "--out", "m.csv"]);
    assert_eq!(stderr(&output), "m.csv: 3 rows of 8 columns\n");
    let table = project.read("m.csv");
    assert!(table.starts_with("step,val/accuracy,time/timestamp,reward/mean,"), "{table}");
    project.succeed(&["runs", "export", "runs/demo", "--trajectories", "--out", "t.parquet"]);
    let output = project.succeed(&["runs", "export", "runs/demo", "--trajectories", "--step", "2", "--out", "t.csv"]);
    assert_eq!(stderr(&output), "t.csv: 8 rows of 22 columns\n");
    assert!(project.read("t.csv").contains("\n2,2.0.7,2,2,0,7,0,"), "{}", project.read("t.csv"));
    let said = refused(&project, &["export", "runs/demo", "--out", "m.txt"]);
    assert!(said.contains("m.txt is of no kind that is written: it must end in .csv or .parquet"), "{said}");
    assert!(!project.path("m.txt").exists());
    // The table of trajectories is read as a dataset is.
    let rows = gavel_data::RowReader::open(&project.path("t.parquet")).unwrap();
    assert_eq!(rows.count(), 16);
}

/// Runs a command on a terminal, with this input.
fn on_terminal(project: &Project, args: &[&str], input: &str) -> String {
    let python = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)";
    let mut command = Command::new("python3");
    command.args(["-c", python, env!("CARGO_BIN_EXE_gavel"), "runs"]).args(args).current_dir(project.path(""));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stdout(&output));
    stdout(&output).replace("\r\n", "\n")
}

#[test]
fn a_run_is_removed_once_that_is_wanted() {
    let project = Project::empty();
    let running = taken(&project, "running", "0.1", "a");
    for name in ["one", "two"] {
        drop(taken(&project, name, "0.1", "a"));
    }
    let exists = |name: &str| project.path("runs").join(name).exists();
    let said = refused(&project, &["rm", "runs/one", "runs/two"]);
    assert!(said.contains("nobody can be asked whether to remove 2 runs\nhint: --yes removes them"), "{said}");
    let said = refused(&project, &["rm", "--yes", "runs/one", "runs/running"]);
    assert!(said.contains("the run runs/running is in use by process "), "{said}");
    for (name, says) in [("runs", "runs is no run"), ("none", "none is no run")] {
        let said = refused(&project, &["rm", "--yes", "runs/one", name]);
        assert!(said.contains(says), "{said}");
    }
    assert!(exists("one") && exists("two"), "nothing is removed if one cannot be");
    let said = on_terminal(&project, &["rm", "runs/one", "runs/two"], "n\ny\n");
    assert!(said.contains("remove runs/one (ended after step 2, ") && said.contains("runs/one is kept"), "{said}");
    assert!(exists("one") && !exists("two"), "{said}");
    drop(running);
    // The same run twice, under two names.
    let output = project.succeed(&["runs", "rm", "-y", "runs/one", "runs/running/", "runs/../runs/one"]);
    assert_eq!(stderr(&output), "removed runs/one\nremoved runs/running/\n");
    assert_eq!(fs::read_dir(project.path("runs")).unwrap().count(), 0);
    // What a process left that was killed while it removed a run.
    drop(taken(&project, ".gavel-removed-7", "0.1", "a"));
    let output = project.succeed(&["runs"]);
    assert_eq!(stdout(&output), "runs has no runs\n");
    let said = stderr(&output);
    assert!(said.contains("runs/.gavel-removed-7 is left of a run") && said.contains("hint: "), "{said}");
}

#[test]
fn a_run_cannot_write_to_the_terminal() {
    let project = Project::empty();
    let mut folder = taken(&project, "evil", "0.1", EVIL);
    let mut numbers = metrics(3, &[("val/accuracy", 0.5), ("time/step", 1.0)]);
    numbers.set(format!("device_wait/{EVIL}"), 0.5);
    numbers.count(format!("outcome/{EVIL}/scored"), 1);
    numbers.set(EVIL, 1.0);
    folder.log(3, &numbers).unwrap();
    let name = format!("runs/{}", EVIL.replace('/', "_"));
    let printed = |args: &[&str]| {
        let output = project.run(&[&["runs"], args].concat());
        let text = stdout(&output) + &stderr(&output);
        let acting: Vec<char> = text.chars().filter(|c| *c != '\n' && !is_seen(*c)).collect();
        assert!(acting.is_empty(), "{args:?} prints {acting:?}: {text}");
        assert!(
            !text.lines().any(|line| line.starts_with("error: forged") || line.starts_with("hint: forged")),
            "{text}"
        );
        assert!(text.contains(r"\u{1b}[2J") || text.contains(r"\u001b[2J"), "{args:?} does not show it: {text}");
    };
    printed(&[]);
    printed(&["--json"]);
    folder.keep_end(EndKind::Failed, Some(EVIL.into())).unwrap();
    drop(folder);
    fs::rename(project.path("runs/evil"), project.path(&name)).unwrap();
    printed(&[]);
    for args in [&["show"][..], &["show", "--json"], &["show", "--sample", "2.0.3"], &["show", "--sample", "2/9"]] {
        printed(&[args, &[name.as_str()]].concat());
    }
    printed(&["show", "--sample", "1/1", "--json", &name]);
    drop(taken(&project, "other", "0.1", "x"));
    printed(&["diff", &name, "runs/other"]);
    printed(&["diff", &name, "runs/other", "--json"]);
    printed(&["export", &name, "--out", &name]);
    printed(&["rm", "--yes", &name]);
    assert!(!project.path(&name).exists());
}
