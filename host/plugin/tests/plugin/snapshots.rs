//! A call gives the same verdict whether it starts from a snapshot or runs
//! `init` itself, and whether the code was compiled now or comes from disk.

use gavel_data::{Message, Outcome, Role, Sample, Task, Trajectory};
use gavel_plugin::{Grants, Limits, LoadError, Plugin, PluginSpec, Sandbox, SandboxConfig, inspect};
use serde_json::{Value, json};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

fn guest(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/guests/{name}.wasm"));
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    path
}

fn sandbox(cache: &TempDir) -> Sandbox {
    let threads = NonZeroUsize::new(2).unwrap();
    let cache = Some(cache.path().join("components"));
    Sandbox::new(SandboxConfig { cache, ..SandboxConfig::with_threads(threads) }).unwrap()
}

async fn load(sandbox: &Sandbox, name: &str, params: Value, limits: Limits) -> Result<Plugin, LoadError> {
    let params = serde_json::from_value(params).unwrap();
    Plugin::load(sandbox, PluginSpec { params, limits, ..PluginSpec::new(name, guest(name)) }).await
}

async fn random(sandbox: &Sandbox, params: Value) -> Plugin {
    load(sandbox, "random", params, Limits::default()).await.unwrap()
}

fn sample() -> Arc<Sample> {
    let row = json!({"prompt": "Order: 3 1", "data_source": "digits", "answer": "1 3"});
    let task = Task::from_row(serde_json::from_value(row).unwrap(), 0, "train").unwrap();
    let trajectory = Trajectory::of(vec![Message::new(Role::Assistant, "1 3")]);
    Arc::new(Sample::new(Arc::new(task), 0, vec![trajectory]))
}

async fn note(plugin: &Plugin, seed: u64) -> String {
    match plugin.score(&sample(), seed).await.outcome {
        Outcome::Scored(score) => score.note.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_snapshot_changes_no_verdict() {
    let cache = tempfile::tempdir().unwrap();
    let sandbox = sandbox(&cache);
    for early in [false, true] {
        let warm = random(&sandbox, json!({"early": early})).await;
        assert_eq!(warm.no_snapshot(), None);
        // It prints in `init`, and a stream that is open cannot be part of a snapshot.
        let cold = random(&sandbox, json!({"early": early, "loud": true})).await;
        assert!(cold.no_snapshot().unwrap().contains("handles"), "{:?}", cold.no_snapshot());
        let mut notes = Vec::new();
        for seed in [1, 2] {
            notes.push(note(&warm, seed).await);
            assert_eq!(note(&warm, seed).await, notes[notes.len() - 1]);
            assert_eq!(note(&cold, seed).await, notes[notes.len() - 1], "early: {early}");
        }
        // The random numbers of a call follow from its own seed. The random numbers of `init` are the same for all
        // calls.
        assert_eq!(notes[0] == notes[1], early);
    }
}

#[tokio::test]
async fn a_call_from_a_snapshot_sees_nothing_of_the_last_one() {
    let cache = tempfile::tempdir().unwrap();
    let plugin = load(&sandbox(&cache), "stateful", json!({}), Limits::default()).await.unwrap();
    assert_eq!(plugin.no_snapshot(), None);
    for _ in 0..3 {
        assert_eq!(plugin.score(&sample(), 1).await.outcome.score(), Some(1.0));
    }
}

#[tokio::test]
async fn an_instance_that_is_set_back_gives_what_a_new_one_gives() {
    let cache = tempfile::tempdir().unwrap();
    let sandbox = sandbox(&cache);
    // With memory of its own for 100 kB, and with more than can be set back.
    for grows_by in [0, 100_000, 8 << 20] {
        let params = json!({"fills": 8 << 20, "grows_by": grows_by, "recalls": true});
        let limits = Limits { fuel: Some(1 << 40), ..Limits::default() };
        let spec = PluginSpec {
            params: serde_json::from_value(params).unwrap(),
            limits,
            ..PluginSpec::new("large", guest("stateful"))
        };
        assert!(inspect(&sandbox, spec.clone()).await.unwrap().set_back);
        let plugin = Plugin::load(&sandbox, spec).await.unwrap();
        let mut first = None;
        for call in 0..20 {
            let evaluation = plugin.score(&sample(), 1).await;
            let Outcome::Scored(score) = evaluation.outcome else { panic!("{:?}", evaluation.outcome) };
            // It was called once, and the call before was none.
            assert_eq!((score.value, score.note.as_deref()), (1.0, Some("")));
            let used = (evaluation.usage.fuel.unwrap(), evaluation.usage.peak_memory);
            assert_eq!(used, *first.get_or_insert(used), "call {call} with {grows_by} bytes");
        }
    }
    let small = PluginSpec::new("small", guest("stateful"));
    assert!(!inspect(&sandbox, small).await.unwrap().set_back, "a new instance costs less");
}

#[tokio::test]
async fn what_is_granted_never_becomes_part_of_a_snapshot() {
    let cache = tempfile::tempdir().unwrap();
    let grants = Grants { env: vec!["PATH".into()], ..Grants::default() };
    let spec = PluginSpec { grants, ..PluginSpec::new("random", guest("random")) };
    let sandbox = sandbox(&cache);
    let granted = Plugin::load(&sandbox, spec).await.unwrap();
    assert!(granted.no_snapshot().unwrap().contains("it has grants"), "{:?}", granted.no_snapshot());
    assert_eq!(note(&granted, 1).await, note(&random(&sandbox, json!({})).await, 1).await);
}

#[tokio::test]
async fn wrong_parameters_are_refused_and_not_kept() {
    let cache = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let error = load(&sandbox(&cache), "random", json!({"lout": 1}), Limits::default()).await.err().unwrap();
        assert!(matches!(error, LoadError::Params { .. }), "{error}");
    }
}

fn files(cache: &TempDir) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(cache.path().join("components")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[tokio::test]
async fn later_starts_take_the_code_from_disk() {
    let cache = tempfile::tempdir().unwrap();
    let params = json!({"early": true});
    let first = note(&random(&sandbox(&cache), params.clone()).await, 1).await;
    let kept = files(&cache);
    // The entry and the code of the instrumented component, and of its snapshot.
    assert_eq!(kept.len(), 4, "{kept:?}");
    let plugin = random(&sandbox(&cache), params.clone()).await;
    assert_eq!((note(&plugin, 1).await, plugin.info().name.as_str()), (first.clone(), "random"));
    assert_eq!(files(&cache), kept);
    // Other parameters make another snapshot of the same component.
    random(&sandbox(&cache), json!({"early": false})).await;
    assert_eq!(files(&cache).len(), 6);
    // Damaged files are made again, for the snapshot alone or together with the instrumented component.
    let (own, shared): (Vec<_>, Vec<_>) = kept.iter().partition(|path| is_of_a_snapshot(path));
    assert_eq!((own.len(), shared.len()), (2, 2), "{kept:?}");
    for damaged in [vec![own[0]], vec![own[1]], kept.iter().collect()] {
        let found: Vec<_> = damaged.iter().map(|path| damage(&cache, path)).collect();
        assert_eq!(note(&random(&sandbox(&cache), params.clone()).await, 1).await, first);
        for (path, bytes) in damaged.into_iter().zip(found) {
            // Code is named by its hash, and the compiler's output for the shared component is not always the same.
            let is_named_by_what_it_has = shared.contains(&path) && path.extension().unwrap() == "cwasm";
            assert!(is_named_by_what_it_has || fs::read(path).unwrap() != bytes, "{} is damaged", path.display());
        }
    }
}

/// Whether a file of the cache is the entry or the code of a snapshot, and not of
/// the instrumented component.
fn is_of_a_snapshot(path: &Path) -> bool {
    let folder = path.parent().unwrap();
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut json = entries.filter(|entry| entry.extension().is_some_and(|kind| kind == "json"));
    let entry = match path.extension().unwrap() == "json" {
        true => path.to_owned(),
        false => {
            let name = path.file_stem().unwrap().to_str().unwrap();
            json.find(|entry| fs::read_to_string(entry).unwrap().contains(name)).unwrap()
        }
    };
    fs::read_to_string(entry).unwrap().contains("Warm")
}

/// Changes a bit of a file, and returns its new content.
fn damage(cache: &TempDir, path: &Path) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    // In place of the file and not into it: the code of the plugin above is mapped from there.
    fs::write(cache.path().join("damaged"), &bytes).unwrap();
    fs::rename(cache.path().join("damaged"), path).unwrap();
    bytes
}

#[tokio::test]
async fn without_a_folder_nothing_is_kept_and_everything_works() {
    let cache = tempfile::tempdir().unwrap();
    fs::write(cache.path().join("components"), "a file where the folder should be").unwrap();
    let plugin = random(&sandbox(&cache), json!({})).await;
    assert_eq!((note(&plugin, 1).await, plugin.no_snapshot()), (note(&plugin, 1).await, None));
}

#[tokio::test]
async fn more_memory_than_a_slot_has_is_found_outside_of_the_pool() {
    let cache = tempfile::tempdir().unwrap();
    let limits = Limits { memory: (1 << 30) + 1, ..Limits::default() };
    let plugin = load(&sandbox(&cache), "random", json!({}), limits).await.unwrap();
    assert_eq!(plugin.score(&sample(), 1).await.outcome.score(), Some(4_999_950_000.0));
}

#[tokio::test]
async fn fuel_has_engines_of_its_own() {
    let cache = tempfile::tempdir().unwrap();
    let sandbox = sandbox(&cache);
    let limits = Limits { fuel: Some(1 << 30), ..Limits::default() };
    let metered = load(&sandbox, "random", json!({}), limits).await.unwrap();
    assert_eq!(metered.no_snapshot(), None);
    let (once, again) = (metered.score(&sample(), 1).await, metered.score(&sample(), 1).await);
    assert!(once.usage.fuel.unwrap() > 0);
    assert_eq!(once.usage.fuel, again.usage.fuel);
    assert_eq!(note(&metered, 1).await, note(&random(&sandbox, json!({})).await, 1).await);
}

#[tokio::test]
async fn inspection_tells_of_the_snapshot() {
    let cache = tempfile::tempdir().unwrap();
    let found = inspect(&sandbox(&cache), PluginSpec::new("random", guest("random"))).await.unwrap();
    assert!(found.snapshot && found.no_snapshot.is_none());
    assert!(found.imports.iter().any(|import| import.name.starts_with("wasi:cli/")), "{:?}", found.imports);
    // It has required parameters, so a snapshot is not possible here.
    let found = inspect(&sandbox(&cache), PluginSpec::new("sleepy", guest("sleepy"))).await.unwrap();
    assert!(!found.snapshot && found.info.is_none());
}
