//! Pipes, devices, folders and files without an end in place of a run's files: a run's folder may come from strangers.

use crate::run_folder::{FolderConfig, RunFolder};
use crate::{
    Checkpoints, SampleReader, find_component, layout, read_config, read_metrics, read_plugin_sets, read_rows,
    read_tasks,
};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

type Place = fn(&Path);

/// What a stranger puts in a file's place, and what the error of a reader says.
const PLACED: [(&str, Place, &str); 4] = [
    (
        "a pipe",
        |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        "it is not a regular file",
    ),
    ("a device", |path| symlink("/dev/zero", path).unwrap(), "it is not a regular file"),
    ("a terminal", |path| symlink("/dev/tty", path).unwrap(), ""),
    ("a folder", |path| fs::create_dir(path).unwrap(), "it is not a regular file"),
];

/// Calls `read` on a run with each of them at `path`; the error names the file.
fn is_refused(path: impl Fn(&Path) -> std::path::PathBuf, read: impl Fn(&Path) -> Option<String>) {
    for (what, place, says) in PLACED {
        let run = tempfile::tempdir().unwrap();
        let path = path(run.path());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        place(&path);
        let error = read(run.path()).unwrap_or_else(|| panic!("{what} at {} is read", path.display()));
        assert!(error.contains(&path.display().to_string()) && error.contains(says), "{what}: {error}");
    }
}

#[test]
fn what_is_not_a_file_is_not_read() {
    is_refused(layout::config, |run| Some(read_config(run).err()?.to_string()));
    is_refused(layout::metrics, |run| Some(read_metrics(run).err()?.to_string()));
    is_refused(|run| layout::tasks(run, 0), |run| Some(read_tasks(run).err()?.to_string()));
    is_refused(layout::plugin_sets, |run| Some(read_plugin_sets::<serde_json::Value>(run).err()?.to_string()));
    is_refused(
        |run| layout::samples(run, 1, 0),
        |run| {
            let reader = SampleReader::open(run).unwrap();
            let first = reader.samples(1).and_then(|mut samples| samples.next().unwrap());
            Some(first.err()?.to_string())
        },
    );
    is_refused(|run| layout::trained_rows(run, 1, 0), |run| Some(read_rows(run, None, |_| true).err()?.to_string()));
    is_refused(|run| run.join("queue.jsonl"), |run| Some(Checkpoints::queue(run).err()?.to_string()));
    is_refused(|run| layout::component(run, "f00d"), |run| Some(find_component(run, "f00d").err()?.to_string()));
    for file in ["state.json", "BLAKE3SUMS"] {
        is_refused(
            |run| layout::checkpoint(run, 1).join(file),
            |run| Some(Checkpoints::new(run).find(None).err()?.to_string()),
        );
    }
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let large = |path: &Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(path).unwrap().set_len(1 << 40).unwrap();
    };
    let run = tempfile::tempdir().unwrap();
    let run = run.path();
    for path in [layout::config(run), layout::plugin_sets(run), layout::component(run, "f00d")] {
        large(&path);
    }
    large(&layout::checkpoint(run, 1).join("BLAKE3SUMS"));
    for error in [
        read_config(run).unwrap_err(),
        read_plugin_sets::<serde_json::Value>(run).unwrap_err(),
        find_component(run, "f00d").unwrap_err(),
        Checkpoints::new(run).find(None).unwrap_err(),
    ] {
        assert!(error.to_string().contains(": it has more than "), "{error}");
    }
}

#[test]
fn a_link_to_a_file_is_read() {
    let (run, disk) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let config = disk.path().join("elsewhere");
    fs::write(&config, "seed = 1\n").unwrap();
    symlink(&config, layout::config(run.path())).unwrap();
    assert_eq!(read_config(run.path()).unwrap()["seed"].as_integer(), Some(1));
}

#[test]
fn nothing_is_written_through_a_link() {
    for name in ["lock", "metrics.jsonl", "config.toml.partial"] {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let config = FolderConfig {
            dir: root.path().into(),
            name: "run".into(),
            tensorboard: false,
            token_ids: false,
            command: None,
        };
        drop(RunFolder::create(&config, "seed = 1\n").unwrap());
        let (link, file) = (root.path().join("run").join(name), elsewhere.path().join("precious"));
        fs::write(&file, "precious").unwrap();
        let _ = fs::remove_file(&link);
        symlink(&file, &link).unwrap();
        let resumed = RunFolder::resume(&config, "seed = 1\n", &[], |table| table);
        let error = resumed.and_then(|folder| folder.keep_config("seed = 1\n")).err().unwrap().to_string();
        assert!(error.ends_with(": it is a link, and nothing is written through links"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    }
}
