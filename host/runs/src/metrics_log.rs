//! `metrics.jsonl`: the numbers of each step, a line a step.

use crate::damage::DamagedLine;
use crate::error::{Result, RunError};
use crate::layout;
use crate::metrics::Metrics;
use gavel_data::disk;
use gavel_data::files::{append_to_lines, open_regular, read_line, write_whole};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

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
    let path = layout::metrics(run);
    let mut file = match open_regular(&path) {
        Ok(file) => BufReader::new(file),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Default::default()),
        Err(error) => return Err(RunError::io("read", &path)(error)),
    };
    let (mut steps, mut damaged, mut text) = (Vec::new(), Vec::new(), Vec::new());
    for line in 1.. {
        read_line(&mut file, &mut text).map_err(RunError::io("read", &path))?;
        if !text.ends_with(b"\n") {
            break;
        }
        match parse(&text) {
            Ok((_, metrics)) => steps.push(metrics),
            Err(what) => damaged.push(DamagedLine { path: path.clone(), line, what }),
        }
    }
    Ok((steps, damaged))
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
