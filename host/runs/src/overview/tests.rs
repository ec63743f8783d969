use super::*;
use crate::run_folder::{FolderConfig, RunFolder};
use crate::{Details, Retention, State};
use gavel_data::OutcomeKind;

const TEXT: &str = "[train]\nsteps = 2\n";

fn config(dir: &Path) -> FolderConfig {
    FolderConfig { dir: dir.to_owned(), name: "run".into(), tensorboard: false, token_ids: false, command: None }
}

fn metrics(step: u64, numbers: &[(&str, f64)]) -> Metrics {
    let mut metrics = Metrics::of_step(step);
    numbers.iter().for_each(|(name, value)| metrics.set(*name, *value));
    metrics
}

/// A run that took its first step.
fn started(dir: &Path) -> RunFolder {
    let mut folder = RunFolder::create(&config(dir), TEXT).unwrap();
    folder.log(0, &metrics(0, &[("val/accuracy", 0.5), ("time/timestamp", 100.0)])).unwrap();
    let mut first = metrics(1, &[("reward/mean", 0.25), ("time/step", 2.0), ("time/timestamp", 102.0)]);
    for (name, seconds) in [("reward/judge", 0.5), ("saving", 0.25), ("total", 0.75)] {
        first.set(format!("device_wait/{name}"), seconds);
    }
    first.count("outcome/a/b/scored", 3);
    first.count("outcome/a/b/out-of-budget", 1);
    first.count("outcome/a/b/caused-by/response", 1);
    folder.log(1, &first).unwrap();
    folder
}

fn save(folder: &mut RunFolder, step: u64) {
    let state = State { step, ..State::default() };
    let write = |into: &Path| fs::write(into.join("weights"), "12345678").map_err(RunError::io("write", into));
    folder.save_checkpoint(&state, &[], Retention { last: 9, best: false }, write).unwrap();
}

#[test]
fn a_run_is_followed_from_its_start_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = started(dir.path());
    let run = folder.path().to_owned();
    let found = Overview::read(&run).unwrap();
    assert_eq!((found.state, found.writer.clone().unwrap().pid), (RunState::Running, Some(std::process::id())));
    assert_eq!((found.step, found.steps, found.last_record), (Some(1), Some(2), Some(102.0)));
    assert_eq!((found.accuracy, found.reward), (Some(0.5), Some(0.25)));
    assert_eq!(found.waits_for(), Some(("reward/judge", 0.25)));
    // Killed, and then resumed.
    drop(folder);
    assert_eq!(Overview::read(&run).unwrap().state, RunState::Stopped);
    folder = RunFolder::resume(&config(dir.path()), TEXT, &[], |table| table).unwrap();
    folder.keep_config(TEXT).unwrap();
    folder.keep_end(EndKind::Failed, Some("out of memory".into())).unwrap();
    assert_eq!(Overview::read(&run).unwrap().state, RunState::Running, "until the process ends");
    drop(folder);
    let found = Overview::read(&run).unwrap();
    assert_eq!((found.state, found.error.as_deref()), (RunState::Failed, Some("out of memory")));
    folder = RunFolder::resume(&config(dir.path()), TEXT, &[], |table| table).unwrap();
    assert_eq!(Overview::read(&run).unwrap().error.as_deref(), Some("out of memory"), "nothing is changed yet");
    folder.keep_config(TEXT).unwrap();
    assert_eq!(Overview::read(&run).unwrap().error, None);
    folder.log(2, &metrics(2, &[("val/accuracy", 0.25)])).unwrap();
    save(&mut folder, 2);
    folder.keep_end(EndKind::Ended, None).unwrap();
    drop(folder);
    let found = Overview::read(&run).unwrap();
    assert_eq!((found.state, found.accuracy, found.reward), (RunState::Ended, Some(0.25), Some(0.25)));
    assert_eq!((found.step, found.waits_for()), (Some(2), None));

    let details = Details::read(&run).unwrap();
    assert_eq!((details.first_record, details.seconds), (Some(100.0), 2.0));
    assert_eq!((details.first_accuracy, details.best_accuracy), (Some((0, 0.5)), Some((0, 0.5))));
    let outcomes = BTreeMap::from([(OutcomeKind::Scored, 3), (OutcomeKind::OutOfBudget, 1)]);
    assert_eq!(details.outcomes, BTreeMap::from([("a/b".to_owned(), outcomes)]));
    assert_eq!(details.waited, BTreeMap::from([("reward/judge".to_owned(), 0.5), ("saving".to_owned(), 0.25)]));
    assert_eq!(details.checkpoints.iter().map(|found| found.step).collect::<Vec<_>>(), [2]);
    assert!(details.checkpoints[0].bytes > 8 && details.bytes > details.checkpoints[0].bytes);
    assert_eq!((details.starts.len(), details.metrics.get("reward/mean")), (3, Some(0.25)));
}

#[test]
fn a_run_of_an_older_version_is_over_when_it_took_its_steps() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = started(dir.path());
    let run = folder.path().to_owned();
    let now = |run: &Path| Overview::read(run).unwrap().state;
    folder.log(2, &metrics(2, &[])).unwrap();
    drop(folder);
    fs::remove_file(layout::marker(&run)).unwrap();
    assert_eq!(now(&run), RunState::Stopped, "its last step has no checkpoint");
    folder = RunFolder::resume(&config(dir.path()), TEXT, &[], |table| table).unwrap();
    save(&mut folder, 2);
    drop(folder);
    assert_eq!(now(&run), RunState::Ended);
    fs::write(layout::config(&run), "[train]\nsteps = 9\n").unwrap();
    assert_eq!(now(&run), RunState::Stopped);
    fs::write(layout::config(&run), "[train]\nsteps = 9\nstop_accuracy = 0.4\n").unwrap();
    assert_eq!(now(&run), RunState::Ended);
}

#[test]
fn runs_are_listed_and_other_folders_are_not() {
    let dir = tempfile::tempdir().unwrap();
    assert!(list_runs(&dir.path().join("none")).is_err());
    assert!(list_runs(dir.path()).unwrap().is_empty());
    drop(started(dir.path()));
    drop(RunFolder::create(&config(dir.path()), TEXT).unwrap());
    let path = |name: &str| dir.path().join(name);
    // The second run has no numbers; it is as old as its file.
    fs::remove_file(layout::metrics(&path("run-2"))).unwrap();
    drop(RunFolder::create(&config(dir.path()), TEXT).unwrap());
    fs::write(layout::marker(&path("run-3")), r#"{"format":7}"#).unwrap();
    fs::create_dir_all(path("foreign/checkpoints")).unwrap();
    fs::create_dir(path("empty")).unwrap();
    fs::write(path("file"), "").unwrap();
    std::os::unix::fs::symlink(path("none"), path("broken")).unwrap();
    fs::create_dir_all(path("recorded/trajectories")).unwrap();
    crate::write_plugin_sets::<u8>(&path("recorded"), &[]).unwrap();
    let runs = list_runs(dir.path()).unwrap();
    let shown = |run: &ListedRun| {
        let name = run.run.file_name().unwrap().to_str().unwrap().to_owned();
        let state = run.found.as_ref().map_or_else(|error| error.to_string(), |found| found.state.as_str().into());
        (name, state.split('\n').next().unwrap().to_owned())
    };
    let newer = format!(
        "the run {} was written by a newer version of gavel (format 7, and this one reads 1)",
        path("run-3").display()
    );
    let expected = [("run", "stopped"), ("recorded", "recording"), ("run-2", "stopped"), ("run-3", newer.as_str())];
    assert_eq!(runs.iter().map(shown).collect::<Vec<_>>(), expected.map(|(name, state)| (name.into(), state.into())));
}
