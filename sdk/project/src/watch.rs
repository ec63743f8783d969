//! Calls back whenever a project's sources change.

use crate::error::Error;
use crate::sources;
use notify_debouncer_mini::new_debouncer;
use notify_debouncer_mini::notify::RecursiveMode;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// How long the files must stay unchanged before a change is handled: an editor may write several files at once.
const PAUSE: Duration = Duration::from_millis(200);

/// Files that a build itself may write among the sources.
const LOCKS: [&str; 2] = ["Cargo.lock", "package-lock.json"];

/// Calls `changed` at once, and again after every change of the contents of the
/// sources in `folder`, forever.
///
/// # Errors
/// The folder cannot be watched, or not any more.
pub fn watch(folder: &Path, mut changed: impl FnMut()) -> Result<(), Error> {
    let error = |what: String| Error::Watch { folder: folder.to_owned(), what };
    let (sender, events) = mpsc::channel();
    let mut debouncer = new_debouncer(PAUSE, sender).map_err(|cause| error(cause.to_string()))?;
    let watcher = debouncer.watcher();
    watcher.watch(folder, RecursiveMode::Recursive).map_err(|cause| error(cause.to_string()))?;
    // Taken before the build, so that a change during the build counts.
    let rest = || std::thread::sleep(PAUSE);
    let mut seen = settled(folder, rest);
    loop {
        changed();
        // Changes of lock files by the build do not count.
        seen.extend(fingerprint(folder).into_iter().filter(|(path, _)| is_lock(path)));
        seen = loop {
            // A file that is written again is empty for a moment.
            if fingerprint(folder) != seen {
                let now = settled(folder, rest);
                if now != seen {
                    break now;
                }
            }
            match events.recv() {
                Ok(Ok(_)) => {}
                Ok(Err(cause)) => return Err(error(cause.to_string())),
                Err(mpsc::RecvError) => return Err(error("the watcher ended".into())),
            }
        };
    }
}

/// The hash of every source; equal if no content changed, whatever events there were. A file that cannot be read, such
/// as one that is just being replaced, has none.
type Fingerprint = BTreeMap<PathBuf, Option<blake3::Hash>>;

fn fingerprint(folder: &Path) -> Fingerprint {
    let hash = |path: &Path| fs::read(path).ok().map(|content| blake3::hash(&content));
    sources::edited(folder).into_iter().map(|(path, _)| (path.clone(), hash(&path))).collect()
}

/// The fingerprint once it stays the same during a `rest`: some editors write a file in two steps.
fn settled(folder: &Path, mut rest: impl FnMut()) -> Fingerprint {
    let mut seen = fingerprint(folder);
    loop {
        rest();
        let now = fingerprint(folder);
        if now == seen {
            return seen;
        }
        seen = now;
    }
}

fn is_lock(path: &Path) -> bool {
    path.file_name().is_some_and(|name| LOCKS.iter().any(|lock| name == *lock))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{RecvTimeoutError, channel};

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
        write("src/lib.rs", "ab");
        assert_eq!(fingerprint(folder.path()), changed);
        write("cases.jsonl", "");
        assert_ne!(fingerprint(folder.path()), changed);
    }

    #[test]
    fn an_edit_is_handled_once() {
        let folder = tempfile::tempdir().unwrap().keep();
        let source = folder.join("main.py");
        fs::write(&source, "a").unwrap();
        let (sender, calls) = channel();
        let watched = folder.clone();
        std::thread::spawn(move || {
            let lock = watched.join("Cargo.lock");
            let mut builds = 0;
            watch(&watched, || {
                builds += 1;
                // A build that writes its lock file.
                fs::write(&lock, builds.to_string()).unwrap();
                sender.send(builds).unwrap();
            })
        });
        let next = || calls.recv_timeout(Duration::from_secs(60));
        let none = || assert_eq!(calls.recv_timeout(8 * PAUSE), Err(RecvTimeoutError::Timeout));
        assert_eq!(next(), Ok(1));
        none();
        // In one step, which nothing can interrupt.
        let elsewhere = tempfile::tempdir().unwrap();
        let replace = |content: &str| {
            let new = elsewhere.path().join("main.py");
            fs::write(&new, content).unwrap();
            fs::rename(&new, &source).unwrap();
        };
        replace("ab");
        assert_eq!(next(), Ok(2));
        none();
        // The same content again.
        replace("ab");
        none();
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_counts_once_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let write = |content: &str| fs::write(folder.path().join("main.py"), content).unwrap();
        write("ab");
        let whole = fingerprint(folder.path());
        // An editor that writes in steps.
        write("");
        let mut steps = ["a", "ab"].into_iter();
        let mut rests = 0;
        let seen = settled(folder.path(), || {
            rests += 1;
            steps.next().into_iter().for_each(write);
        });
        assert_eq!((seen, rests), (whole, 3));
    }
}
