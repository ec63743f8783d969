//! `tasks.jsonl`: each task once. Samples name it by its hash.

use crate::damage::DamagedLine;
use crate::error::{Result, RunError};
use crate::layout;
use gavel_data::Task;
use gavel_data::disk;
use gavel_data::files::{append_to_lines, open_regular, read_line};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
struct Line<'a> {
    hash: Cow<'a, str>,
    task: Cow<'a, Task>,
}

/// Adds tasks to a folder, each once.
pub struct TaskStore {
    path: PathBuf,
    known: HashSet<String>,
    /// The last task with its hash: the samples of a group follow each other.
    last: Option<(Arc<Task>, String)>,
    /// Opened for the first task.
    file: Option<BufWriter<File>>,
    /// Whether a power cut could still remove some.
    is_unsynced: bool,
}

impl TaskStore {
    /// Continues with the tasks that `folder` has.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::of_rank(folder, 0)
    }

    /// The same, for what a rank adds to the folder that it shares with others.
    pub(crate) fn of_rank(folder: &Path, rank: usize) -> Result<Self> {
        // A task whose line is damaged is written again when it is drawn again.
        let mut known = Tasks::new();
        read_tasks_of(&layout::tasks(folder, rank), &mut known)?;
        Ok(Self {
            path: layout::tasks(folder, rank),
            known: known.into_keys().collect(),
            last: None,
            file: None,
            is_unsynced: false,
        })
    }

    /// Records a task and returns its hash.
    pub fn keep(&mut self, task: &Arc<Task>) -> Result<&str> {
        if !self.last.as_ref().is_some_and(|(last, _)| Arc::ptr_eq(last, task)) {
            let hash = self.keep_next(task)?;
            self.last = Some((task.clone(), hash));
        }
        Ok(self.last.as_ref().map_or("", |(_, hash)| hash))
    }

    fn keep_next(&mut self, task: &Task) -> Result<String> {
        let io = RunError::io("write", &self.path);
        let text = serde_json::to_vec(task).map_err(|error| io(error.into()))?;
        let hash = blake3::hash(&text).to_hex().to_string();
        if self.known.contains(&hash) {
            return Ok(hash);
        }
        let line = Line { hash: Cow::Borrowed(&hash), task: Cow::Borrowed(task) };
        self.write(&line).map_err(RunError::io("write", &self.path))?;
        self.known.insert(hash.clone());
        self.is_unsynced = true;
        Ok(hash)
    }

    fn write(&mut self, line: &Line<'_>) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::new(append_to_lines(&self.path)?)),
        };
        serde_json::to_writer(&mut *file, line)?;
        file.write_all(b"\n")
    }

    /// Hands the tasks to the system, so that they outlive this process.
    pub(crate) fn flush(&mut self) -> Result<()> {
        match &mut self.file {
            Some(file) => file.flush().map_err(RunError::io("write", &self.path)),
            None => Ok(()),
        }
    }

    /// Syncs the tasks, so that they outlive this process and a power cut.
    pub fn sync(&mut self) -> Result<()> {
        let Some(file) = self.file.as_mut().filter(|_| self.is_unsynced) else { return Ok(()) };
        file.flush()
            .and_then(|()| disk::sync(file.get_ref(), &self.path))
            .and_then(|()| disk::sync_folder(disk::folder_of(&self.path)))
            .map_err(RunError::io("write", &self.path))?;
        self.is_unsynced = false;
        Ok(())
    }
}

/// Tasks by their hash.
pub type Tasks = HashMap<String, Arc<Task>>;

/// All tasks, and the lines that cannot be parsed or repeat a task of their file.
pub fn read_tasks(folder: &Path) -> Result<(Tasks, Vec<DamagedLine>)> {
    let (mut tasks, mut damaged) = (Tasks::new(), Vec::new());
    for rank in ranks_with_tasks(folder)? {
        damaged.extend(read_tasks_of(&layout::tasks(folder, rank), &mut tasks)?);
    }
    Ok((tasks, damaged))
}

/// The ranks that have a file of tasks in `folder`, in order.
pub(crate) fn ranks_with_tasks(folder: &Path) -> Result<Vec<usize>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(RunError::io("read", folder)(error)),
    };
    let mut ranks = Vec::new();
    for entry in entries {
        let name = entry.map_err(RunError::io("read", folder))?.file_name();
        ranks.extend(name.to_str().and_then(|name| layout::rank_of(name, "tasks")));
    }
    ranks.sort_unstable();
    Ok(ranks)
}

/// The task of a line, with its hash.
pub(crate) fn parse_task(line: &[u8]) -> std::result::Result<(String, Task), serde_json::Error> {
    let Line { hash, task } = serde_json::from_slice(line)?;
    Ok((hash.into_owned(), task.into_owned()))
}

/// Adds the tasks of a file; returns the lines that cannot be parsed or repeat a task of the file.
fn read_tasks_of(path: &Path, tasks: &mut Tasks) -> Result<Vec<DamagedLine>> {
    let mut damaged = Vec::new();
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(damaged),
        Err(error) => return Err(RunError::io("read", path)(error)),
    };
    let mut lines = BufReader::new(file);
    let mut text = Vec::new();
    let mut first_lines = HashMap::new();
    for line in 1.. {
        read_line(&mut lines, &mut text).map_err(RunError::io("read", path))?;
        // A line without its end was being written when the process was killed; no sample names it yet.
        if text.pop() != Some(b'\n') {
            break;
        }
        let what = match serde_json::from_slice::<Line<'_>>(&text) {
            Ok(Line { hash, task }) => match first_lines.entry(hash.into_owned()) {
                Entry::Occupied(first) => format!("task {} is on line {} too", first.key(), first.get()),
                Entry::Vacant(place) => {
                    tasks.insert(place.key().clone(), Arc::new(task.into_owned()));
                    place.insert(line);
                    continue;
                }
            },
            Err(error) => error.to_string(),
        };
        damaged.push(DamagedLine { path: path.to_owned(), line, what });
    }
    Ok(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(answer: &str) -> Arc<Task> {
        let row = serde_json::json!({"prompt": "q", "answer": answer, "weights": [0.1, 1e-300]});
        Task::from_row(serde_json::from_value(row).unwrap(), 0, "train").unwrap().into()
    }

    #[test]
    fn a_task_is_there_once_however_often_the_run_was_killed() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (task("a"), task("b"));
        let mut store = TaskStore::open(folder.path()).unwrap();
        let hash = store.keep(&a).unwrap().to_owned();
        assert_eq!(store.keep(&a).unwrap(), hash);
        assert_ne!(store.keep(&b).unwrap(), hash);
        store.sync().unwrap();
        // Killed while `b` was written.
        let file = layout::tasks(folder.path(), 0);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, &text[..text.len() - 9]).unwrap();
        let mut store = TaskStore::open(folder.path()).unwrap();
        assert_eq!(store.keep(&a).unwrap(), hash);
        let other = store.keep(&b).unwrap().to_owned();
        drop(store);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        let (tasks, damaged) = read_tasks(folder.path()).unwrap();
        assert_eq!((&tasks[&hash], &tasks[&other], tasks.len()), (&a, &b, 2));
        assert_eq!(damaged, []);

        // A line that is there twice.
        std::fs::write(&file, format!("{text}{}\n", text.lines().next().unwrap())).unwrap();
        let (tasks, damaged) = read_tasks(folder.path()).unwrap();
        let says = format!("{}, line 3: task {hash} is on line 1 too", file.display());
        assert_eq!((tasks.len(), damaged[0].to_string(), damaged.len()), (2, says, 1));

        // A power cut left zeros in place of a line that others follow.
        let zeros = "\0".repeat(text.find('\n').unwrap());
        std::fs::write(&file, zeros + &text[text.find('\n').unwrap()..]).unwrap();
        let (tasks, damaged) = read_tasks(folder.path()).unwrap();
        assert_eq!((&tasks[&other], tasks.len()), (&b, 1));
        assert_eq!((&damaged[0].path, damaged[0].line, damaged.len()), (&file, 1, 1));
        let mut store = TaskStore::open(folder.path()).unwrap();
        assert_eq!(store.keep(&a).unwrap(), hash);
        store.sync().unwrap();
        assert_eq!(read_tasks(folder.path()).unwrap().0.len(), 2);
    }
}
