//! Calls back whenever a project's sources change.

use crate::error::Error;
use crate::sources;
use notify_debouncer_mini::new_debouncer;
use notify_debouncer_mini::notify::RecursiveMode;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

/// How long nothing must change before a change is handled: an editor may write
/// several files at once.
const PAUSE: Duration = Duration::from_millis(200);

/// Calls `changed` at once, and again after every change of the sources in
/// `folder`, forever.
///
/// # Errors
/// The folder cannot be watched, or not any more.
pub fn watch(folder: &Path, mut changed: impl FnMut()) -> Result<(), Error> {
    let error = |what: String| Error::Watch { folder: folder.to_owned(), what };
    let (sender, events) = mpsc::channel();
    let mut debouncer = new_debouncer(PAUSE, sender).map_err(|cause| error(cause.to_string()))?;
    let watcher = debouncer.watcher();
    watcher.watch(folder, RecursiveMode::Recursive).map_err(|cause| error(cause.to_string()))?;
    loop {
        // Taken before the build, so that a change during the build counts. A change by the build itself, such as of a
        // lock file, counts once too.
        let seen = fingerprint(folder);
        changed();
        while fingerprint(folder) == seen {
            match events.recv() {
                Ok(Ok(_)) => {}
                Ok(Err(cause)) => return Err(error(cause.to_string())),
                Err(mpsc::RecvError) => return Err(error("the watcher ended".into())),
            }
        }
    }
}

/// The time and the size of every source; equal if nothing changed.
fn fingerprint(folder: &Path) -> BTreeMap<PathBuf, (Option<SystemTime>, u64)> {
    let files = sources::edited(folder).into_iter();
    files.map(|(path, about)| (path, (about.modified().ok(), about.len()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn sources_count_and_what_is_made_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("src/lib.rs", "a");
        let before = fingerprint(folder.path());
        for made in ["build/a.wasm", "target/a", "node_modules/a/b.js", "src/__pycache__/a.pyc", ".git/HEAD"] {
            write(made, "x");
        }
        assert_eq!(fingerprint(folder.path()), before);
        write("src/lib.rs", "ab");
        let changed = fingerprint(folder.path());
        assert_ne!(changed, before);
        write("cases.jsonl", "");
        assert_ne!(fingerprint(folder.path()), changed);
    }
}
