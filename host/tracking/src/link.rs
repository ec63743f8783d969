//! What is sent next to a tracker, and that it was sent.

use crate::about::About;
use crate::error::{Result, TrackingError};
use crate::feed::{Feed, first_time};
use crate::progress::Progress;
use crate::sent::Sent;
use crate::table::TrackerTable;
use crate::tracker::Tracker;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A run and one of its trackers.
pub(crate) struct Link {
    pub(crate) name: String,
    run: PathBuf,
    tracker: Tracker,
    feed: Feed,
    /// Once it is read.
    state: Option<(About, Sent)>,
    /// The last step that the tracker had when this began.
    before: Option<u64>,
    /// Whether this process writes the run.
    is_live: bool,
}

impl Link {
    /// The link of `run` to the tracker of a table. Of a run that this process writes, `is_live`, an end is sent only
    /// once it is recorded.
    pub(crate) fn new(
        run: &Path,
        table: &TrackerTable,
        is_live: bool,
        timeout: Duration,
    ) -> std::result::Result<Self, TrackingError> {
        let (name, tracker) = (table.name().to_owned(), Tracker::new(table, timeout)?);
        Ok(Self { name, run: run.to_owned(), tracker, feed: Feed::new(run), state: None, before: None, is_live })
    }

    /// The last step that the tracker has.
    pub(crate) fn step(&self) -> Option<u64> {
        self.state.as_ref().and_then(|(_, sent)| Some(sent.last.as_ref()?.step))
    }

    /// The last step that the tracker had when this began.
    pub(crate) fn before(&self) -> Option<u64> {
        self.before
    }

    pub(crate) fn target(&self) -> String {
        self.tracker.target()
    }

    pub(crate) fn takes_numbers(&self) -> bool {
        self.tracker.takes_numbers()
    }

    /// Sends what comes next, and notes it.
    ///
    /// # Errors
    /// It was not sent. The next call tries it again.
    pub(crate) async fn advance(&mut self) -> Result<Progress> {
        let Self { name, run, tracker, feed, state, before, is_live } = self;
        let (about, sent) = match state {
            Some(state) => state,
            None => {
                let (about, sent) = opened(run, name, tracker)?;
                *before = sent.last.as_ref().map(|last| last.step);
                state.insert((about, sent))
            }
        };
        // Read first: what was recorded before the end is then sent before it.
        let ending = about.ending(*is_live)?;
        if let Tracker::Wandb(wandb) = tracker {
            return wandb.advance(about, name, sent, feed, ending.as_ref());
        }
        if !sent.has_config {
            tracker.begin(about, sent).await?;
            sent.has_config = true;
            sent.write(run, name)?;
        }
        if ending.is_none() && sent.end.is_some() {
            tracker.resume(sent).await?;
            sent.end = None;
            sent.write(run, name)?;
        }
        if tracker.takes_numbers() {
            let numbers = feed.read(sent.last.as_ref())?;
            if !numbers.is_empty() {
                tracker.log(about, sent, numbers).await?;
                numbers.iter().for_each(|numbers| sent.note(numbers));
                feed.sent();
                sent.write(run, name)?;
                return Ok(Progress::More);
            }
        }
        if let Tracker::Webhook(webhook) = tracker
            && *is_live
        {
            webhook.tell_pauses(about).await?;
        }
        if let Some(ending) = ending.filter(|ending| sent.end != Some(ending.at)) {
            tracker.end(about, sent, &ending).await?;
            sent.end = Some(ending.at);
            sent.write(run, name)?;
        }
        Ok(Progress::CaughtUp)
    }
}

/// What is known of the run and of what the tracker has.
fn opened(run: &Path, name: &str, tracker: &Tracker) -> Result<(About, Sent)> {
    let target = tracker.target();
    let about = About::read(run)?;
    if let Some(sent) = Sent::read(run, name, &target)? {
        return Ok((about, sent));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let sent = Sent::nothing(run, &target, first_time(run)?.unwrap_or(now));
    // Its id is kept before anything is sent under it.
    sent.write(run, name)?;
    Ok((about, sent))
}
