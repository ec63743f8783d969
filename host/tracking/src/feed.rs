//! The lines of `metrics.jsonl` that a tracker lacks, a few at a time.

use crate::error::Result;
use crate::numbers::Numbers;
use crate::sent::SentNumbers;
use gavel_runs::MetricsFollower;
use std::path::Path;

/// The most lines that are in memory at once.
const LINES: u64 = 256;

/// The numbers that a tracker is sent next.
pub(crate) struct Feed {
    follower: MetricsFollower,
    /// What was read and is not sent yet.
    waiting: Vec<Numbers>,
    /// Whether the file may have further lines.
    has_more: bool,
    /// Whether the run has rewritten its file since the last lines were taken.
    is_anew: bool,
}

impl Feed {
    pub(crate) fn new(run: &Path) -> Self {
        Self { follower: MetricsFollower::new(run), waiting: Vec::new(), has_more: true, is_anew: false }
    }

    /// The numbers that follow what the tracker has, `last`: of a step that it has in part, the others. A resumed run
    /// repeats steps; those that the tracker has are left out. Empty where nothing is new.
    pub(crate) fn read(&mut self, last: Option<&SentNumbers>) -> Result<&[Numbers]> {
        self.has_more = true;
        while self.waiting.is_empty() && self.has_more {
            let lines = self.next_lines()?;
            self.waiting = lines.into_iter().filter_map(|numbers| lacking(numbers, last)).collect();
        }
        Ok(&self.waiting)
    }

    /// The next numbers, whatever a tracker has. They are not read again.
    pub(crate) fn take(&mut self) -> Result<Vec<Numbers>> {
        self.next_lines()
    }

    /// Whether the file may have further lines than were read.
    pub(crate) fn has_more(&self) -> bool {
        self.has_more
    }

    fn next_lines(&mut self) -> Result<Vec<Numbers>> {
        let new = self.follower.read_at_most(LINES)?;
        self.is_anew |= new.is_anew;
        self.has_more = (new.steps.len() + new.damaged.len()) as u64 == LINES;
        Ok(new.steps.iter().map(Numbers::of).collect())
    }

    /// Whether the run has rewritten its file since this was asked last: all lines are read again.
    pub(crate) fn take_anew(&mut self) -> bool {
        std::mem::take(&mut self.is_anew)
    }

    /// Notes that what was read is sent.
    pub(crate) fn sent(&mut self) {
        self.waiting.clear();
    }
}

/// What a tracker that has `last` lacks of `numbers`.
fn lacking(mut numbers: Numbers, last: Option<&SentNumbers>) -> Option<Numbers> {
    let Some(last) = last.filter(|last| numbers.step <= last.step) else { return Some(numbers) };
    if numbers.step < last.step || numbers.at != last.at {
        return None;
    }
    numbers.values.retain(|(name, _)| !last.names.contains(name));
    (!numbers.values.is_empty()).then_some(numbers)
}

/// The number of steps that a tracker that has `last` lacks.
pub(crate) fn count_lacking(run: &Path, last: Option<&SentNumbers>) -> Result<u64> {
    let (mut feed, mut count) = (Feed::new(run), 0);
    loop {
        let read = feed.read(last)?.len() as u64;
        if read == 0 {
            return Ok(count);
        }
        count += read;
        feed.sent();
    }
}

/// When the first numbers of `run` were logged, in seconds since 1970 (UTC).
pub(crate) fn first_time(run: &Path) -> Result<Option<f64>> {
    let first = MetricsFollower::new(run).read_at_most(1)?.steps;
    Ok(first.first().and_then(|first| Numbers::of(first).at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_runs::layout;
    use std::fs;

    fn line(step: u64, at: f64, more: &str) -> String {
        format!("{{\"step\":{step},\"loss\":0.5,\"time/timestamp\":{at}{more}}}\n")
    }

    fn last(step: u64, at: f64) -> Option<SentNumbers> {
        Some(SentNumbers { step, at: Some(at), names: ["loss".to_owned()].into() })
    }

    fn steps(numbers: &[Numbers]) -> Vec<u64> {
        numbers.iter().map(|numbers| numbers.step).collect()
    }

    #[test]
    fn a_tracker_gets_what_it_lacks() {
        let run = tempfile::tempdir().unwrap();
        let path = layout::metrics(run.path());
        let mut feed = Feed::new(run.path());
        assert_eq!(feed.read(None).unwrap(), []);
        let text: String = (1..=600).map(|step| line(step, step as f64, "")).collect();
        fs::write(&path, format!("{text}not JSON\n{{\"step\":601")).unwrap();
        assert_eq!(first_time(run.path()).unwrap(), Some(1.0));
        assert_eq!(count_lacking(run.path(), None).unwrap(), 600);
        assert_eq!(count_lacking(run.path(), last(590, 590.0).as_ref()).unwrap(), 10);
        // A few at a time, and again until they are sent.
        assert_eq!(steps(feed.read(None).unwrap()), (1..=256).collect::<Vec<_>>());
        assert_eq!(feed.read(None).unwrap().len(), 256);
        feed.sent();
        assert_eq!(steps(feed.read(last(256, 256.0).as_ref()).unwrap()), (257..=512).collect::<Vec<_>>());
        feed.sent();
        assert_eq!(steps(feed.read(last(512, 512.0).as_ref()).unwrap()), (513..=600).collect::<Vec<_>>());
        feed.sent();
        assert_eq!(feed.read(last(600, 600.0).as_ref()).unwrap(), []);
        assert!(!feed.take_anew());
    }

    #[test]
    fn steps_that_a_resumed_run_repeats_are_left_out() {
        let run = tempfile::tempdir().unwrap();
        let path = layout::metrics(run.path());
        fs::write(&path, (1..=5).map(|step| line(step, step as f64, "")).collect::<String>()).unwrap();
        let mut feed = Feed::new(run.path());
        assert_eq!(feed.read(None).unwrap().len(), 5);
        feed.sent();
        // Resumed after step 3, by another process or under another inode.
        let resumed = |steps| (1..=steps).map(|step| line(step, if step > 3 { 10.0 } else { step as f64 }, ""));
        gavel_data::files::write_whole(&path, resumed(5).collect::<String>().as_bytes()).unwrap();
        assert_eq!(feed.read(last(5, 5.0).as_ref()).unwrap(), []);
        assert!(feed.take_anew());
        gavel_data::files::write_whole(&path, resumed(7).collect::<String>().as_bytes()).unwrap();
        assert_eq!(steps(feed.read(last(5, 5.0).as_ref()).unwrap()), [6, 7]);
    }

    #[test]
    fn numbers_that_a_validation_adds_are_sent_alone() {
        let run = tempfile::tempdir().unwrap();
        let path = layout::metrics(run.path());
        fs::write(&path, line(1, 1.0, ",\"val/accuracy\":0.25")).unwrap();
        let mut feed = Feed::new(run.path());
        let values = vec![("val/accuracy".to_owned(), 0.25)];
        assert_eq!(feed.read(last(1, 1.0).as_ref()).unwrap(), [Numbers { step: 1, at: Some(1.0), values }]);
    }
}
