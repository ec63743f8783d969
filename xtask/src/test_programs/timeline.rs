//! When each suite began and ended, and how busy the machine was meanwhile.

use crate::failure::Result;
use crate::setup::cannot;
use crate::ui::Seconds;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many suites [`Timeline::summary`] names.
const SLOWEST: usize = 10;

/// A log of the starts and ends of suites, which is written line by line: an interrupted run leaves its part.
pub struct Timeline {
    begun: Instant,
    path: PathBuf,
    log: Mutex<Log>,
}

struct Log {
    file: File,
    first: Option<Ticks>,
    last: Option<Ticks>,
    times: Vec<(String, Duration)>,
}

/// The time that the machine's cores were busy, and all their time, since its start.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    busy: u64,
    all: u64,
}

impl Timeline {
    /// Begins the log in a new file.
    pub fn begin(path: &Path) -> Result<Self> {
        let mut file = File::create(path).map_err(|error| cannot("write", path, &error))?;
        writeln!(file, "seconds  busy before  event").map_err(|error| cannot("write", path, &error))?;
        let now = Ticks::now();
        let log = Mutex::new(Log { file, first: now, last: now, times: Vec::new() });
        Ok(Self { begun: Instant::now(), path: path.to_owned(), log })
    }

    /// Logs `what` happened to a suite.
    pub fn event(&self, suite: &str, what: &str) -> Result<()> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Ticks::now();
        let busy = share(log.last, now);
        log.last = now;
        let line = line(self.begun.elapsed(), &busy, suite, what);
        log.file.write_all(line.as_bytes()).map_err(|error| cannot("write", &self.path, &error))
    }

    /// Logs the end of a suite that took `time`.
    pub fn end(&self, suite: &str, what: &str, time: Duration) -> Result<()> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).times.push((suite.to_owned(), time));
        self.event(suite, what)
    }

    /// The slowest suites, and how busy the machine was.
    pub fn summary(self) -> String {
        let log = self.log.into_inner().unwrap_or_else(PoisonError::into_inner);
        let busy = share(log.first, Ticks::now());
        let time = Seconds(self.begun.elapsed());
        format!("{}cores busy: {busy} of {time}; {} shows when\n", slowest(log.times), self.path.display())
    }
}

fn line(at: Duration, busy: &str, suite: &str, what: &str) -> String {
    format!("{:>7.1}  {busy:>11}  {suite} {what}\n", at.as_secs_f64())
}

fn slowest(mut times: Vec<(String, Duration)>) -> String {
    times.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    let mut text = String::from("slowest suites:\n");
    for (suite, time) in times.into_iter().take(SLOWEST) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:>12}  {suite}", Seconds(time).to_string());
    }
    text
}

/// The share of time between two readings in which cores were busy, in words.
fn share(before: Option<Ticks>, after: Option<Ticks>) -> String {
    let share = || {
        let (before, after) = (before?, after?);
        let all = after.all.checked_sub(before.all).filter(|all| *all > 0)?;
        Some(format!("{} %", after.busy.saturating_sub(before.busy) * 100 / all))
    };
    share().unwrap_or_else(|| "?".to_owned())
}

impl Ticks {
    /// `None` where the system has no `/proc/stat`.
    fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads the line of all cores: user, nice, system, idle, waiting for a disk, interrupts, stolen.
    fn parse(stat: &str) -> Option<Self> {
        let numbers = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(8);
        let numbers: Vec<u64> = numbers.map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let all = numbers.iter().sum();
        let idle = numbers.get(3)? + numbers.get(4)?;
        Some(Self { busy: all - idle, all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_busy_cores_is_between_two_readings() {
        let before = Ticks::parse("cpu  10 0 5 80 5 0 0 0 0 0\ncpu0 1 2 3\n");
        assert_eq!(before, Some(Ticks { busy: 15, all: 100 }));
        let after = Ticks::parse("cpu  85 0 5 100 10 0 0 0 0 0\n");
        assert_eq!(share(before, after), "75 %");
        for (before, after) in [(None, after), (before, before), (before, Ticks::parse("cpu  1 2"))] {
            assert_eq!(share(before, after), "?");
        }
    }

    #[test]
    fn the_slowest_suites_come_first() {
        let times = (0..12).map(|at| (format!("suite {at}"), Duration::from_secs(60 + at))).collect();
        let text = slowest(times);
        assert_eq!(text.lines().count(), 1 + SLOWEST);
        assert!(text.starts_with("slowest suites:\n    1 min 11 s  suite 11\n    1 min 10 s  suite 10\n"), "{text}");
    }

    #[test]
    fn events_are_in_the_file_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("timeline.txt");
        let timeline = Timeline::begin(&path).unwrap();
        timeline.event("data (lib)", "begins").unwrap();
        timeline.end("data (lib)", "passed", Duration::from_secs(3)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let events: Vec<&str> = text.lines().map(|line| line.get(22..).unwrap()).collect();
        assert_eq!(events, ["event", "data (lib) begins", "data (lib) passed"]);
        assert!(timeline.summary().starts_with("slowest suites:\n         3.0 s  data (lib)\ncores busy: "));
        assert_eq!(line(Duration::from_millis(61_300), "97 %", "a", "begins"), "   61.3         97 %  a begins\n");
    }
}
