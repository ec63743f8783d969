//! Reads a recording.

use super::damage::Damage;
use super::error::{RecordingError, Result};
use super::plugin_set::{PluginSet, at, read as read_sets};
use gavel_runs::{RunError, SampleReader, Samples};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A recording in a folder.
pub struct Recording {
    pub(super) folder: PathBuf,
    pub(super) plugin_sets: Vec<PluginSet>,
    samples: SampleReader,
    /// Samples that were left out because their group lost a member.
    left_out: AtomicU64,
    /// Whether its plugins get their grants of this machine.
    pub(super) grants_allowed: bool,
}

impl Recording {
    /// Reads the plugins and the steps; [`samples`](Self::samples) reads the
    /// samples.
    pub fn open(folder: &Path) -> Result<Self> {
        Self::read(folder, SampleReader::open)
    }

    /// Opens a recording for the sample with this id. Returns the step that recorded it, which is `step` if that is given.
    /// An index finds it, so that the rest of the recording is not read. `None` if the recording has no such sample, or
    /// `id` is none of a sample.
    ///
    /// # Errors
    /// There is no recording, or a file of it cannot be read.
    pub fn open_for(folder: &Path, id: &str, step: Option<u64>) -> Result<Option<(Self, u64)>> {
        let is_id = id.split('.').count() == 3 && id.split('.').all(|part| part.parse::<u64>().is_ok());
        if !is_id {
            return Ok(None);
        }
        let open = || Self::read(folder, SampleReader::open_for_few);
        let Some((step, _)) = open()?.samples.find(id, step)? else { return Ok(None) };
        // Another reader, which has not noted damage beside the sample yet.
        Ok(Some((open()?, step)))
    }

    fn read(folder: &Path, open: impl FnOnce(&Path) -> std::result::Result<SampleReader, RunError>) -> Result<Self> {
        if !folder.is_dir() {
            return Err(RecordingError::Absent { folder: folder.to_owned() });
        }
        let plugin_sets = read_sets(folder)?;
        let samples = open(folder)?;
        if plugin_sets.is_empty() || samples.steps().next().is_none() {
            return Err(RecordingError::Nothing { folder: folder.to_owned() });
        }
        let folder = folder.to_owned();
        Ok(Self { folder, plugin_sets, samples, left_out: AtomicU64::new(0), grants_allowed: false })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The steps that have samples, in order.
    pub fn steps(&self) -> impl Iterator<Item = u64> {
        self.samples.steps()
    }

    /// The samples of a step, in the order in which they were drawn; empty if
    /// there is no such step. Lines that cannot be parsed are left out, and are
    /// then part of the [`damage`](Self::damage).
    pub fn samples(&self, step: u64) -> Result<Samples<'_>> {
        Ok(self.samples.samples(step)?)
    }

    /// The parts that were left out or are missing, so far.
    pub fn damage(&self) -> Damage {
        Damage { lines: self.samples.damage(), samples: self.left_out.load(Ordering::Relaxed) }
    }

    /// Whether a line between `before` and `after` in a file of a step, its `part`-th, could not be read or is missing.
    pub(crate) fn is_damaged_between(&self, step: u64, part: usize, before: u64, after: u64) -> bool {
        self.samples.is_damaged_between(step, part, before, after)
    }

    /// Counts samples that are left out because their group lost a member.
    pub(crate) fn leave_out(&self, samples: u64) {
        self.left_out.fetch_add(samples, Ordering::Relaxed);
    }

    /// All sets of plugins, in the order of their steps.
    pub fn plugin_sets(&self) -> &[PluginSet] {
        &self.plugin_sets
    }

    /// The plugins that scored the samples of a step.
    pub fn plugin_set(&self, step: u64) -> &PluginSet {
        at(&self.plugin_sets, step).unwrap_or(&self.plugin_sets[0])
    }
}
