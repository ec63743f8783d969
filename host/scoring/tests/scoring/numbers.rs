//! Numbers of a row, from the file to the plugin, through a recording and back.

use gavel_data::{RowReader, Sample};
use gavel_plugin::{PluginSpec, SandboxConfig};
use gavel_runs::{SampleWriter, ScoredSample, TaskStore};
use gavel_scoring::recording::{Grouping, PluginSet, Recording, keep_plugin_set};
use gavel_scoring::replay::{Selection, Verification, verify};
use gavel_scoring::{Scorer, WeightedPlugin, completion};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn echo() -> PathBuf {
    let path = root().join("target/guests/echo-metadata.wasm");
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    path
}

fn sandbox() -> SandboxConfig {
    SandboxConfig::with_threads(NonZeroUsize::MIN)
}

fn verified(folder: &Path) -> (Recording, Verification) {
    let recording = Recording::open(folder).unwrap();
    let found = verify(&recording, &Selection::default(), sandbox(), || ()).unwrap();
    (recording, found)
}

/// The samples of a recording.
fn recorded(recording: &Recording) -> Vec<Arc<Sample>> {
    recording.samples(0).unwrap().map(|sample| sample.unwrap().sample).collect()
}

#[test]
fn every_number_is_recorded_and_replayed_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data.jsonl");
    let row =
        r#"{"id":"a","response":"x","answer":4.50,"long":123456789012345678901234567890,"deep":[{"x":-0,"y":1E4}]}"#;
    fs::write(&data, format!("{row}\n")).unwrap();
    let kept = folder.path().join("kept");
    fs::create_dir(&kept).unwrap();

    let scorer =
        Scorer::new(vec![WeightedPlugin::new(PluginSpec::new("echo", echo()), 1.0)], sandbox().into()).unwrap();
    keep_plugin_set(&kept, PluginSet::of(&scorer, Grouping::default(), 0), false).unwrap();
    let (mut tasks, mut samples) = (TaskStore::open(&kept).unwrap(), SampleWriter::create(&kept, 0).unwrap());
    let sample = Arc::new(completion(RowReader::open(&data).unwrap().next().unwrap().unwrap(), "data").unwrap());
    let outcome = scorer.wait(scorer.start_alone(sample.clone(), 1));
    let note = outcome.plugins["echo"].outcome.reason().unwrap();
    assert!(note.contains(r#""ground_truth":"4.50""#) && note.contains(r#"\"y\":1E4"#), "{note}");
    samples
        .write(
            &mut tasks,
            &ScoredSample {
                step: 1,
                group: 0,
                trained_step: None,
                sample: &sample,
                outcome: &outcome,
                advantages: &[],
            },
        )
        .unwrap();
    samples.finish(&mut tasks).unwrap();

    let (recording, found) = verified(&kept);
    assert_eq!((found.verdicts, found.differences), (1, vec![]));
    let again = &recorded(&recording)[0];
    assert_eq!((&again.task, again.hash()), (&sample.task, sample.hash()));
    assert_eq!(serde_json::to_string(&again.task.reference.columns).unwrap(), row);
}

/// `recordings/rounded` was written by a host that rounded numbers, with `gavel
/// score --record`, from the rows
///
/// ```jsonl
/// {"id": "rounded", "response": "x", "answer": 4.50, "long": 123456789012345678901234567890, "deep": [1E5, -0, null]}
/// {"id": "plain", "response": "y", "answer": 4.5, "long": 12345, "deep": [1e-300, true, "\u00e9"], "data_source": "old"}
/// ```
///
/// COMPONENT stands for the hash of the plugin, which is built for the test.
#[test]
fn a_recording_of_rounded_numbers_still_replays() {
    let folder = tempfile::tempdir().unwrap();
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/rounded");
    let component = fs::read(echo()).unwrap();
    let hash = blake3::hash(&component).to_hex().to_string();
    for name in ["tasks.jsonl", "plugins/lineups.json", "trajectories/step-000000.jsonl"] {
        let text = fs::read_to_string(old.join(name))
            .unwrap()
            .replace("COMPONENT", &hash)
            .replace("plugin@0.1.0", "plugin@0.2.0");
        let to = folder.path().join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, text).unwrap();
    }
    fs::write(folder.path().join(format!("plugins/{hash}.wasm")), component).unwrap();

    let (recording, found) = verified(folder.path());
    assert_eq!((found.samples, found.verdicts, found.differences), (2, 2, vec![]));
    let samples = recorded(&recording);
    let columns = |sample: &Sample| serde_json::to_string(&sample.task.reference.columns).unwrap();
    let rounded =
        r#"{"id":"rounded","response":"x","answer":4.5,"long":1.2345678901234568e+29,"deep":[100000.0,-0.0,null]}"#;
    assert_eq!(columns(&samples[0]), rounded);

    // A row whose numbers were not rounded has the hash that it had then.
    let data = folder.path().join("plain.jsonl");
    let row = r#"{"id": "plain", "response": "y", "answer": 4.5, "long": 12345, "deep": [1e-300, true, "\u00e9"], "data_source": "old"}"#;
    fs::write(&data, row).unwrap();
    let now = completion(RowReader::open(&data).unwrap().next().unwrap().unwrap(), "data").unwrap();
    assert_eq!((now.hash(), &now.task), (samples[1].hash(), &samples[1].task));
}
