//! Looking up single tasks in `tasks.jsonl`, however many there are.

use crate::error::{Result, RunError};
use crate::layout;
use crate::line_index::LineIndex;
use crate::tasks::{parse_task, ranks_with_tasks};
use gavel_data::Task;
use gavel_data::files::{open_regular, read_line};
use std::collections::HashMap;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Finds tasks by their hash.
pub(crate) struct TaskFinder {
    files: Vec<(PathBuf, LineIndex)>,
    /// The tasks that were found. Samples of a group have one.
    found: Mutex<HashMap<String, Option<Arc<Task>>>>,
}

impl TaskFinder {
    /// The tasks that the folder of a run has now.
    pub(crate) fn open(run: &Path) -> Result<Self> {
        let files = ranks_with_tasks(run)?.into_iter().map(|rank| {
            let path = layout::tasks(run, rank);
            let index = LineIndex::of(&path, &layout::tasks_index(run, rank), r#"{"hash":""#);
            index.map_err(RunError::io("read", &path)).map(|index| (path, index))
        });
        Ok(Self { files: files.collect::<Result<_>>()?, found: Mutex::default() })
    }

    /// The task with this hash.
    pub(crate) fn get(&self, hash: &str) -> Result<Option<Arc<Task>>> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = found.get(hash) {
            return Ok(task.clone());
        }
        let task = self.read(hash)?.map(Arc::new);
        found.insert(hash.to_owned(), task.clone());
        Ok(task)
    }

    fn read(&self, hash: &str) -> Result<Option<Task>> {
        for (path, index) in &self.files {
            let io = || RunError::io("read", path);
            for place in index.find(hash).map_err(io())? {
                let mut file = open_regular(path).map_err(io())?;
                file.seek(SeekFrom::Start(place.offset)).map_err(io())?;
                let mut line = Vec::new();
                read_line(&mut BufReader::new(file), &mut line).map_err(io())?;
                // A line that cannot be parsed may stand before a whole one with the same task.
                if let Ok((found, task)) = parse_task(&line)
                    && found == hash
                {
                    return Ok(Some(task));
                }
            }
        }
        Ok(None)
    }
}
