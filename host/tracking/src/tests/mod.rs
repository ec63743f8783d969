//! Runs that are sent to servers that answer, fail, hang, or answer nonsense.

mod fake;
mod mlflow;
mod others;

use crate::error::SendError;
use crate::link::Link;
use crate::progress::Progress;
use crate::table::TrackerTable;
use crate::tracking::{Times, Tracking};
use fake::Fake;
use gavel_runs::layout;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TIMES: Times = Times {
    look: Duration::from_millis(5),
    request: Duration::from_millis(500),
    first_pause: Duration::from_millis(5),
    longest_pause: Duration::from_millis(20),
    end: Duration::from_secs(60),
};

/// A run's folder.
struct Run {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

impl Run {
    fn new(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("demo");
        fs::create_dir_all(layout::checkpoints(&path)).unwrap();
        fs::write(layout::config(&path), config).unwrap();
        Self { _dir: dir, path }
    }

    /// Adds a line, as a run does.
    fn log(&self, step: u64, more: &str) {
        let path = layout::metrics(&self.path);
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(
            file,
            "{{\"step\":{step},\"reward/mean\":{}.5{more},\"time/timestamp\":{}}}",
            step,
            1_700_000_000 + step
        )
        .unwrap();
    }

    fn end(&self, kind: &str) {
        let text = format!("{{\"kind\":\"{kind}\",\"at\":1700000100.0,\"error\":\"out of memory\\nhint: buy some\"}}");
        fs::write(layout::ending(&self.path), text).unwrap();
    }

    fn link(&self, table: &TrackerTable) -> Link {
        Link::new(&self.path, table, true, TIMES.request).unwrap()
    }

    fn tracking(&self, table: &TrackerTable, times: Times) -> Tracking {
        Tracking::start_within(&self.path, std::slice::from_ref(table), None, times).unwrap().unwrap()
    }

    /// What the tracker of this name was sent, as it is kept.
    fn kept(&self, name: &str) -> Option<String> {
        fs::read_to_string(layout::tracker(&self.path, name)).ok()
    }
}

/// Sends all that there is; the first error ends it.
fn send_all(link: &mut Link) -> Result<(), SendError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        while link.advance().await? == Progress::More {}
        Ok(())
    })
}

/// Waits until something holds, which it does after a moment.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} never came");
}

fn server(kind: crate::TrackerKind, fake: &Fake) -> TrackerTable {
    TrackerTable { url: Some(fake.url.clone()), ..TrackerTable::new(kind) }
}

fn all_text(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        text +=
            &if path.is_dir() { all_text(&path) } else { String::from_utf8_lossy(&fs::read(&path).unwrap()).into() };
    }
    text
}
