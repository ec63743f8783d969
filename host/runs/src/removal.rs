//! Removing the folder of a run.

use crate::error::{Result, RunError};
use crate::format::read_format;
use crate::layout;
use crate::leftovers::free_name;
use crate::overview::is_run;
use crate::run_lock::{RunLock, names_process, writer};
use gavel_data::disk;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Removes the folder of a run with everything in it. It loses its name first, so that a run is never found half removed.
/// Links in it are removed, and what they lead to is not.
///
/// # Errors
/// It is no run, a link to one or a recording of `gavel score`, a process writes into it, a newer version of Gavel wrote
/// it, or it cannot be removed.
pub fn remove_run(run: &Path) -> Result<()> {
    // Without a slash at the end, which would follow a link.
    let run: PathBuf = run.components().collect();
    check_removable(&run)?;
    let lock = RunLock::take(&run)?;
    let path = fs::canonicalize(&run).map_err(RunError::io("remove", &run))?;
    let removed = free_name(&path);
    disk::rename(&path, &removed).map_err(RunError::io("remove", &run))?;
    disk::sync_folder(disk::folder_of(&path)).map_err(RunError::io("sync", disk::folder_of(&path)))?;
    disk::remove_tree(&removed).map_err(|source| RunError::HalfRemoved { run, removed, source })?;
    drop(lock);
    Ok(())
}

/// Checks that a folder is a run that can be removed, as far as is known before it is locked.
///
/// # Errors
/// It cannot be removed.
pub fn check_removable(run: &Path) -> Result<()> {
    let run: PathBuf = run.components().collect();
    match fs::symlink_metadata(&run) {
        Ok(found) if found.is_symlink() => return Err(RunError::Link { run }),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(RunError::io("read", &run)(error)),
        _ => {}
    }
    if !is_run(&run) {
        return Err(RunError::NoFolderOfRun { folder: run });
    }
    // A recording of `gavel score` and a folder of somebody else have no lock of a run, so nothing shows whether they are in use.
    if !fs::symlink_metadata(layout::lock(&run)).is_ok_and(|lock| lock.is_file()) {
        return Err(RunError::NoLock { run });
    }
    if read_format(&run)?.is_none() && !names_process(&run) {
        return Err(RunError::NoLock { run });
    }
    match writer(&run)? {
        Some(holder) => Err(RunError::InUse { run, holder }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leftovers::half_removed;
    use crate::overview::list_runs;
    use crate::run_folder::{FolderConfig, RunFolder};
    use std::os::unix::fs::symlink;

    fn config(dir: &Path) -> FolderConfig {
        FolderConfig { dir: dir.to_owned(), name: "run".into(), tensorboard: false, token_ids: false, command: None }
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_run_is_removed_and_what_its_links_lead_to_is_not() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(outside.path().join("kept"), "kept").unwrap();
        let folder = RunFolder::create(&config(dir.path()), "").unwrap();
        let run = folder.path().to_owned();
        symlink(outside.path(), run.join("checkpoints/step-000001")).unwrap();
        symlink(outside.path().join("kept"), run.join("link")).unwrap();
        let error = remove_run(&run).unwrap_err();
        assert!(matches!(&error, RunError::InUse { holder, .. } if holder.pid.is_some()), "{error}");
        drop(folder);
        symlink(&run, dir.path().join("latest")).unwrap();
        for link in ["latest", "latest/", "latest/."] {
            let error = remove_run(&dir.path().join(link)).unwrap_err();
            assert!(matches!(error, RunError::Link { .. }), "{link}: {error}");
        }
        assert_eq!(names(dir.path()), ["latest", "run"]);
        remove_run(&run).unwrap();
        assert_eq!(names(dir.path()), ["latest"]);
        assert_eq!(fs::read_to_string(outside.path().join("kept")).unwrap(), "kept");
    }

    #[test]
    fn a_foreign_folder_keeps_its_lock() {
        let dir = tempfile::tempdir().unwrap();
        for (name, says) in [("project", "is no run"), ("report", "has no file lock that names a process")] {
            let folder = dir.path().join(name);
            fs::create_dir_all(folder.join("checkpoints")).unwrap();
            if name == "report" {
                fs::write(layout::config(&folder), "").unwrap();
                fs::write(layout::metrics(&folder), "").unwrap();
            }
            for text in ["", "{}", r#"{"host":"a"}"#, r#"{"pid":"7"}"#, "7", "held by make\n"] {
                fs::write(layout::lock(&folder), text).unwrap();
                for checked in [check_removable(&folder), remove_run(&folder)] {
                    let error = checked.unwrap_err().to_string();
                    assert!(error.contains(says), "{name}, {text}: {error}");
                }
                assert_eq!(fs::read_to_string(layout::lock(&folder)).unwrap(), text, "{name}");
            }
        }
        assert_eq!(names(&dir.path().join("project")), ["checkpoints", "lock"]);
        assert_eq!(names(&dir.path().join("report")), ["checkpoints", "config.toml", "lock", "metrics.jsonl"]);
        // A run that was killed while it was made, and one of an older version.
        for name in ["killed", "older"] {
            fs::rename(dir.path().join(if name == "killed" { "project" } else { "report" }), dir.path().join(name))
                .unwrap();
            fs::write(layout::lock(&dir.path().join(name)), r#"{"pid":4194305,"host":null,"since":null}"#).unwrap();
            remove_run(&dir.path().join(name)).unwrap();
        }
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn what_another_process_left_half_removed_hinders_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let process = std::process::id();
        let left = [format!(".gavel-removed-{process}"), format!(".gavel-removed-{process}-2")];
        for name in &left {
            drop(RunFolder::create(&FolderConfig { name: name.clone(), ..config(dir.path()) }, "").unwrap());
        }
        let run = RunFolder::create(&config(dir.path()), "").unwrap().path().to_owned();
        assert_eq!(list_runs(dir.path()).unwrap().len(), 1);
        remove_run(&run).unwrap();
        assert_eq!(names(dir.path()), left);
        assert!(list_runs(dir.path()).unwrap().is_empty());
        assert_eq!(half_removed(dir.path()).unwrap(), left.map(|name| dir.path().join(name)));
    }

    #[test]
    fn what_is_no_run_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::create_dir_all(path("project/checkpoints")).unwrap();
        fs::write(path("project/metrics.jsonl"), "").unwrap();
        fs::create_dir_all(path("old/checkpoints")).unwrap();
        fs::write(path("old/config.toml"), "").unwrap();
        fs::write(path("file"), "").unwrap();
        for (name, says) in [
            ("project", "is no run"),
            ("file", "is no run"),
            ("none", "is no run"),
            ("", "is no run"),
            ("old/..", "is no run"),
            ("old", "has no file lock"),
        ] {
            let error = remove_run(&path(name)).unwrap_err().to_string();
            assert!(error.contains(says), "{name}: {error}");
        }
        assert_eq!(names(dir.path()), ["file", "old", "project"]);
        // A run of a newer version.
        drop(RunFolder::create(&config(dir.path()), "").unwrap());
        fs::write(layout::marker(&path("run")), r#"{"format":99}"#).unwrap();
        assert!(matches!(remove_run(&path("run")).unwrap_err(), RunError::NewerFormat { .. }));
        fs::remove_file(layout::marker(&path("run"))).unwrap();
        // A lock that is a link.
        fs::remove_file(layout::lock(&path("run"))).unwrap();
        symlink(path("file"), layout::lock(&path("run"))).unwrap();
        assert!(matches!(remove_run(&path("run")).unwrap_err(), RunError::NoLock { .. }));
        assert_eq!(fs::read_to_string(path("file")).unwrap(), "");
    }
}
