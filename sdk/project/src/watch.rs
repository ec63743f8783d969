//! Doing something again whenever a project's sources change.

use crate::error::Error;
use crate::fingerprint::Fingerprint;
use notify_debouncer_mini::new_debouncer;
use notify_debouncer_mini::notify::RecursiveMode;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// How long nothing must change before it is looked at: an editor that saves
/// writes several files.
const PAUSE: Duration = Duration::from_millis(200);

/// Calls `changed` at once, and again after every change of the sources in
/// `folder`, for ever.
///
/// # Errors
/// Where the folder cannot be watched, or no longer.
pub fn watch(folder: &Path, mut changed: impl FnMut()) -> Result<(), Error> {
    let error = |what: String| Error::Watch { folder: folder.to_owned(), what };
    let (sender, events) = mpsc::channel();
    let mut debouncer = new_debouncer(PAUSE, sender).map_err(|cause| error(cause.to_string()))?;
    let watcher = debouncer.watcher();
    watcher.watch(folder, RecursiveMode::Recursive).map_err(|cause| error(cause.to_string()))?;
    loop {
        // Taken before: a change during the build counts, and so does what the build itself changes
        // among the sources (a lock file), once.
        let seen = Fingerprint::of(folder);
        changed();
        while Fingerprint::of(folder) == seen {
            match events.recv() {
                Ok(Ok(_)) => {}
                Ok(Err(cause)) => return Err(error(cause.to_string())),
                Err(mpsc::RecvError) => return Err(error("the watcher ended".into())),
            }
        }
    }
}
