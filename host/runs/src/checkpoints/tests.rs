use super::*;
use crate::metrics::Metrics;
use crate::power_cut::after_each_operation;
use crate::run_folder::{FolderConfig, Rewound, RunFolder};
use crate::samples::{SampleReader, ScoredSample};
use gavel_data::files::write_whole;
use gavel_data::{Message, OutcomeKind, Role, Sample, SampleOutcome, Task, Trajectory};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// The last two checkpoints are kept.
const RETENTION: Retention = Retention { last: 2, best: true };

/// A run in `runs/run` below `root`.
fn started(root: &Path) -> (RunFolder, Checkpoints) {
    let config = FolderConfig {
        dir: root.join("runs"),
        name: "run".into(),
        tensorboard: false,
        token_ids: false,
        command: None,
    };
    let folder = RunFolder::create(&config, "seed = 1\n").unwrap();
    let checkpoints = folder.checkpoints();
    (folder, checkpoints)
}

fn state(step: u64) -> State {
    State { step, first_accuracy: Some(0.25), ..State::default() }
}

/// Stands in for the policy: some files are synced when they are written,
/// others are not.
fn write(step: u64) -> impl Fn(&Path) -> Result<()> {
    move |folder| {
        for (name, is_synced) in [(OPTIMIZER, true), ("model.safetensors", true), ("config.json", false)] {
            let (path, content) = (folder.join(name), format!("{name} of step {step}").repeat(9));
            let written = if is_synced { write_whole(&path, content.as_bytes()) } else { fs::write(&path, content) };
            written.map_err(RunError::io("write", &path))?;
        }
        Ok(())
    }
}

fn sample(step: u64) -> Sample {
    let (prompt, answer) = (Message::new(Role::User, "q"), Message::new(Role::Assistant, format!("{step}")));
    let task = Task { id: format!("t/{step}"), data_source: None, prompt: vec![prompt], reference: Default::default() };
    let trajectory = Trajectory::of(vec![answer]);
    Sample::new(Arc::new(task), 0, vec![trajectory])
}

/// A step as a run takes it; a checkpoint every second one.
fn step(folder: &mut RunFolder, step: u64) {
    let (sample, outcome) = (sample(step), SampleOutcome::without_calls(OutcomeKind::Scored, ""));
    let scored =
        ScoredSample { step: 1, group: 0, trained_step: Some(1), sample: &sample, outcome: &outcome, advantages: &[] };
    folder.keep_samples(step, [scored], |_| None).unwrap();
    folder.log(step, &Metrics::of_step(step)).unwrap();
    if step.is_multiple_of(2) {
        folder.save_checkpoint(&state(step), &[], RETENTION, write(step)).unwrap();
    }
}

#[test]
fn a_checkpoint_has_its_name_after_all_that_it_relies_on_is_on_the_disk() {
    let root = tempfile::tempdir().unwrap();
    let (mut folder, _) = started(root.path());
    let run = folder.path().to_owned();
    let (operations, _) = after_each_operation(&run, |_| (), || step(&mut folder, 2));
    let expected = [
        // The step's samples, for which the run does not wait.
        "sync folder .",
        "rename trajectories/step-000002.jsonl.partial to trajectories/step-000002.jsonl",
        // The files that the checkpoint relies on.
        "sync tasks.jsonl",
        "sync folder .",
        "sync trajectories/step-000002.jsonl",
        "sync folder trajectories",
        "sync metrics.jsonl",
        "sync folder .",
        // The files that the policy syncs when it writes them.
        "sync checkpoints/step-000002.partial/optimizer.safetensors.partial",
        "rename checkpoints/step-000002.partial/optimizer.safetensors.partial to checkpoints/step-000002.partial/optimizer.safetensors",
        "sync folder checkpoints/step-000002.partial",
        "sync checkpoints/step-000002.partial/model.safetensors.partial",
        "rename checkpoints/step-000002.partial/model.safetensors.partial to checkpoints/step-000002.partial/model.safetensors",
        "sync folder checkpoints/step-000002.partial",
        // Everything in the folder, the folder, its name.
        "sync checkpoints/step-000002.partial/BLAKE3SUMS",
        "sync checkpoints/step-000002.partial/config.json",
        "sync checkpoints/step-000002.partial/model.safetensors",
        "sync checkpoints/step-000002.partial/optimizer.safetensors",
        "sync checkpoints/step-000002.partial/state.json",
        "sync folder checkpoints/step-000002.partial",
        "rename checkpoints/step-000002.partial to checkpoints/step-000002",
        "sync folder checkpoints",
    ];
    assert_eq!(operations, expected);
}

#[test]
fn a_checkpoint_that_fails_leaves_the_last_one_alone() {
    let root = tempfile::tempdir().unwrap();
    let (mut folder, checkpoints) = started(root.path());
    (1..=2).for_each(|at| step(&mut folder, at));
    let fails = |folder: &Path| {
        let path = folder.join("model.safetensors");
        fs::write(&path, "half").unwrap();
        Err(RunError::io("write", &path)(std::io::ErrorKind::StorageFull.into()))
    };
    let error = folder.save_checkpoint(&state(4), &[], RETENTION, fails).unwrap_err().to_string();
    assert!(error.contains("model.safetensors: no storage space\nhint: the disk is full"), "{error}");
    assert_eq!(checkpoints.names().unwrap(), ["step-000002"]);
    assert_eq!(checkpoints.find(None).unwrap().1, state(2));
    // There is room again.
    folder.save_checkpoint(&state(4), &[], RETENTION, write(4)).unwrap();
    assert_eq!(checkpoints.find(None).unwrap().1, state(4));
}

/// The power may fail after any operation of seven steps. Then the old or the
/// new checkpoint is found, whole, with everything that was recorded up to it.
#[test]
fn a_power_cut_leaves_the_old_checkpoint_or_the_new_one() {
    let root = tempfile::tempdir().unwrap();
    let (mut folder, kept) = started(root.path());
    let run = folder.path().to_owned();
    let now = Rc::new(Cell::new(0));
    let (real, at) = (run.clone(), now.clone());
    let read = |run: &Path, name: &str| fs::read_to_string(run.join(name)).unwrap();
    let check = move |left: &Path| {
        // The step under way, and the step of the last checkpoint before it.
        let (now, old) = (at.get(), (at.get() - 1) / 2 * 2);
        let found = match Checkpoints::new(left).find(None) {
            Ok((_, found)) => found,
            Err(RunError::NoCheckpoint { .. }) if old == 0 => return,
            Err(error) => panic!("step {now}: {error}"),
        };
        assert!(found == state(old) || found == state(now) && now % 2 == 0, "step {now}: {found:?}");
        for step in Checkpoints::new(left).steps().unwrap() {
            Checkpoints::new(left).check(step).unwrap();
        }
        let metrics = read(left, "metrics.jsonl");
        let tasks = read(left, "tasks.jsonl");
        for step in 1..=found.step {
            assert!(metrics.contains(&format!("{{\"step\":{step}}}\n")), "step {now}: no metrics of {step}: {metrics}");
            let name = format!("trajectories/step-{step:06}.jsonl");
            let samples = read(left, &name);
            assert_eq!(samples, read(&real, &name));
            let line: serde_json::Value = serde_json::from_str(&samples).unwrap();
            let mut tasks = tasks.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            assert!(tasks.any(|task| task["hash"] == line["task"]), "step {now}: no task of {step}");
        }
    };
    now.set(1);
    let (operations, looked_at) = after_each_operation(&run, check, || {
        for number in 1..=7 {
            now.set(number);
            step(&mut folder, number);
        }
    });
    assert!(operations.len() > 70 && looked_at > 150, "{} operations, {looked_at} outcomes", operations.len());
    assert_eq!(kept.steps().unwrap(), [4, 6]);
}

/// A change to the bytes of a file.
type Damage = fn(&mut Vec<u8>);

#[test]
fn a_file_that_is_not_what_was_saved_is_named_with_an_older_checkpoint() {
    let root = tempfile::tempdir().unwrap();
    let (mut folder, kept) = started(root.path());
    (1..=4).for_each(|number| step(&mut folder, number));
    let newest = kept.path(4);
    let names = fs::read_dir(&newest).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    assert_eq!(names.len(), 5, "{names:?}");
    let damages: [(&str, Damage); 3] = [
        ("a bit", |bytes| bytes[7] ^= 16),
        ("the end", |bytes| bytes.truncate(bytes.len() / 2)),
        ("all", |bytes| bytes.clear()),
    ];
    for name in &names {
        let path = newest.join(name);
        let whole = fs::read(&path).unwrap();
        for (what, damage) in damages {
            let mut bytes = whole.clone();
            damage(&mut bytes);
            fs::write(&path, bytes).unwrap();
            let Err(error) = kept.find(None) else { panic!("{name}: {what} was not missed") };
            let RunError::DamagedCheckpoint { path: checkpoint, file, whole: Some(2), .. } = &error else {
                panic!("{name}, {what}: {error}")
            };
            assert_eq!(checkpoint, &newest);
            // A hash that differs means a file that differs.
            assert!(*file == path || name == "BLAKE3SUMS", "{name}, {what}: {error}");
        }
        fs::remove_file(&path).unwrap();
        // Without hashes nothing is compared.
        assert!(kept.find(None).is_err() || name == "BLAKE3SUMS", "{name} was not missed");
        fs::write(&path, whole).unwrap();
    }
    assert_eq!(kept.find(None).unwrap().1, state(4));
    assert_eq!(kept.find(Some(2)).unwrap().1, state(2));
    let error = kept.find(Some(3)).unwrap_err().to_string();
    let run = folder.path().display();
    assert_eq!(
        error,
        format!("the run {run} has no checkpoint of step 3\nhint: --resume-from takes one of these steps: 2, 4")
    );

    for step in [2, 4] {
        fs::write(kept.path(step).join("config.json"), "").unwrap();
    }
    let error = kept.find(None).unwrap_err().to_string();
    let expected = format!(
        "checkpoint {0} is damaged: {0}/config.json: its content is not what was saved (its hash differs)\nhint: the run has no older checkpoint that is whole: leave --resume out to start a new run beside it",
        newest.display()
    );
    assert_eq!(error, expected);
}

#[test]
fn checkpoints_without_hashes_are_as_whole_as_can_be_seen() {
    let root = tempfile::tempdir().unwrap();
    let (mut folder, kept) = started(root.path());
    let tensors = |folder: &Path| -> Result<()> {
        for name in [OPTIMIZER, "model.safetensors"] {
            fs::write(folder.join(name), b"\x08\0\0\0\0\0\0\0{}      ").unwrap();
        }
        Ok(())
    };
    folder.save_checkpoint(&state(2), &[], RETENTION, tensors).unwrap();
    folder.save_checkpoint(&state(4), &[], RETENTION, tensors).unwrap();
    for step in [2, 4] {
        fs::remove_file(kept.path(step).join("BLAKE3SUMS")).unwrap();
    }
    assert_eq!(kept.find(None).unwrap().1, state(4));
    fs::write(kept.path(4).join("model.safetensors"), b"\x08\0\0\0\0\0\0\0{}").unwrap();
    let error = kept.find(None).unwrap_err();
    let RunError::DamagedCheckpoint { file, whole: Some(2), .. } = &error else { panic!("{error}") };
    assert!(file.ends_with("step-000004/model.safetensors"), "{error}");
}

#[test]
fn the_state_of_another_step_is_damage() {
    let root = tempfile::tempdir().unwrap();
    let (mut folder, kept) = started(root.path());
    (1..=2).for_each(|number| step(&mut folder, number));
    for step in [0, 3, u64::MAX] {
        let checkpoint = kept.path(2);
        fs::write(checkpoint.join(STATE), serde_json::to_vec(&state(step)).unwrap()).unwrap();
        fs::remove_file(checkpoint.join("BLAKE3SUMS")).unwrap();
        sums::write(&checkpoint).unwrap();
        let error = kept.find(None).unwrap_err().to_string();
        assert!(error.contains(&format!("state.json: it is the state of step {step}\n")), "{error}");
    }
}

#[test]
fn validations_are_kept_apart_and_forgotten_with_their_steps() {
    let root = tempfile::tempdir().unwrap();
    let (mut folder, _) = started(root.path());
    let outcome = SampleOutcome::without_calls(OutcomeKind::Scored, "");
    for number in [0, 2, 4] {
        let answers = [sample(number), sample(9)];
        let scored = (0..).zip(&answers).map(|(group, sample)| ScoredSample {
            step: number,
            group,
            trained_step: None,
            sample,
            outcome: &outcome,
            advantages: &[],
        });
        folder.keep_validation(number, scored, |_| None).unwrap();
    }
    let validation = layout::validation(folder.path());
    let ids = |run: &Path| -> Vec<String> {
        let reader = SampleReader::open(run).unwrap();
        let steps: Vec<u64> = reader.steps().collect();
        let samples = steps.into_iter().flat_map(|step| reader.samples(step).unwrap());
        let ids = samples.map(|sample| sample.unwrap().id).collect();
        assert_eq!(reader.damage().len(), 0);
        ids
    };
    assert_eq!(ids(&validation), ["0.0.0", "0.1.0", "2.0.0", "2.1.0", "4.0.0", "4.1.0"]);
    assert_eq!(ids(folder.path()), [""; 0]);
    folder.rewind(2).unwrap();
    assert_eq!(ids(&validation), ["0.0.0", "0.1.0", "2.0.0", "2.1.0"]);
    assert_eq!(crate::tasks::read_tasks(&validation).unwrap().0.len(), 4);
}

#[test]
fn what_comes_after_a_step_is_forgotten_with_what_was_left_half_done() {
    let root = tempfile::tempdir().unwrap();
    let (mut folder, kept) = started(root.path());
    (1..=5).for_each(|number| step(&mut folder, number));
    for left in ["step-000002.partial", "step-000009.partial"] {
        fs::create_dir(layout::checkpoints(folder.path()).join(left)).unwrap();
    }
    let rewound = folder.rewind(2).unwrap();
    assert_eq!(rewound, Rewound { metrics: 3, samples: 3, checkpoints: vec![4], damaged: 0 });
    let said = "3 lines of metrics, the trajectories of 3 steps, the checkpoints of steps 4";
    assert_eq!(rewound.later().as_deref(), Some(said));
    assert_eq!(kept.names().unwrap(), ["step-000002"]);
    folder.log(3, &Metrics::of_step(3)).unwrap();
    let metrics = layout::metrics(folder.path());
    assert_eq!(fs::read_to_string(&metrics).unwrap(), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");

    fs::write(&metrics, b"{\"step\":1}\n\0\0\xff\n{\"step\":2}\n").unwrap();
    assert_eq!(folder.rewind(2).unwrap(), Rewound { damaged: 1, ..Rewound::default() });
    assert_eq!(fs::read_to_string(&metrics).unwrap(), "{\"step\":1}\n{\"step\":2}\n");
    drop(folder);

    fs::remove_dir_all(kept.path(2)).unwrap();
    let error = kept.find(None).unwrap_err().to_string();
    assert!(error.ends_with("has no checkpoint to resume from\nhint: leave --resume out to start a new run beside it"));
}
