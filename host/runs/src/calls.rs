//! `calls/`: the requests that plugins made, a file a step, a line a request. They have times, and nothing that is
//! compared between runs.

use crate::error::{Result, RunError};
use crate::layout;
use crate::step_files::step_files;
use gavel_data::files::{WholeFile, make_folder};
use gavel_data::{OutsideCall, disk};
use std::fs;
use std::io::{BufWriter, Write};
use std::ops::Bound;
use std::path::{Path, PathBuf};

/// The most bytes of requests that a rank keeps of a run.
const BYTES: u64 = 1 << 30;

/// Adds the requests that a rank's plugins made to a run's folder, up to a number of bytes.
pub struct CallStore {
    run: PathBuf,
    rank: usize,
    most: u64,
    /// The bytes of its files; not counted before the first request.
    used: Option<u64>,
    is_full: bool,
    /// The file of the step that is being written.
    open: Option<(PathBuf, BufWriter<WholeFile>)>,
}

impl CallStore {
    /// The store of a rank in the folder of a run.
    pub fn new(run: &Path, rank: usize) -> Self {
        Self { run: run.to_owned(), rank, most: BYTES, used: None, is_full: false, open: None }
    }

    /// Adds requests to the file of `step`, as far as they have room. A step's file must be finished before another's
    /// is begun.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, step: u64, calls: &[OutsideCall]) -> Result<()> {
        if calls.is_empty() || self.is_full {
            return Ok(());
        }
        let mut used = match self.used {
            Some(used) => used,
            None => self.count()?,
        };
        let (path, mut out) = match self.open.take() {
            Some(open) => open,
            None => self.create(step)?,
        };
        for call in calls {
            let line = serde_json::to_vec(call).map_err(|error| RunError::io("write", &path)(error.into()))?;
            let bytes = line.len() as u64 + 1;
            if used + bytes > self.most {
                self.is_full = true;
                let (folder, most) = (layout::calls(&self.run), self.most);
                tracing::warn!(
                    "{} has room for {most} bytes: no more requests of this rank's plugins are kept from step {step} on",
                    folder.display()
                );
                break;
            }
            out.write_all(&line).and_then(|()| out.write_all(b"\n")).map_err(RunError::io("write", &path))?;
            used += bytes;
        }
        self.used = Some(used);
        self.open = Some((path, out));
        Ok(())
    }

    /// Gives the file that was written its name, and returns it. It is not synced.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(&mut self) -> Result<Option<PathBuf>> {
        let Some((path, out)) = self.open.take() else { return Ok(None) };
        let whole = out.into_inner().map_err(std::io::IntoInnerError::into_error);
        whole.and_then(WholeFile::finish_unsynced).map_err(RunError::io("write", &path))?;
        Ok(Some(path))
    }

    fn create(&self, step: u64) -> Result<(PathBuf, BufWriter<WholeFile>)> {
        let (folder, path) = (layout::calls(&self.run), layout::step_calls(&self.run, step, self.rank));
        make_folder(&folder).map_err(RunError::io("make the folder", &folder))?;
        let file = WholeFile::create(&path).map_err(RunError::io("write", &path))?;
        Ok((path, BufWriter::new(file)))
    }

    /// The bytes of the files that the rank has written.
    fn count(&self) -> Result<u64> {
        let own = step_files(&layout::calls(&self.run))?.into_iter().flat_map(|(step, paths)| {
            let path = layout::step_calls(&self.run, step, self.rank);
            paths.into_iter().find(|other| *other == path)
        });
        own.map(|path| fs::metadata(&path).map(|file| file.len()).map_err(RunError::io("read", &path))).sum()
    }
}

/// The files with the requests that ended in a step, in the order of ranks.
///
/// # Errors
/// Their folder exists but cannot be read.
pub fn call_files(run: &Path, step: u64) -> Result<Vec<PathBuf>> {
    Ok(step_files(&layout::calls(run))?.remove(&step).unwrap_or_default())
}

/// Removes the requests of the steps after `step`.
pub(crate) fn forget_calls_after(run: &Path, step: u64) -> Result<()> {
    let files = step_files(&layout::calls(run))?;
    let mut later = files.range((Bound::Excluded(step), Bound::Unbounded)).flat_map(|(_, paths)| paths);
    later.try_for_each(|path| disk::remove_file(path).map_err(RunError::io("remove", path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{OutsideCallEnding, OutsideCallKind};

    fn call(made_for: &str) -> OutsideCall {
        OutsideCall {
            made_for: Some(made_for.into()),
            plugin: "judge".into(),
            input: "ab12".into(),
            seed: 7,
            kind: OutsideCallKind::RewardModel,
            endpoint: "critic".into(),
            timestamp: 1_700_000_000.25,
            waited: 0.5,
            ran: 1.25,
            question_bytes: 3,
            answer_bytes: 0,
            ended: OutsideCallEnding::OutOfBudget,
            error: Some("no\nmemory".into()),
            ..OutsideCall::default()
        }
    }

    /// What a rank has kept, and the calls that stand in each line.
    fn kept(run: &Path) -> Vec<(String, Vec<String>)> {
        let mut files: Vec<_> = fs::read_dir(run.join("calls")).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let of = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["for"].as_str().unwrap().into();
        let read = |path: PathBuf| fs::read_to_string(path).unwrap().lines().map(of).collect();
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        files.into_iter().map(|path| (name(&path), read(path))).collect()
    }

    #[test]
    fn a_line_has_what_is_known() {
        let run = tempfile::tempdir().unwrap();
        let mut store = CallStore::new(run.path(), 0);
        store.add(3, &[call("3.0.1")]).unwrap();
        let path = store.finish().unwrap().unwrap();
        assert_eq!(path, run.path().join("calls/step-000003.jsonl"));
        let expected = concat!(
            r#"{"for":"3.0.1","plugin":"judge","input":"ab12","seed":7,"kind":"reward-model","endpoint":"critic","#,
            r#""timestamp":1700000000.25,"waited":0.5,"ran":1.25,"question_bytes":3,"answer_bytes":0,"#,
            r#""ended":"out-of-budget","error":"no\nmemory"}"#,
            "\n"
        );
        assert_eq!(fs::read_to_string(path).unwrap(), expected);
    }

    #[test]
    fn each_step_and_rank_has_its_file_and_later_steps_are_forgotten() {
        let run = tempfile::tempdir().unwrap();
        let run = run.path();
        let [mut first, mut second] = [0, 1].map(|rank| CallStore::new(run, rank));
        first.add(1, &[]).unwrap();
        assert_eq!(first.finish().unwrap(), None);
        for (step, calls) in [(1, &["a", "b"][..]), (2, &["c"]), (10, &["d"])] {
            calls.iter().for_each(|id| first.add(step, &[call(id)]).unwrap());
            first.finish().unwrap();
        }
        second.add(2, &[call("e")]).unwrap();
        second.finish().unwrap();
        forget_calls_after(run, 2).unwrap();
        let file = |name: &str, calls: &[&str]| (name.to_owned(), calls.iter().map(|id| (*id).to_owned()).collect());
        let expected = [
            file("step-000001.jsonl", &["a", "b"]),
            file("step-000002.jsonl", &["c"]),
            file("step-000002.rank-1.jsonl", &["e"]),
        ];
        assert_eq!(kept(run), expected);
        let names = call_files(run, 2).unwrap();
        assert!(names.len() == 2 && names[1].ends_with("calls/step-000002.rank-1.jsonl"), "{names:?}");
        assert_eq!(call_files(run, 10).unwrap(), Vec::<PathBuf>::new());
    }

    #[test]
    fn no_more_bytes_are_kept_than_there_is_room_for_however_often_the_run_is_resumed() {
        let run = tempfile::tempdir().unwrap();
        let run = run.path();
        let bytes = serde_json::to_vec(&call("a")).unwrap().len() as u64 + 1;
        let store = || CallStore { most: 3 * bytes, ..CallStore::new(run, 0) };
        let mut before = store();
        before.add(1, &[call("a"), call("b")]).unwrap();
        before.finish().unwrap();
        let mut resumed = store();
        resumed.add(2, &[call("c"), call("d")]).unwrap();
        resumed.add(2, &[call("e")]).unwrap();
        resumed.finish().unwrap();
        let kept: Vec<_> = kept(run).into_iter().flat_map(|(_, calls)| calls).collect();
        assert_eq!(kept, ["a", "b", "c"]);
    }
}
