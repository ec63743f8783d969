//! A run's folder: `config.toml`, `metrics.jsonl`, `checkpoints/`, TensorBoard's
//! event files, and what a replay needs ([`gavel_scoring::recording`]). A run
//! never writes into the folder of another, and no two processes into one.

use crate::config::Config;
use crate::error::{PipelineError, Result};
use crate::metrics::Metrics;
use crate::run_lock::RunLock;
use crate::tensorboard::EventWriter;
use gavel_data::files::{append_to_lines, make_folder, write_whole};
use gavel_data::{Group, Member, disk};
use gavel_plugin::Tape;
use gavel_scoring::recording::{SampleWriter, ScoredSample, TaskStore, tape_folder};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The folder of a run under way.
pub(crate) struct RunFolder {
    path: PathBuf,
    metrics: File,
    tasks: TaskStore,
    tape: Tape,
    /// Files of samples that a power cut could still take.
    unsynced: Vec<PathBuf>,
    events: Option<EventWriter>,
    _lock: RunLock,
}

const CONFIG: &str = "config.toml";
const METRICS: &str = "metrics.jsonl";

impl RunFolder {
    /// A folder of the configured name, or of the first free one with a number.
    pub(crate) fn create<T: Serialize>(config: &Config<T>) -> Result<Self> {
        let dir = &config.log.dir;
        make_folder(dir).map_err(PipelineError::io("make the folder", dir))?;
        let mut path = dir.join(&config.log.name);
        for number in 2.. {
            match fs::create_dir(&path) {
                Ok(()) => break,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    path = dir.join(format!("{}-{number}", config.log.name));
                }
                Err(error) => return Err(PipelineError::io("make the folder", &path)(error)),
            }
        }
        disk::sync_folder(dir).map_err(PipelineError::io("sync", dir))?;
        let lock = RunLock::take(&path)?;
        let folder = Self::open(path, config.log.tensorboard, lock)?;
        folder.keep_config(config)?;
        Ok(folder)
    }

    /// The newest folder of the configured name, to go on in. Its
    /// configuration must be the same, but for how long, how to log, and what
    /// changes memory and speed only. It keeps all that it has for now.
    pub(crate) fn resume<T: Serialize>(config: &Config<T>) -> Result<Self> {
        let newest = newest(&config.log.dir, &config.log.name)?.ok_or_else(|| {
            let wanted = config.log.dir.join(&config.log.name);
            PipelineError::Stopped(format!(
                "there is no run {} to resume\nhint: leave --resume out to start one",
                wanted.display()
            ))
        })?;
        let lock = RunLock::take(&newest)?;
        let file = newest.join(CONFIG);
        let text = fs::read_to_string(&file).map_err(PipelineError::io("read", &file))?;
        let damaged =
            |error: toml::de::Error| PipelineError::Damaged { path: file.clone(), what: error.message().to_owned() };
        let old: toml::Table = text.parse().map_err(damaged)?;
        let new: toml::Table = resolved(config)?.parse().map_err(damaged)?;
        let mut changed = Vec::new();
        differences(&toml::Value::Table(old), &toml::Value::Table(new), "", &mut changed);
        // The plugins and their limits are compared as they were loaded, which the run keeps.
        // A run that was out of memory may go on with less of it.
        let free = [
            "train.steps",
            "train.max_tokens_per_micro_batch",
            "train.gradient_checkpointing",
            "rollout.max_batch",
            "rollout.cache_memory",
            "reward",
            "limits",
            "log",
            "resources",
        ];
        changed.retain(|key| !free.iter().any(|free| is_within(key, free)));
        if !changed.is_empty() {
            return Err(PipelineError::Stopped(format!(
                "the run {} was started with another configuration, in {}\nhint: resume with the same values, or start a new run",
                newest.display(),
                changed.join(", ")
            )));
        }
        Self::open(newest, config.log.tensorboard, lock)
    }

    fn open(path: PathBuf, tensorboard: bool, lock: RunLock) -> Result<Self> {
        let checkpoints = path.join("checkpoints");
        make_folder(&checkpoints).map_err(PipelineError::io("make the folder", &checkpoints))?;
        let tasks = TaskStore::open(&path)?;
        let tape = Tape::record(tape_folder(&path));
        let file = path.join(METRICS);
        let metrics = append_to_lines(&file).map_err(PipelineError::io("write", &file))?;
        let events = if tensorboard {
            Some(EventWriter::create(&path).map_err(PipelineError::io("write events in", &path))?)
        } else {
            None
        };
        Ok(Self { path, metrics, tasks, tape, unsynced: Vec::new(), events, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where answers that plugins get from outside are kept.
    pub(crate) fn tape(&self) -> &Tape {
        &self.tape
    }

    /// Writes the configuration down, with every default.
    pub(crate) fn keep_config<T: Serialize>(&self, config: &Config<T>) -> Result<()> {
        let file = self.path.join(CONFIG);
        write_whole(&file, resolved(config)?.as_bytes()).map_err(PipelineError::io("write", &file))
    }

    /// Makes all that was recorded outlast a power cut: a checkpoint of this
    /// moment may rely on it.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.tasks.sync()?;
        self.tape.sync()?;
        for path in &self.unsynced {
            disk::sync_file(path).map_err(PipelineError::io("sync", path))?;
        }
        if let Some(path) = self.unsynced.first() {
            disk::sync_folder(disk::folder_of(path)).map_err(PipelineError::io("sync", path))?;
        }
        self.unsynced.clear();
        let file = self.path.join(METRICS);
        disk::sync(&self.metrics, &file)
            .and_then(|()| disk::sync_folder(&self.path))
            .map_err(PipelineError::io("sync", &file))
    }

    /// Adds the samples of a step.
    pub(crate) fn keep_samples(&mut self, step: u64, groups: &[Group]) -> Result<()> {
        let mut writer = SampleWriter::create(&self.path, step)?;
        for (group, Group { members, .. }) in (0..).zip(groups) {
            for Member { sample, outcome, advantage } in members {
                writer.write(&mut self.tasks, &ScoredSample { group, sample, outcome, advantage: *advantage })?;
            }
        }
        self.unsynced.push(writer.finish(&mut self.tasks)?);
        Ok(())
    }

    /// Adds the numbers of a step.
    pub(crate) fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        let file = self.path.join(METRICS);
        let mut line = serde_json::to_vec(metrics.as_json()).map_err(|error| PipelineError::Io {
            action: "write",
            path: file.clone(),
            source: error.into(),
        })?;
        line.push(b'\n');
        self.metrics.write_all(&line).map_err(PipelineError::io("write", &file))?;
        match &mut self.events {
            Some(events) => events.write(step, metrics).map_err(PipelineError::io("write events in", &self.path)),
            None => Ok(()),
        }
    }

    /// Removes what was logged after `step`, since the run goes on from there,
    /// and lines that are not understood.
    pub(crate) fn rewind(&mut self, step: u64) -> Result<Rewound> {
        let file = self.path.join(METRICS);
        let text = fs::read(&file).map_err(PipelineError::io("read", &file))?;
        let (mut kept, mut rewound) = (Vec::new(), Rewound::default());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let metrics = serde_json::from_slice(line).ok().map(Metrics::from_json);
            match metrics.and_then(|metrics| metrics.get("step")) {
                Some(at) if at <= step as f64 => kept.extend_from_slice(line),
                Some(_) => rewound.later += 1,
                None => rewound.damaged += 1,
            }
        }
        if kept.len() < text.len() {
            write_whole(&file, &kept).map_err(PipelineError::io("write", &file))?;
            self.metrics = append_to_lines(&file).map_err(PipelineError::io("write", &file))?;
        }
        Ok(rewound)
    }
}

/// The lines of metrics that a run gave up when it was resumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rewound {
    /// Those of later steps.
    pub(crate) later: u64,
    /// Those that are not understood.
    pub(crate) damaged: u64,
}

/// A configuration with every default written out.
pub(crate) fn resolved<T: Serialize>(config: &Config<T>) -> Result<String> {
    toml::to_string(config)
        .map_err(|error| PipelineError::Stopped(format!("the configuration cannot be written down: {error}")))
}

/// The folder that the last run of this name made.
fn newest(dir: &Path, name: &str) -> Result<Option<PathBuf>> {
    let mut path = dir.join(name);
    if !path.is_dir() {
        return Ok(None);
    }
    for number in 2.. {
        let next = dir.join(format!("{name}-{number}"));
        if !next.is_dir() {
            break;
        }
        path = next;
    }
    Ok(Some(path))
}

/// Whether a key is `table`, or in it.
fn is_within(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The keys whose values differ.
fn differences(old: &toml::Value, new: &toml::Value, key: &str, changed: &mut Vec<String>) {
    match (old, new) {
        (toml::Value::Table(old), toml::Value::Table(new)) => {
            let mut keys: Vec<_> = old.keys().chain(new.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for name in keys {
                let path = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                match (old.get(name), new.get(name)) {
                    (Some(old), Some(new)) => differences(old, new, &path, changed),
                    _ => changed.push(path),
                }
            }
        }
        _ if old != new => changed.push(key.to_owned()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_the_keys() {
        let parse = |text: &str| toml::Value::Table(text.parse().unwrap());
        let mut changed = Vec::new();
        let old = parse("seed = 1\n[train]\nsteps = 3\nloss = {clip_low = 0.2}");
        let new = parse("seed = 1\n[train]\nsteps = 4\nloss = {clip_low = 0.1}\n[log]\nname = 'x'");
        differences(&old, &new, "", &mut changed);
        assert_eq!(changed, ["log", "train.loss.clip_low", "train.steps"]);
    }
}
