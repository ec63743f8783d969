//! The index of a run's trajectories: a row for each, in memory. It grows by whole files.

use crate::build::FileRows;
use crate::row::{Interned, Row, Verdicts};
use gavel_runs::SampleFile;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Rows of a run's trajectories, in the order in which their files were read.
#[derive(Default)]
pub(crate) struct Index {
    pub(crate) rows: Vec<Row>,
    pub(crate) plugins: BTreeMap<String, Verdicts>,
    pub(crate) sources: Interned,
    pub(crate) speakers: Interned,
    pub(crate) files: Vec<IndexedFile>,
    /// Lines that cannot be read.
    pub(crate) damaged: u64,
    /// Counts how often the index began again, as when a run is resumed from an earlier step.
    pub(crate) generation: u64,
    /// The files that the run had when it was looked at last.
    pub(crate) known_files: usize,
    /// Whether the run was looked at.
    pub(crate) is_started: bool,
    /// Why a file or the folder could not be read.
    pub(crate) error: Option<String>,
}

/// A file that was read.
pub(crate) struct IndexedFile {
    pub(crate) path: Arc<Path>,
    stamp: Stamp,
    /// Its rows.
    pub(crate) rows: std::ops::Range<usize>,
}

/// What tells a file from another one of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp([i64; 5]);

impl Stamp {
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self([found.dev() as i64, found.ino() as i64, found.len() as i64, found.mtime(), found.mtime_nsec()]))
    }
}

impl Index {
    /// The files that are not in the index yet. If one that is was replaced or removed, the index begins again.
    pub(crate) fn missing(&mut self, files: &[SampleFile]) -> Vec<SampleFile> {
        let is_as_it_was = |file: &IndexedFile| Stamp::of(&file.path).is_ok_and(|stamp| stamp == file.stamp);
        if !self.files.iter().all(is_as_it_was) {
            *self = Self { generation: self.generation + 1, ..Self::default() };
        }
        (self.known_files, self.is_started) = (files.len(), true);
        let known: std::collections::HashSet<&Path> = self.files.iter().map(|file| &*file.path).collect();
        files.iter().filter(|file| !known.contains(&*file.path)).cloned().collect()
    }

    /// Adds a file that was read.
    pub(crate) fn add(&mut self, file: &SampleFile, stamp: Stamp, read: FileRows) {
        let (start, number) = (self.rows.len(), self.files.len() as u32);
        let sources = numbers(&mut self.sources, &read.sources);
        let speakers = numbers(&mut self.speakers, &read.speakers);
        let renumbered = read.rows.into_iter().map(|row| Row {
            file: number,
            source: sources.get(row.source as usize).copied().unwrap_or(0),
            speaker: speakers.get(row.speaker as usize).copied().unwrap_or(0),
            ..row
        });
        self.rows.extend(renumbered);
        for (name, verdicts) in read.plugins {
            let all = self.plugins.entry(name).or_default();
            all.extend_to(start);
            all.scores.extend(verdicts.scores);
            all.outcomes.extend(verdicts.outcomes);
        }
        let end = self.rows.len();
        self.plugins.values_mut().for_each(|verdicts| verdicts.extend_to(end));
        self.files.push(IndexedFile { path: file.path.as_path().into(), stamp, rows: start..end });
        self.damaged += read.damaged;
    }

    /// The rows of a sample.
    pub(crate) fn find(&self, step: u64, group: u64, sample: u32) -> impl Iterator<Item = usize> {
        let is_wanted = move |row: &Row| (row.step, row.group, row.sample) == (step, group, sample);
        self.rows.iter().enumerate().filter(move |(_, row)| is_wanted(row)).map(|(number, _)| number)
    }

    /// The rows of a group.
    pub(crate) fn group(&self, step: u64, group: u64) -> impl Iterator<Item = usize> {
        let is_wanted = move |row: &Row| (row.step, row.group) == (step, group);
        self.rows.iter().enumerate().filter(move |(_, row)| is_wanted(row)).map(|(number, _)| number)
    }

    /// The file of a row.
    pub(crate) fn path(&self, row: &Row) -> Option<Arc<Path>> {
        self.files.get(row.file as usize).map(|file| file.path.clone())
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_started && self.files.len() >= self.known_files
    }
}

/// An index that a thread adds to while others read it.
#[derive(Default)]
pub(crate) struct SharedIndex(RwLock<Index>);

impl SharedIndex {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Index> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Index) -> T) -> T {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

fn numbers(all: &mut Interned, of_file: &Interned) -> Vec<u32> {
    of_file.all().iter().map(|name| all.number(name)).collect()
}
