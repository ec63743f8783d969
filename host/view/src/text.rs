//! Search in messages: a scan of the files, which ends at a time limit and continues with the next request for the same
//! text. An index of texts on the disk would answer in place of [`Texts::search`].

use crate::error::{Result, ViewError};
use crate::filter::{Filter, Resolved};
use crate::index::SharedIndex;
use crate::place::LinePlace;
use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The searches of a run that can be continued.
const KEPT: usize = 4;
/// The rows between two looks at the clock.
const ROWS: usize = 512;
/// The most bytes that are read at once, unless a line is longer.
const BLOCK: u64 = 1 << 20;

/// How far a search is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TextProgress {
    /// The trajectories that were searched.
    pub searched: usize,
    /// The trajectories that pass the rest of the filter.
    pub candidates: usize,
    /// Whether all of them were searched.
    pub is_complete: bool,
}

/// What a search has found so far.
pub(crate) struct Found {
    /// The numbers of rows of the index.
    pub(crate) matched: Vec<u32>,
    pub(crate) progress: TextProgress,
    /// Which index they are numbers of.
    pub(crate) generation: u64,
}

/// The searches of a run, the newest last.
#[derive(Default)]
pub(crate) struct Texts(Mutex<Vec<Scan>>);

/// A search.
struct Scan {
    filter: Filter,
    generation: u64,
    /// The rows of the index that were looked at for candidates.
    seen: usize,
    candidates: Vec<u32>,
    searched: usize,
    matched: Vec<u32>,
}

impl Texts {
    /// The rows that pass the filter, as far as they are found by the deadline. At least one block of rows is searched.
    pub(crate) fn search(&self, index: &SharedIndex, filter: &Filter, until: Instant) -> Result<Found> {
        let mut scan = self.take(filter, index.read().generation);
        let needle = Needle::of(filter)?;
        loop {
            let places = scan.next(index)?;
            if places.is_empty() {
                break;
            }
            let found = needle.search(&places);
            scan.matched.extend(found.into_iter().filter_map(|number| scan.candidates.get(scan.searched + number)));
            scan.searched += places.len();
            if Instant::now() >= until {
                break;
            }
        }
        let progress = TextProgress {
            searched: scan.searched,
            candidates: scan.candidates.len(),
            is_complete: scan.searched == scan.candidates.len(),
        };
        let found = Found { matched: scan.matched.clone(), progress, generation: scan.generation };
        self.keep(scan);
        Ok(found)
    }

    fn take(&self, filter: &Filter, generation: u64) -> Scan {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|scan| scan.generation == generation);
        match kept.iter().position(|scan| scan.filter == *filter) {
            Some(number) => kept.remove(number),
            None => Scan {
                filter: filter.clone(),
                generation,
                seen: 0,
                candidates: Vec::new(),
                searched: 0,
                matched: Vec::new(),
            },
        }
    }

    fn keep(&self, scan: Scan) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|other| other.filter != scan.filter);
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push(scan);
    }
}

impl Scan {
    /// The lines that are searched next; none at the end.
    fn next(&mut self, index: &SharedIndex) -> Result<Vec<LinePlace>> {
        let index = index.read();
        if index.generation != self.generation {
            // The next request begins again.
            return Ok(Vec::new());
        }
        let filter = Resolved::of(&self.filter, &index)?;
        let new = index.rows.iter().enumerate().skip(self.seen);
        self.candidates
            .extend(new.filter(|(number, row)| filter.passes(*number, row)).map(|(number, _)| number as u32));
        self.seen = index.rows.len();
        let next = self.candidates.iter().skip(self.searched).take(ROWS);
        let place = |number: &u32| {
            let row = index.rows.get(*number as usize)?;
            Some((index.path(row)?, row.offset, row.length))
        };
        Ok(next.filter_map(place).collect())
    }
}

/// A text to search for.
struct Needle {
    text: String,
    ignore_case: bool,
    /// The text as a line has it.
    finder: Finder<'static>,
}

impl Needle {
    fn of(filter: &Filter) -> Result<Self> {
        let fold = |text: &str| if filter.ignore_case { text.to_ascii_lowercase() } else { text.to_owned() };
        let text = fold(&filter.text);
        let quoted = serde_json::to_string(&text)
            .map_err(|error| ViewError::bad(format!("cannot search for this text: {error}"), "change the text"))?;
        let bare = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&quoted);
        let finder = Finder::new(bare.as_bytes()).into_owned();
        Ok(Self { text, ignore_case: filter.ignore_case, finder })
    }

    /// The numbers of the lines that have the text. Lines of files that are gone have none.
    fn search(&self, places: &[LinePlace]) -> Vec<usize> {
        let (mut found, mut start, mut block) = (Vec::new(), 0, Vec::new());
        while let Some((path, offset, length)) = places.get(start) {
            // Lines that follow each other are read together.
            let (mut end, mut bytes) = (start + 1, u64::from(*length));
            while let Some((next, at, more)) = places.get(end)
                && next == path
                && *at == offset + bytes
                && bytes + u64::from(*more) <= BLOCK
            {
                (end, bytes) = (end + 1, bytes + u64::from(*more));
            }
            block.resize(bytes as usize, 0);
            if File::open(path).and_then(|file| file.read_exact_at(&mut block, *offset)).is_ok() {
                if self.ignore_case {
                    block.make_ascii_lowercase();
                }
                self.search_block(&block, places.get(start..end).unwrap_or_default(), start, &mut found);
            }
            start = end;
        }
        found
    }

    fn search_block(&self, block: &[u8], places: &[LinePlace], first: usize, found: &mut Vec<usize>) {
        // Most blocks do not have the text at all.
        if self.finder.find(block).is_none() {
            return;
        }
        let mut at = 0;
        for (number, (_, _, length)) in places.iter().enumerate() {
            let line = block.get(at..at + *length as usize).unwrap_or_default();
            at += *length as usize;
            if self.finder.find(line).is_some() && self.is_in_messages(line) {
                found.push(first + number);
            }
        }
    }

    /// Whether a message of a line has the text: the line has further texts, such as hashes.
    fn is_in_messages(&self, line: &[u8]) -> bool {
        // In lines with small letters, the names of some values are others, and those of fields are the same.
        #[derive(Deserialize)]
        struct Texts {
            #[serde(default)]
            prompt: Value,
            #[serde(default)]
            opening: Value,
            #[serde(default)]
            messages: Value,
        }
        let Ok(Texts { prompt, opening, messages }) = serde_json::from_slice::<Texts>(line) else { return false };
        [prompt, opening, messages].iter().any(|value| self.is_in(value))
    }

    fn is_in(&self, value: &Value) -> bool {
        match value {
            Value::String(text) if self.ignore_case => text.to_ascii_lowercase().contains(&self.text),
            Value::String(text) => text.contains(&self.text),
            Value::Array(values) => values.iter().any(|value| self.is_in(value)),
            // The role of a message is no text of it.
            Value::Object(fields) => fields.iter().any(|(name, value)| name != "role" && self.is_in(value)),
            _ => false,
        }
    }
}
