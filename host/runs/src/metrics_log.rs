//! `metrics.jsonl`: the numbers of each step, a line a step.

use crate::damage::DamagedLine;
use crate::error::{Result, RunError};
use crate::follow::LineFollower;
use crate::last_lines::last_lines;
use crate::layout;
use crate::metrics::Metrics;
use gavel_data::disk;
use gavel_data::files::{append_to_lines, open_regular, read_line, write_whole};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The most bytes that are read of the end of a file.
const MOST_LAST: u64 = 8 << 20;

/// Adds the numbers of steps to the file of a run.
pub(crate) struct MetricsLog {
    path: PathBuf,
    file: File,
}

impl MetricsLog {
    /// Continues the file of `run`, or starts it.
    pub(crate) fn open(run: &Path) -> Result<Self> {
        let path = layout::metrics(run);
        let file = append_to_lines(&path).map_err(RunError::io("write", &path))?;
        Ok(Self { path, file })
    }

    pub(crate) fn write(&mut self, metrics: &Metrics) -> Result<()> {
        serde_json::to_vec(metrics.as_json())
            .map_err(std::io::Error::from)
            .and_then(|mut line| {
                line.push(b'\n');
                self.file.write_all(&line)
            })
            .map_err(RunError::io("write", &self.path))
    }

    /// Adds `more` to the numbers of `step`, whose line is then the last. Returns all of them. Lines that cannot be parsed
    /// are kept.
    pub(crate) fn extend(&mut self, step: u64, more: &Metrics) -> Result<Metrics> {
        let read = || RunError::io("read", &self.path);
        let mut file = BufReader::new(open_regular(&self.path).map_err(read())?);
        let (mut kept, mut numbers, mut line) = (Vec::new(), Metrics::of_step(step), Vec::new());
        while read_line(&mut file, &mut line).map_err(read())? > 0 {
            match parse(&line) {
                Ok((at, metrics)) if at == step as f64 => numbers = metrics,
                _ => kept.extend_from_slice(&line),
            }
        }
        numbers.extend(more.clone());
        let write = || RunError::io("write", &self.path);
        serde_json::to_writer(&mut kept, numbers.as_json()).map_err(|error| write()(error.into()))?;
        kept.push(b'\n');
        write_whole(&self.path, &kept).map_err(write())?;
        self.file = append_to_lines(&self.path).map_err(write())?;
        Ok(numbers)
    }

    /// Syncs the lines, so that they survive a power cut.
    pub(crate) fn sync(&self) -> Result<()> {
        disk::sync(&self.file, &self.path)
            .and_then(|()| disk::sync_folder(disk::folder_of(&self.path)))
            .map_err(RunError::io("sync", &self.path))
    }

    /// Removes the lines of the steps after `step`, and those that cannot be
    /// parsed. Returns the number of each.
    pub(crate) fn forget_after(&mut self, step: u64) -> Result<(u64, u64)> {
        let read = || RunError::io("read", &self.path);
        let mut file = BufReader::new(open_regular(&self.path).map_err(read())?);
        let (mut kept, mut later, mut damaged, mut line) = (Vec::new(), 0, 0, Vec::new());
        while read_line(&mut file, &mut line).map_err(read())? > 0 {
            match parse(&line) {
                Ok((at, _)) if at <= step as f64 => kept.extend_from_slice(&line),
                Ok(_) => later += 1,
                Err(_) => damaged += 1,
            }
        }
        if later + damaged > 0 {
            write_whole(&self.path, &kept).map_err(RunError::io("write", &self.path))?;
            self.file = append_to_lines(&self.path).map_err(RunError::io("write", &self.path))?;
        }
        Ok((later, damaged))
    }
}

/// The numbers of all steps of `run` in the order of the file, and the lines
/// that cannot be parsed. A last line without its end is still being written.
///
/// # Errors
/// The file exists but cannot be read.
pub fn read_metrics(run: &Path) -> Result<(Vec<Metrics>, Vec<DamagedLine>)> {
    let mut steps = Vec::new();
    let damaged = for_each_metrics(run, |metrics| steps.push(metrics))?;
    Ok((steps, damaged))
}

/// Calls `each` with the numbers of each step of `run`, in the order of the file. Returns the lines that cannot be parsed.
///
/// # Errors
/// The file exists but cannot be read.
pub(crate) fn for_each_metrics(run: &Path, mut each: impl FnMut(Metrics)) -> Result<Vec<DamagedLine>> {
    let path = layout::metrics(run);
    let mut damaged = Vec::new();
    let read = LineFollower::new(path.clone()).read_new(|line, text| match parse(text) {
        Ok((_, metrics)) => each(metrics),
        Err(what) => damaged.push(DamagedLine { path: path.clone(), line, what }),
    });
    read.map_err(RunError::io("read", &path))?;
    Ok(damaged)
}

/// Reads the numbers of a run's steps, and then those that the run adds.
pub struct MetricsFollower(LineFollower);

/// Numbers that a run has added.
#[derive(Debug, Default, PartialEq)]
pub struct NewMetrics {
    /// Whether the run has written its file anew, as it does to add numbers to its last step, and when it is resumed from
    /// an earlier step: what was read before no longer counts, and `steps` are all steps.
    pub is_anew: bool,
    /// The new numbers, in the order of the file.
    pub steps: Vec<Metrics>,
    /// The new lines that cannot be parsed.
    pub damaged: Vec<DamagedLine>,
}

impl MetricsFollower {
    /// Follows the run in this folder, which need not have any numbers yet.
    pub fn new(run: &Path) -> Self {
        Self(LineFollower::new(layout::metrics(run)))
    }

    /// The numbers since the last call. A last line without its end is still being written.
    ///
    /// # Errors
    /// The file exists but cannot be read.
    pub fn read_new(&mut self) -> Result<NewMetrics> {
        self.read_at_most(u64::MAX)
    }

    /// The same for at most `lines` lines. The next call reads the lines after them.
    ///
    /// # Errors
    /// The file exists but cannot be read.
    pub fn read_at_most(&mut self, lines: u64) -> Result<NewMetrics> {
        let path = self.0.path().to_owned();
        let mut new = NewMetrics::default();
        let read = self.0.read_at_most(lines, |line, text| match parse(text) {
            Ok((_, metrics)) => new.steps.push(metrics),
            Err(what) => new.damaged.push(DamagedLine { path: path.clone(), line, what }),
        });
        let is_anew = read.map_err(RunError::io("read", &path))?;
        Ok(NewMetrics { is_anew, ..new })
    }
}

/// The last numbers of `run`, from the last step to the first, until `each` returns `false` or 8 MiB are read. Lines that
/// cannot be parsed are left out.
///
/// # Errors
/// The file exists but cannot be read.
pub(crate) fn read_last_metrics(run: &Path, mut each: impl FnMut(Metrics) -> bool) -> Result<()> {
    let path = layout::metrics(run);
    match last_lines(&path, MOST_LAST, |line| parse(line).map_or(true, |(_, metrics)| each(metrics))) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(RunError::io("read", &path)(error)),
        _ => Ok(()),
    }
}

/// The step of a line, and its numbers.
fn parse(line: &[u8]) -> std::result::Result<(f64, Metrics), String> {
    let metrics = serde_json::from_slice(line).map(Metrics::from_json).map_err(|error| error.to_string())?;
    let step = metrics.get("step").ok_or("it has no `step`")?;
    Ok((step, metrics))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let run = tempfile::tempdir().unwrap();
        assert_eq!(read_metrics(run.path()).unwrap(), (vec![], vec![]));
        let mut log = MetricsLog::open(run.path()).unwrap();
        let step = |number| {
            let mut metrics = Metrics::of_step(number);
            metrics.set("reward/mean", 0.1 * number as f64);
            metrics.set("loss", f64::NAN);
            metrics
        };
        log.write(&step(1)).unwrap();
        log.file.write_all(b"\0\0\n").unwrap();
        log.write(&step(3)).unwrap();
        log.file.write_all(br#"{"step":4,"rew"#).unwrap();
        let (steps, damaged) = read_metrics(run.path()).unwrap();
        assert_eq!(steps, [step(1), step(3)]);
        assert_eq!(damaged.iter().map(|line| line.line).collect::<Vec<_>>(), [2]);
        let mut last = Vec::new();
        read_last_metrics(run.path(), |metrics| {
            last.push(metrics);
            true
        })
        .unwrap();
        assert_eq!(last, [step(3), step(1)]);
    }

    #[test]
    fn a_run_is_followed_while_it_is_written_and_resumed() {
        let run = tempfile::tempdir().unwrap();
        let mut follower = MetricsFollower::new(run.path());
        assert_eq!(follower.read_new().unwrap(), NewMetrics::default());
        let steps = |numbers: &[u64]| numbers.iter().map(|step| Metrics::of_step(*step)).collect::<Vec<_>>();
        let mut log = MetricsLog::open(run.path()).unwrap();
        for step in 1..=3 {
            log.write(&Metrics::of_step(step)).unwrap();
        }
        let new = follower.read_new().unwrap();
        assert_eq!((new.is_anew, new.steps), (false, steps(&[1, 2, 3])));
        log.file.write_all(b"x\n{\"step\":4").unwrap();
        let new = follower.read_new().unwrap();
        assert_eq!((new.is_anew, new.steps, new.damaged[0].line), (false, vec![], 4));
        // Killed and resumed from step 2.
        let mut log = MetricsLog::open(run.path()).unwrap();
        assert_eq!(log.forget_after(2).unwrap(), (1, 1));
        log.write(&Metrics::of_step(3)).unwrap();
        let new = follower.read_new().unwrap();
        assert_eq!((new.is_anew, new.steps, new.damaged), (true, steps(&[1, 2, 3]), vec![]));
        assert_eq!(follower.read_new().unwrap(), NewMetrics::default());
    }

    #[test]
    fn the_numbers_of_a_step_can_be_extended() {
        let run = tempfile::tempdir().unwrap();
        let mut log = MetricsLog::open(run.path()).unwrap();
        for step in [0, 1] {
            log.write(&Metrics::of_step(step)).unwrap();
        }
        let mut more = Metrics::of_step(1);
        more.set("val/accuracy", 0.5);
        for _ in 0..2 {
            log.extend(1, &more).unwrap();
        }
        log.write(&Metrics::of_step(2)).unwrap();
        let text = std::fs::read_to_string(layout::metrics(run.path())).unwrap();
        assert_eq!(text, "{\"step\":0}\n{\"step\":1,\"val/accuracy\":0.5}\n{\"step\":2}\n");
    }
}
