//! How long it takes to find one sample of a run, with the index and without it: reading the step's file and all tasks, as
//! every reader did before there was an index. Writes a run of its own, by default 100,000 trajectories in 10 steps:
//! `find_sample [TRAJECTORIES [STEPS [FOLDER]]]`. In FOLDER, the run is kept, and used again.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use gavel_data::{Evaluation, Message, Outcome, OutcomeKind, Role, Sample, SampleOutcome, Score, Task, Trajectory};
use gavel_runs::{SampleReader, SampleWriter, ScoredSample, TaskStore, layout};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The samples of a task in a step.
const GROUP: u32 = 8;
/// The bytes of a response: with its verdict, a line has about 2 KB.
const RESPONSE: usize = 1200;

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let mut number = |default: u64| args.next().map_or(default, |arg| arg.parse().unwrap());
    let (trajectories, steps) = (number(100_000), number(10));
    let temporary = tempfile::tempdir().unwrap();
    let folder = args.next().map_or(temporary.path().to_owned(), Into::into);
    if !layout::trajectories(&folder).is_dir() {
        write(&folder, trajectories, steps);
    }
    let per_step = trajectories / steps;
    println!("{trajectories} trajectories in {steps} steps, {} MB", bytes(&folder) / 1_000_000);
    let wanted = |step: u64| format!("{step}.{}.3", per_step / u64::from(GROUP) / 2);
    let (middle, last) = (steps.div_ceil(2), steps);
    time("without the index", || {
        let reader = SampleReader::open(&folder).unwrap();
        assert!(reader.samples(middle).unwrap().any(|sample| sample.unwrap().id == wanted(middle)));
    });
    let find = |step: u64| {
        let reader = SampleReader::open_for_few(&folder).unwrap();
        let (found, sample) = reader.find(&wanted(step), None).unwrap().unwrap();
        assert_eq!((found, sample.id), (step, wanted(step)));
    };
    let _ = std::fs::remove_dir_all(layout::index(&folder));
    time("the first sample: its step and all tasks are indexed", || find(middle));
    time("another step: it is indexed", || find(last));
    time("a sample of a step that is indexed", || find(middle));
    time("sample 512 of that step, by its number", || {
        let reader = SampleReader::open_for_few(&folder).unwrap();
        assert!(reader.nth(middle, 512).unwrap().is_some());
    });
    println!("the index has {} kB", bytes(&layout::index(&folder)) / 1000);
}

fn time(what: &str, work: impl FnOnce()) {
    let start = Instant::now();
    work();
    println!("{:>10.2} ms  {what}", start.elapsed().as_secs_f64() * 1e3);
}

/// Each group has its own task, as in a run that sees each row once.
fn write(folder: &Path, trajectories: u64, steps: u64) {
    let mut tasks = TaskStore::open(folder).unwrap();
    let (groups, outcome) = (trajectories / steps / u64::from(GROUP), outcome());
    for step in 1..=steps {
        let mut writer = SampleWriter::create(folder, step).unwrap();
        for group in 0..groups {
            let row =
                serde_json::json!({"prompt": format!("{step} and {group}: {}", "why ".repeat(100)), "answer": "1"});
            let row = serde_json::from_value(row).unwrap();
            let task = Arc::new(Task::from_row(row, (step * groups + group) as usize, "train").unwrap());
            for index in 0..GROUP {
                let response = format!("{index} {}", "x".repeat(RESPONSE));
                let trajectory = Trajectory::of(vec![Message::new(Role::Assistant, response)]);
                let sample = Sample::new(task.clone(), index, vec![trajectory]);
                let scored = ScoredSample {
                    step,
                    group,
                    trained_step: Some(step),
                    sample: &sample,
                    outcome: &outcome,
                    advantages: &[Some(0.5)],
                };
                writer.write(&mut tasks, &scored).unwrap();
            }
        }
        writer.finish(&mut tasks).unwrap();
    }
    tasks.sync().unwrap();
}

fn outcome() -> SampleOutcome {
    let plugins = [("answer".to_owned(), Evaluation::without_call(Outcome::Scored(Score::default())))].into();
    SampleOutcome { reward: Some(0.0), plugins, ..SampleOutcome::without_calls(OutcomeKind::Scored, "") }
}

/// The bytes of the files in a folder.
fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap());
    let bytes = |path: &Path, found: std::fs::Metadata| if found.is_dir() { bytes(path) } else { found.len() };
    entries.map(|entry| bytes(&entry.path(), entry.metadata().unwrap())).sum()
}
