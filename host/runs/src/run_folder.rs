//! The folder of a run under way, and everything that the run writes into it.
//! Only the process that holds it writes there. A run never writes into the
//! folder of another.

use crate::calls::{CallStore, forget_calls_after};
use crate::checkpoints::{Checkpoints, Retention, State};
use crate::config;
use crate::ending::{EndKind, Ending, forget_ending, keep_ending};
use crate::error::{Result, RunError, listed};
use crate::format::{keep_format, read_format};
use crate::layout;
use crate::metrics::Metrics;
use crate::metrics_log::MetricsLog;
use crate::queue::QueuedGroup;
use crate::rows::{RowStore, TrainedRow, forget_rows_after};
use crate::run_lock::RunLock;
use crate::samples::{SampleWriter, ScoredSample, forget_samples_after};
use crate::tasks::TaskStore;
use crate::tensorboard::EventWriter;
use gavel_data::files::make_folder;
use gavel_data::{OutsideCall, disk};
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Table;

/// Where and how a run is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderConfig {
    /// The folder of all runs.
    pub dir: PathBuf,
    /// The name of the run's folder in it.
    pub name: String,
    /// Whether TensorBoard's event files are written.
    pub tensorboard: bool,
    /// Whether samples are recorded with their token ids.
    pub token_ids: bool,
    /// The command line of this process, without secrets, for `config.toml`.
    pub command: Option<String>,
}

/// The folder of a run under way. Of several ranks, rank 0 records what belongs to all of them, and each rank the samples
/// that it drew.
pub struct RunFolder {
    path: PathBuf,
    rank: usize,
    shared: Option<Shared>,
    tasks: TaskStore,
    rows: RowStore,
    calls: CallStore,
    /// Files of samples, rows and requests that a power cut could still damage.
    unsynced: Vec<PathBuf>,
    token_ids: bool,
}

/// What rank 0 records for all.
struct Shared {
    /// The command line of this process.
    command: Option<String>,
    metrics: MetricsLog,
    events: Option<EventWriter>,
    /// The rows that were answered in validations.
    validation: TaskStore,
    _lock: RunLock,
}

impl RunFolder {
    /// Creates a folder of the configured name, or of that name with the first
    /// free number, for a run with the configuration `text` (TOML).
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn create(folder: &FolderConfig, text: &str) -> Result<Self> {
        let FolderConfig { dir, name, .. } = folder;
        make_folder(dir).map_err(RunError::io("make the folder", dir))?;
        let mut path = dir.join(name);
        for number in 2.. {
            match fs::create_dir(&path) {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    path = dir.join(format!("{name}-{number}"));
                }
                Err(error) => return Err(RunError::io("make the folder", &path)(error)),
            }
        }
        disk::sync_folder(dir).map_err(RunError::io("sync", dir))?;
        let lock = RunLock::take(&path)?;
        let opened = Self::open(path, folder, lock)?;
        opened.keep_config(text)?;
        Ok(opened)
    }

    /// Checks that a folder can be created where [`RunFolder::create`] would create it, and leaves nothing behind.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn check(folder: &FolderConfig) -> Result<()> {
        let dir = std::path::absolute(&folder.dir).map_err(RunError::io("make the folder", &folder.dir))?;
        // The part of the path that exists; at least the root.
        let existing = dir.ancestors().find(|path| path.exists()).unwrap_or(&dir);
        let probe = existing.join(format!(".gavel-{}", std::process::id()));
        let made = fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe));
        made.map_err(RunError::io("make a folder in", existing))
    }

    /// Opens the newest folder of the configured name to continue in it. Its configuration must be `text`, except for
    /// the keys and tables `may_differ`; `complete` adds the defaults of newer keys to it. The content of the folder is
    /// not changed yet.
    ///
    /// # Errors
    /// There is no such folder, another process uses it, a newer version of
    /// Gavel wrote it, or its configuration differs.
    pub fn resume(
        folder: &FolderConfig,
        text: &str,
        may_differ: &[&str],
        complete: impl FnOnce(Table) -> Table,
    ) -> Result<Self> {
        let FolderConfig { dir, name, .. } = folder;
        let newest = newest(dir, name).ok_or_else(|| RunError::NoRun { run: dir.join(name) })?;
        read_format(&newest)?;
        let lock = RunLock::take(&newest)?;
        config::check(&newest, text, may_differ, complete)?;
        Self::open(newest, folder, lock)
    }

    /// The folder `path` of rank 0, for another rank.
    ///
    /// # Errors
    /// This machine does not have that folder, or it cannot be read.
    pub fn join(path: &Path, folder: &FolderConfig, rank: usize) -> Result<Self> {
        if !path.is_dir() {
            return Err(RunError::NotShared { run: path.to_owned() });
        }
        let (tasks, rows, calls) =
            (TaskStore::of_rank(path, rank)?, RowStore::new(path, rank), CallStore::new(path, rank));
        let path = path.to_owned();
        Ok(Self { path, rank, shared: None, tasks, rows, calls, unsynced: Vec::new(), token_ids: folder.token_ids })
    }

    fn open(path: PathBuf, folder: &FolderConfig, lock: RunLock) -> Result<Self> {
        let checkpoints = layout::checkpoints(&path);
        make_folder(&checkpoints).map_err(RunError::io("make the folder", &checkpoints))?;
        let (tasks, rows, calls) = (TaskStore::open(&path)?, RowStore::new(&path, 0), CallStore::new(&path, 0));
        let metrics = MetricsLog::open(&path)?;
        let events = match folder.tensorboard {
            true => Some(EventWriter::create(&path).map_err(RunError::io("write events in", &path))?),
            false => None,
        };
        let (command, validation) = (folder.command.clone(), TaskStore::open(&layout::validation(&path))?);
        let shared = Some(Shared { command, metrics, events, validation, _lock: lock });
        Ok(Self { path, rank: 0, shared, tasks, rows, calls, unsynced: Vec::new(), token_ids: folder.token_ids })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its checkpoints.
    pub fn checkpoints(&self) -> Checkpoints {
        Checkpoints::new(&self.path)
    }

    /// Writes the configuration, behind a line about this process and the lines about earlier ones. The run is under way
    /// from here on.
    pub fn keep_config(&self, text: &str) -> Result<()> {
        keep_format(&self.path)?;
        forget_ending(&self.path)?;
        let command = self.shared.as_ref().and_then(|shared| shared.command.as_deref());
        config::write(&self.path, command, text)
    }

    /// Records the samples of a step, with the prompts that `prompt_text` makes of their tokens.
    pub fn keep_samples<'a>(
        &mut self,
        step: u64,
        samples: impl IntoIterator<Item = ScoredSample<'a>>,
        prompt_text: impl FnMut(&[u32]) -> Option<Arc<str>>,
    ) -> Result<()> {
        let writer = SampleWriter::of_rank(&self.path, step, self.rank)?.token_ids(self.token_ids);
        self.unsynced.push(writer.write_all(&mut self.tasks, samples, prompt_text)?);
        Ok(())
    }

    /// Whether the run has room for further rows of this rank, as far as is known before they are written.
    pub fn has_room_for_rows(&self) -> bool {
        !self.rows.is_full()
    }

    /// Records rows of a dataset that this rank trained on in a step, as far as the run has room for them.
    pub fn keep_rows(&mut self, step: u64, rows: &[TrainedRow]) -> Result<()> {
        self.unsynced.extend(self.rows.keep(step, rows)?);
        Ok(())
    }

    /// Records requests of this rank's plugins that ended in a step, as far as the run has room for them.
    pub fn keep_calls(&mut self, step: u64, calls: &[OutsideCall]) -> Result<()> {
        self.calls.add(step, calls)?;
        self.unsynced.extend(self.calls.finish()?);
        Ok(())
    }

    /// Records answers to the validation set after `step`, on rank 0.
    pub fn keep_validation<'a>(
        &mut self,
        step: u64,
        samples: impl IntoIterator<Item = ScoredSample<'a>>,
        prompt_text: impl FnMut(&[u32]) -> Option<Arc<str>>,
    ) -> Result<()> {
        let Some(shared) = &mut self.shared else { return Ok(()) };
        let writer = SampleWriter::create(&layout::validation(&self.path), step)?;
        self.unsynced.push(writer.write_all(&mut shared.validation, samples, prompt_text)?);
        Ok(())
    }

    /// Adds further numbers of the last step, which was logged before, on rank 0.
    pub fn log_more(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        let Some(shared) = &mut self.shared else { return Ok(()) };
        let all = shared.metrics.extend(step, metrics)?;
        let Some(events) = &mut shared.events else { return Ok(()) };
        // They may have been added before, by a process that then was killed.
        events.purge(step).and_then(|()| events.write(step, &all)).map_err(RunError::io("write events in", &self.path))
    }

    /// Adds the numbers of a step, on rank 0.
    pub fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        let Some(shared) = &mut self.shared else { return Ok(()) };
        shared.metrics.write(metrics)?;
        match &mut shared.events {
            Some(events) => events.write(step, metrics).map_err(RunError::io("write events in", &self.path)),
            None => Ok(()),
        }
    }

    /// Saves the checkpoint of `state.step` and removes those that need not be kept. `write` puts the policy and its
    /// optimiser into the checkpoint's folder; `queue` has its groups. Everything that the run recorded before is
    /// synced first. If that step has a checkpoint, it is this run's, and nothing is done.
    pub fn save_checkpoint<E: From<RunError>>(
        &mut self,
        state: &State,
        queue: &[QueuedGroup],
        retention: Retention,
        write: impl FnOnce(&Path) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let checkpoints = self.checkpoints();
        if checkpoints.path(state.step).exists() {
            return Ok(());
        }
        self.sync()?;
        checkpoints.save(state, queue, write)?;
        Ok(checkpoints.prune(state, retention)?)
    }

    /// Records the end of the run, on rank 0: of one that failed, with its error.
    pub fn keep_end(&self, kind: EndKind, error: Option<String>) -> Result<()> {
        match &self.shared {
            Some(_) => keep_ending(&self.path, &Ending::now(kind, error)),
            None => Ok(()),
        }
    }

    /// Syncs everything that was recorded, so that a checkpoint of this moment
    /// may rely on it after a power cut.
    pub fn sync(&mut self) -> Result<()> {
        self.tasks.sync()?;
        for path in &self.unsynced {
            disk::sync_file(path).map_err(RunError::io("sync", path))?;
        }
        let folders: BTreeSet<&Path> = self.unsynced.iter().map(|path| disk::folder_of(path)).collect();
        for folder in folders {
            disk::sync_folder(folder).map_err(RunError::io("sync", folder))?;
        }
        self.unsynced.clear();
        let Some(shared) = &mut self.shared else { return Ok(()) };
        shared.validation.sync()?;
        shared.metrics.sync()
    }

    /// Removes the records of the steps after `step`, from which the run continues, and lines of metrics that cannot be
    /// parsed. Checkpoints are removed first, so that an interruption never leaves a newest checkpoint whose steps have
    /// no metrics.
    pub fn rewind(&mut self, step: u64) -> Result<Rewound> {
        let checkpoints = self.checkpoints().forget_after(step)?;
        let samples = forget_samples_after(&self.path, step)?;
        forget_samples_after(&layout::validation(&self.path), step)?;
        forget_rows_after(&self.path, step)?;
        forget_calls_after(&self.path, step)?;
        let shared = self.shared.as_mut();
        let (metrics, damaged) = match shared {
            Some(Shared { metrics, events, .. }) => {
                if let Some(events) = events {
                    events.purge(step + 1).map_err(RunError::io("write events in", &self.path))?;
                }
                metrics.forget_after(step)?
            }
            None => (0, 0),
        };
        Ok(Rewound { metrics, samples, checkpoints, damaged })
    }
}

/// The records that were dropped when a run was resumed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewound {
    /// Lines of metrics of later steps.
    pub metrics: u64,
    /// Later steps that had samples.
    pub samples: usize,
    /// Later steps that had a checkpoint.
    pub checkpoints: Vec<u64>,
    /// Lines of metrics that cannot be parsed.
    pub damaged: u64,
}

impl Rewound {
    /// The dropped records of later steps, in words; `None` if there were none.
    pub fn later(&self) -> Option<String> {
        let mut dropped = Vec::new();
        if self.metrics > 0 {
            dropped.push(format!("{} lines of metrics", self.metrics));
        }
        if self.samples > 0 {
            dropped.push(format!("the trajectories of {} steps", self.samples));
        }
        if !self.checkpoints.is_empty() {
            dropped.push(format!("the checkpoints of steps {}", listed(&self.checkpoints)));
        }
        (!dropped.is_empty()).then(|| dropped.join(", "))
    }
}

/// The folder of the last run of this name.
fn newest(dir: &Path, name: &str) -> Option<PathBuf> {
    let numbered = (2..).map(|number| dir.join(format!("{name}-{number}")));
    std::iter::once(dir.join(name)).chain(numbered).take_while(|path| path.is_dir()).last()
}
