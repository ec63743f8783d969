//! `rows/`: the rows of datasets that the steps of `gavel sft` trained on, a file a step, a line a row.

use crate::damage::DamagedLine;
use crate::error::{Result, RunError};
use crate::layout;
use crate::step_files::step_files;
use gavel_data::disk;
use gavel_data::files::{WholeFile, make_folder, open_regular, read_line};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{BufReader, ErrorKind, Write};
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// The most bytes of rows that a rank keeps of a run.
const BYTES: u64 = 1 << 30;

/// A row that a step trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainedRow {
    /// `STEP.ROW`: the step, and the row's number among the rows of the step.
    pub id: String,
    /// The step.
    pub trained_step: u64,
    /// Its file and its place there.
    pub row: String,
    /// The prompt as the model read it.
    pub prompt_text: String,
    /// What the model learned, special tokens included.
    pub response: String,
    /// Tokens of the prompt.
    pub prompt_length: usize,
    /// Tokens of the response.
    pub response_length: usize,
    /// The mean cross-entropy of the response tokens before the step, in nats.
    pub loss: f64,
}

/// Adds the rows of a rank to a run's folder, up to a number of bytes.
pub(crate) struct RowStore {
    run: PathBuf,
    rank: usize,
    most: u64,
    /// The bytes of its files; not counted before the first row.
    used: Option<u64>,
    is_full: bool,
}

impl RowStore {
    pub(crate) fn new(run: &Path, rank: usize) -> Self {
        Self { run: run.to_owned(), rank, most: BYTES, used: None, is_full: false }
    }

    /// Whether there is no more room, as far as is known.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Records the rows of a step, as far as they have room. Returns the file, if there is one.
    pub(crate) fn keep(&mut self, step: u64, rows: &[TrainedRow]) -> Result<Option<PathBuf>> {
        let mut used = match self.used {
            Some(used) => used,
            None => self.count()?,
        };
        let path = layout::trained_rows(&self.run, step, self.rank);
        let io = |error: std::io::Error| RunError::io("write", &path)(error);
        let (mut text, was_full) = (Vec::new(), self.is_full);
        for row in rows {
            let line = serde_json::to_vec(row).map_err(|error| io(error.into()))?;
            let bytes = line.len() as u64 + 1;
            self.is_full |= used + bytes > self.most;
            if self.is_full {
                break;
            }
            used += bytes;
            text.extend(line);
            text.push(b'\n');
        }
        self.used = Some(used);
        let folder = layout::rows(&self.run);
        if self.is_full && !was_full {
            let most = self.most;
            tracing::warn!(
                "{} has room for {most} bytes: no more rows of this rank are kept from step {step} on",
                folder.display()
            );
        }
        if text.is_empty() {
            return Ok(None);
        }
        make_folder(&folder).map_err(RunError::io("make the folder", &folder))?;
        let mut file = WholeFile::create(&path).map_err(io)?;
        file.write_all(&text).and_then(|()| file.finish_unsynced()).map_err(io)?;
        Ok(Some(path))
    }

    /// The bytes of the files that the rank has written.
    fn count(&self) -> Result<u64> {
        let own = step_files(&layout::rows(&self.run))?.into_iter().flat_map(|(step, paths)| {
            let path = layout::trained_rows(&self.run, step, self.rank);
            paths.into_iter().find(|other| *other == path)
        });
        own.map(|path| fs::metadata(&path).map(|file| file.len()).map_err(RunError::io("read", &path))).sum()
    }
}

/// Removes the rows of the steps after `step`.
pub(crate) fn forget_rows_after(run: &Path, step: u64) -> Result<()> {
    let files = step_files(&layout::rows(run))?;
    let mut later = files.range((Bound::Excluded(step), Bound::Unbounded)).flat_map(|(_, paths)| paths);
    later.try_for_each(|path| disk::remove_file(path).map_err(RunError::io("remove", path)))
}

/// The rows that a run's steps trained on, step after step, as far as they are `wanted`; with `step`, of this step
/// alone. Beside them, the lines that cannot be parsed.
///
/// # Errors
/// A file exists but cannot be read.
pub fn read_rows(
    run: &Path,
    step: Option<u64>,
    wanted: impl Fn(&TrainedRow) -> bool,
) -> Result<(Vec<TrainedRow>, Vec<DamagedLine>)> {
    let (mut rows, mut damaged, mut text) = (Vec::new(), Vec::new(), Vec::new());
    let files = step_files(&layout::rows(run))?;
    let of_steps = files.iter().filter(|(of, _)| step.is_none_or(|step| step == **of));
    for path in of_steps.flat_map(|(_, paths)| paths) {
        let file = match open_regular(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(RunError::io("read", path)(error)),
        };
        let mut file = BufReader::new(file);
        for line in 1.. {
            if read_line(&mut file, &mut text).map_err(RunError::io("read", path))? == 0 {
                break;
            }
            match serde_json::from_slice::<TrainedRow>(&text) {
                Ok(row) => rows.extend(wanted(&row).then_some(row)),
                Err(error) => damaged.push(DamagedLine { path: path.clone(), line, what: error.to_string() }),
            }
        }
    }
    Ok((rows, damaged))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: u64, number: usize) -> TrainedRow {
        TrainedRow {
            id: format!("{step}.{number}"),
            trained_step: step,
            row: format!("rows.jsonl, line {}", number + 1),
            prompt_text: "<user>q\u{1}\"\n".into(),
            response: "ä</s>".into(),
            prompt_length: 3,
            response_length: 2,
            loss: 0.1 + 0.2,
        }
    }

    fn ids(run: &Path, step: Option<u64>) -> Vec<String> {
        read_rows(run, step, |_| true).unwrap().0.into_iter().map(|row| row.id).collect()
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let run = tempfile::tempdir().unwrap();
        let run = run.path();
        assert_eq!(read_rows(run, None, |_| true).unwrap(), (vec![], vec![]));
        let [mut first, mut second] = [0, 1].map(|rank| RowStore::new(run, rank));
        assert_eq!(first.keep(1, &[]).unwrap(), None);
        let path = first.keep(10, &[row(10, 0), row(10, 1)]).unwrap().unwrap();
        assert_eq!(path, run.join("rows/step-000010.jsonl"));
        second.keep(10, &[row(10, 2)]).unwrap();
        second.keep(9, &[row(9, 0)]).unwrap();
        assert_eq!(ids(run, None), ["9.0", "10.0", "10.1", "10.2"]);
        assert_eq!(ids(run, Some(10)), ["10.0", "10.1", "10.2"]);
        let (found, damaged) = read_rows(run, None, |found| found.id == "10.1").unwrap();
        assert_eq!((found, damaged), (vec![row(10, 1)], vec![]));

        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen('{', "", 1)).unwrap();
        let (found, damaged) = read_rows(run, Some(10), |_| true).unwrap();
        assert_eq!(found, [row(10, 1), row(10, 2)]);
        assert_eq!((&damaged[0].path, damaged[0].line, damaged.len()), (&path, 1, 1));

        forget_rows_after(run, 9).unwrap();
        assert_eq!(ids(run, None), ["9.0"]);
    }

    #[test]
    fn no_more_bytes_are_kept_than_there_is_room_for_however_often_the_run_is_resumed() {
        let run = tempfile::tempdir().unwrap();
        let run = run.path();
        let bytes = serde_json::to_vec(&row(1, 0)).unwrap().len() as u64 + 1;
        let store = || RowStore { most: 3 * bytes, ..RowStore::new(run, 0) };
        let mut before = store();
        before.keep(1, &[row(1, 0), row(1, 1)]).unwrap();
        // The rows of another rank take no room.
        RowStore::new(run, 1).keep(1, &[row(1, 2)]).unwrap();
        let mut resumed = store();
        assert!(resumed.keep(2, &[row(2, 0), row(2, 1)]).unwrap().is_some());
        let shorter = TrainedRow { response: String::new(), ..row(3, 0) };
        for mut store in [resumed, store()] {
            assert_eq!(store.keep(3, &[row(3, 0), shorter.clone()]).unwrap(), None);
        }
        assert_eq!(ids(run, None), ["1.0", "1.1", "1.2", "2.0"]);
    }
}
