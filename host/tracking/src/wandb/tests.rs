use super::*;
use gavel_runs::MetricsFollower;
use serde_json::{Value, json};
use std::fs;

fn line(step: u64, value: f64) -> String {
    format!(
        "{{\"step\":{step},\"reward/mean\":{value},\"a.b/c\":{step},\"time/timestamp\":{}}}\n",
        1_700_000_000 + step
    )
}

/// A run with a configuration, its state and its feed.
struct Run {
    folder: tempfile::TempDir,
    sent: Sent,
}

impl Run {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        fs::write(layout::config(run), "seed = 7\n[train]\nsteps = 3\nlearning_rate = 1e-3\n").unwrap();
        let sent = Sent { id: "abcdef0123456789".into(), ..Sent::nothing(run, "wandb gavel", 1_700_000_000.5) };
        Self { folder, sent }
    }

    /// A process that follows the run; each call looks once.
    fn process(&self) -> (Wandb, Feed) {
        let table = TrackerTable::new(crate::table::TrackerKind::Wandb);
        (Wandb::new(&table), Feed::new(self.folder.path()))
    }

    fn advance(&mut self, (wandb, feed): &mut (Wandb, Feed)) -> Progress {
        let about = About::read(self.folder.path()).unwrap();
        let ending = about.ending(true).unwrap();
        wandb.advance(&about, "wandb", &mut self.sent, feed, ending.as_ref()).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("wandb/offline-run-20231114_221320-abcdef01/run-abcdef01.wandb")
    }

    fn records(&self) -> Vec<Record> {
        let records = log_file::read(&fs::read(self.path()).unwrap());
        let records: Vec<_> = records.iter().map(|record| Record::decode(&record[..]).unwrap()).collect();
        let numbers: Vec<_> = records.iter().map(|record| record.num).collect();
        assert_eq!(numbers, (1..=records.len() as i64).collect::<Vec<_>>());
        records
    }

    fn history(&self) -> Vec<Value> {
        let history = self.records().into_iter().filter_map(|record| record.history);
        history
            .map(|history| {
                let step = history.step.unwrap().num;
                let items: serde_json::Map<_, _> = history.item.into_iter().map(value).collect();
                assert_eq!(items["_step"], step);
                items.into()
            })
            .collect()
    }

    fn exits(&self) -> Vec<RunExitRecord> {
        self.records().into_iter().filter_map(|record| record.exit).collect()
    }
}

fn value(item: Item) -> (String, Value) {
    assert!(item.key.is_empty() != item.nested_key.is_empty());
    let name = if item.key.is_empty() { item.nested_key.join(".") } else { item.key };
    (name, serde_json::from_str(&item.value_json).unwrap())
}

#[test]
fn the_file_has_the_run_its_configuration_its_numbers_and_its_end() {
    let mut run = Run::new();
    let mut process = run.process();
    fs::write(layout::metrics(run.folder.path()), line(1, 0.25) + "{\"step\":2,\"rew").unwrap();
    assert_eq!(run.advance(&mut process), Progress::CaughtUp);
    let records = run.records();
    let producer = records[0].header.as_ref().unwrap().version_info.as_ref().unwrap().producer.clone();
    assert!(producer.starts_with("gavel-"), "{producer}");
    let record = records[1].run.as_ref().unwrap();
    assert_eq!((record.run_id.as_str(), record.project.as_str()), ("abcdef01", "gavel"));
    assert_eq!(record.start_time, Some(Timestamp { seconds: 1_700_000_000, nanos: 500_000_000 }));
    let config: serde_json::Map<_, _> = record.config.clone().unwrap().update.into_iter().map(value).collect();
    assert_eq!(Value::from(config), json!({"_wandb": {}, "seed": 7, "train": {"steps": 3, "learning_rate": 0.001}}));
    let first = json!({"reward/mean": 0.25, "a.b/c": 1.0, "_step": 1, "_timestamp": 1_700_000_001.0, "_runtime": 0.5});
    assert_eq!(run.history(), std::slice::from_ref(&first));
    // Marked as sent by `wandb sync`, and then the run goes on.
    let marker = run.path().with_extension("wandb.synced");
    fs::write(&marker, "").unwrap();
    fs::write(layout::metrics(run.folder.path()), line(1, 0.25) + &line(2, 0.5) + &line(3, 1.0)).unwrap();
    fs::write(layout::ending(run.folder.path()), "{\"kind\":\"failed\",\"at\":1700000010.0,\"error\":\"x\"}").unwrap();
    assert_eq!(run.advance(&mut process), Progress::CaughtUp);
    assert_eq!(run.advance(&mut process), Progress::CaughtUp);
    assert!(!marker.exists());
    assert_eq!(run.history().len(), 3);
    assert_eq!(run.exits(), [RunExitRecord { exit_code: 1, runtime: 9 }]);
    let summary = run.records().into_iter().filter_map(|record| record.summary).next_back().unwrap();
    let summary: serde_json::Map<_, _> = summary.update.into_iter().map(value).collect();
    assert_eq!((&summary["reward/mean"], &summary["_step"]), (&json!(1.0), &json!(3)));
    assert_eq!((run.sent.end, run.sent.last.as_ref().unwrap().step), (Some(1_700_000_010.0), 3));
}

#[test]
fn a_resumed_run_has_no_step_twice_and_no_end_between() {
    let mut run = Run::new();
    let (metrics, ending) = (layout::metrics(run.folder.path()), layout::ending(run.folder.path()));
    fs::write(&metrics, (1..=700).map(|step| line(step, 0.5)).collect::<String>()).unwrap();
    fs::write(&ending, "{\"kind\":\"stopped\",\"at\":1700000800.0}").unwrap();
    let mut process = run.process();
    while run.advance(&mut process) == Progress::More {}
    assert_eq!((run.history().len(), run.exits()[0].exit_code), (700, 130));
    // A process that finds everything written writes nothing.
    let before = fs::metadata(run.path()).unwrap().modified().unwrap();
    run.advance(&mut run.process());
    assert_eq!(fs::metadata(run.path()).unwrap().modified().unwrap(), before);
    // Resumed after step 600, with other numbers.
    fs::remove_file(&ending).unwrap();
    let resumed = (1..=601).map(|step| line(step, if step > 600 { 0.75 } else { 0.5 })).collect::<String>();
    gavel_data::files::write_whole(&metrics, resumed.as_bytes()).unwrap();
    let mut process = run.process();
    while run.advance(&mut process) == Progress::More {}
    let history = run.history();
    assert_eq!((history.len(), &history[600]["reward/mean"], run.exits().len()), (601, &json!(0.75), 0));
    assert_eq!(run.sent.end, None);
    // A validation is added to the last line while the process goes on.
    let more = (1..=601).map(|step| line(step, 0.5)).collect::<String>() + "{\"step\":602,\"val/accuracy\":1}\n";
    gavel_data::files::write_whole(&metrics, more.as_bytes()).unwrap();
    while run.advance(&mut process) == Progress::More {}
    let history = run.history();
    assert_eq!((history.len(), &history[600]["reward/mean"]), (602, &json!(0.5)));
    assert_eq!(history[601]["val/accuracy"], 1.0);
}

#[test]
fn a_file_that_cannot_be_written_is_written_again() {
    let mut run = Run::new();
    fs::write(layout::metrics(run.folder.path()), line(1, 0.25)).unwrap();
    // A link in the place of the file would lead elsewhere.
    let partial = gavel_data::files::partial(&run.path());
    fs::create_dir_all(partial.parent().unwrap()).unwrap();
    let outside = run.folder.path().join("precious");
    fs::write(&outside, "precious").unwrap();
    std::os::unix::fs::symlink(&outside, &partial).unwrap();
    let (mut wandb, mut feed) = run.process();
    let about = About::read(run.folder.path()).unwrap();
    let error = wandb.advance(&about, "wandb", &mut run.sent, &mut feed, None).unwrap_err().to_string();
    assert!(error.contains("it is a link"), "{error}");
    assert_eq!(fs::read_to_string(outside).unwrap(), "precious");
    fs::remove_file(partial).unwrap();
    run.advance(&mut (wandb, feed));
    assert_eq!(run.history().len(), 1);
    assert_eq!(MetricsFollower::new(run.folder.path()).read_new().unwrap().steps.len(), 1);
}
