//! The index of a run's trajectories: a row for each, in memory. It grows by whole files.

use crate::build::FileRows;
use crate::row::{Interned, Row, Verdicts};
use gavel_runs::SampleFile;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
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
    /// Why the folder could not be read.
    pub(crate) error: Option<String>,
    unread: BTreeMap<PathBuf, UnreadFile>,
}

/// A file that could not be read. It is tried again once it has changed, and after twice as many looks each time.
struct UnreadFile {
    stamp: Option<Stamp>,
    error: String,
    tries: u32,
    /// The looks before it is tried again.
    wait: u32,
}

/// A file is tried again after at most 2 to this power looks.
const MOST_DOUBLINGS: u32 = 8;

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
        let named: HashSet<&Path> = files.iter().map(|file| &*file.path).collect();
        self.unread.retain(|path, _| named.contains(&**path));
        let known: HashSet<&Path> = self.files.iter().map(|file| &*file.path).collect();
        let unread = &mut self.unread;
        let mut is_due = |file: &SampleFile| {
            let Some(unread) = unread.get_mut(&file.path) else { return true };
            unread.wait = unread.wait.saturating_sub(1);
            unread.wait == 0 || unread.stamp != Stamp::of(&file.path).ok()
        };
        files.iter().filter(|file| !known.contains(&*file.path) && is_due(file)).cloned().collect()
    }

    /// Notes that a file could not be read.
    pub(crate) fn skip(&mut self, file: &SampleFile, stamp: Option<Stamp>, error: String) {
        let tries = self.unread.get(&file.path).map_or(0, |unread| unread.tries) + 1;
        let wait = 1 << tries.min(MOST_DOUBLINGS);
        self.unread.insert(file.path.clone(), UnreadFile { stamp, error, tries, wait });
    }

    /// Why the folder or a file cannot be read.
    pub(crate) fn first_error(&self) -> Option<String> {
        let of_file = || {
            let more = match self.unread.len() {
                0 | 1 => String::new(),
                count => format!(" (and {} further files)", count - 1),
            };
            Some(format!("{}{more}", self.unread.values().next()?.error))
        };
        self.error.clone().or_else(of_file)
    }

    /// Adds a file that was read.
    pub(crate) fn add(&mut self, file: &SampleFile, stamp: Stamp, read: FileRows) {
        self.unread.remove(&file.path);
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
        self.is_started && self.files.len() + self.unread.len() >= self.known_files
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_file_is_tried_ever_more_rarely_until_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("step-000001.jsonl");
        std::fs::write(&path, "a").unwrap();
        let file = SampleFile { step: 1, path: path.clone() };
        let mut index = Index::default();
        let mut tried = Vec::new();
        for look in 0..1000 {
            if !index.missing(std::slice::from_ref(&file)).is_empty() {
                index.skip(&file, Stamp::of(&path).ok(), "cannot read it".into());
                tried.push(look);
            }
            assert!(index.is_complete(), "nothing else is missing");
        }
        assert_eq!(tried, [0, 2, 6, 14, 30, 62, 126, 254, 510, 766]);
        assert_eq!(index.first_error().as_deref(), Some("cannot read it"));
        std::fs::write(&path, "ab").unwrap();
        assert_eq!(index.missing(std::slice::from_ref(&file)).len(), 1, "it has changed");
        index.add(&file, Stamp::of(&path).unwrap(), FileRows::default());
        assert_eq!((index.first_error(), index.missing(std::slice::from_ref(&file)).len()), (None, 0));
        // A file that is gone is no error any more.
        index.skip(&file, None, "gone".into());
        index.missing(&[]);
        assert_eq!(index.first_error(), None);
    }
}
