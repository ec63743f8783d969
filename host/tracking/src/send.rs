//! Sends what trackers missed of a run that no process writes any more.

use crate::error::{Result, SendError};
use crate::link::Link;
use crate::progress::Progress;
use crate::sent::SendLock;
use crate::table::TrackerTable;
use crate::tracking::Times;
use std::path::Path;
use tokio::time::sleep;

/// How often a request is tried.
const TRIES: u32 = 3;

/// What became of a tracker.
#[derive(Debug)]
pub struct SentTo {
    /// Its name.
    pub name: String,
    /// The last step that it had before, if it had any.
    pub before: Option<u64>,
    /// The last step that it has now.
    pub now: Option<u64>,
    /// Whether it gets the numbers of steps.
    pub takes_numbers: bool,
    /// Why something is left.
    pub error: Option<SendError>,
}

/// Sends what trackers miss of `run`.
///
/// # Errors
/// Another process sends it, or a tracker cannot be used as it is configured.
pub fn send(run: &Path, tables: &[TrackerTable]) -> Result<Vec<SentTo>> {
    let _lock = SendLock::take(run)?;
    let links = tables.iter().map(|table| Link::new(run, table, false, Times::DEFAULT.request));
    let links = links.collect::<std::result::Result<Vec<_>, _>>()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(SendError::io("send", run))?;
    Ok(runtime.block_on(async {
        let mut sent = Vec::new();
        for link in links {
            sent.push(send_to(link).await);
        }
        sent
    }))
}

async fn send_to(mut link: Link) -> SentTo {
    let mut failures = 0;
    let error = loop {
        match link.advance().await {
            Ok(Progress::CaughtUp) => break None,
            Ok(Progress::More) => failures = 0,
            Err(error) => {
                failures += 1;
                if failures >= TRIES {
                    break Some(error);
                }
                sleep(Times::DEFAULT.first_pause).await;
            }
        }
    };
    let (before, now, takes_numbers) = (link.before(), link.step(), link.takes_numbers());
    SentTo { name: link.name, before, now, takes_numbers, error }
}
