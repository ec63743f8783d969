//! The files of a recording, up to their replay. The input is all of them in
//! one text: a line `--- NAME` comes before each.

use gavel_data::{OutcomeKind, SampleOutcome};
use gavel_plugin::{SandboxConfig, Tape};
use gavel_runs::{RecordedSample, SampleWriter, ScoredSample, TaskStore, layout};
use gavel_scoring::recording::Recording;
use gavel_scoring::replay::{Selection, compare};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

/// The files of a recording; a part with another name is ignored.
const FILES: [&str; 5] = [
    "plugins/lineups.json",
    "tasks.jsonl",
    "trajectories/step-000001.jsonl",
    "trajectories/step-000002.jsonl",
    "tape/index.jsonl",
];

pub(crate) fn read(input: &[u8]) -> bool {
    let folder = tempfile::tempdir().unwrap();
    lay_out(input, folder.path());
    if let Err(error) = Tape::replay(&layout::tape(folder.path())) {
        drop(error.to_string());
    }
    let recording = match Recording::open(folder.path()) {
        Ok(recording) => recording,
        Err(error) => {
            drop(error.to_string());
            return false;
        }
    };
    let again = tempfile::tempdir().unwrap();
    let mut samples = 0;
    for step in recording.steps() {
        let _ = recording.plugin_set(step);
        for sample in recording.samples(step).into_iter().flatten() {
            match sample {
                Ok(sample) => {
                    check_sample(&sample, again.path());
                    samples += 1;
                }
                Err(error) => drop(error.to_string()),
            }
        }
    }
    // No plugin is replaced, so that none runs.
    let config = SandboxConfig::with_threads(NonZeroUsize::MIN);
    match compare(&recording, &Selection::default(), &[], config, 10, || {}) {
        Ok(found) => drop(serde_json::to_string(&found).unwrap()),
        Err(error) => drop(error.to_string()),
    }
    samples > 0
}

fn lay_out(input: &[u8], folder: &Path) {
    for name in ["plugins", "trajectories", "tape"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    let mut parts: Vec<(&str, Vec<u8>)> = Vec::new();
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        let name = line.strip_prefix(b"--- ").and_then(|rest| std::str::from_utf8(rest).ok());
        match (name, parts.last_mut()) {
            (Some(name), _) => parts.push((name.trim_end(), Vec::new())),
            (None, Some((_, content))) => content.extend_from_slice(line),
            (None, None) => {}
        }
    }
    for (name, content) in parts {
        if FILES.contains(&name) {
            fs::write(folder.join(name), content).unwrap();
        }
    }
}

/// A sample that is recorded once more is the same input.
fn check_sample(sample: &RecordedSample, folder: &Path) {
    let _ = sample.seed();
    let outcome = SampleOutcome::without_calls(OutcomeKind::Abstained, "");
    let scored = ScoredSample {
        step: sample.step,
        group: sample.group,
        trained_step: sample.trained_step,
        sample: &sample.sample,
        outcome: &outcome,
        advantages: &[],
    };
    let mut tasks = TaskStore::open(folder).unwrap();
    let mut writer = SampleWriter::create(folder, sample.step).unwrap();
    writer.write(&mut tasks, &scored).unwrap();
    writer.finish(&mut tasks).unwrap();
    // A sample alone in its step: a task alone is not a recording.
    fs::create_dir_all(folder.join("plugins")).unwrap();
    fs::write(folder.join("plugins/lineups.json"), PLUGIN_SET).unwrap();
    let recording = Recording::open(folder).unwrap();
    let back = recording.samples(sample.step).unwrap().next().unwrap().unwrap();
    assert_eq!(back.sample.record(), sample.sample.record());
    assert_eq!(back.sample.hash(), sample.sample.hash());
}

const PLUGIN_SET: &str = r#"[{"from_step": 0, "grouping": {"on_outcome": {}, "min_scored": 0}, "plugins": []}]"#;
