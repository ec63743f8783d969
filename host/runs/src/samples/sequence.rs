//! The place of each line in its file: a line that is there twice, is missing or stands elsewhere would change what a
//! replay compares.

use super::line::ReadLine;
use std::collections::HashMap;

/// The lines of a file that were read so far.
#[derive(Default)]
pub(super) struct Sequence {
    /// The lines of the trajectories.
    lines: HashMap<Place, u64>,
    /// The readable line before.
    before: Option<Place>,
    /// The highest number that a line was written with.
    written: u64,
    /// Lines after it that cannot be read.
    unread: u64,
    /// Whether the line with that number was written last. True in older recordings, whose lines have no numbers.
    is_whole: bool,
}

/// A trajectory in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    step: u64,
    group: u64,
    sample: u32,
    trajectory: usize,
}

/// What is wrong with the place of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Misplaced {
    /// The trajectory is on an earlier line too, so that this line is left out.
    Twice(String),
    /// Lines around it are missing or in another order.
    Elsewhere(String),
}

impl Sequence {
    /// The lines after this many, which are not read.
    pub(super) fn after(lines: u64) -> Self {
        Self { written: lines, ..Self::default() }
    }

    /// Notes a line that cannot be read.
    pub(super) fn skip(&mut self) {
        self.unread += 1;
    }

    /// Notes the line `number` of the file.
    pub(super) fn add(&mut self, line: &ReadLine, number: u64) -> Result<(), Misplaced> {
        let place = self.place(line);
        if let Some(first) = self.lines.get(&place) {
            let (id, trajectory) = (&line.id, place.trajectory);
            let what = match trajectory {
                0 => format!("sample {id} is on line {first} too"),
                _ => format!("trajectory {trajectory} of sample {id} is on line {first} too"),
            };
            return Err(Misplaced::Twice(what));
        }
        self.lines.insert(place, number);
        self.before = Some(place);
        let Some(written) = line.line else {
            self.is_whole = true;
            return Ok(());
        };
        let expected = self.written.saturating_add(self.unread).saturating_add(1);
        if written < expected {
            return Err(Misplaced::Elsewhere(format!("it was line {written} when it was written")));
        }
        (self.written, self.unread, self.is_whole) = (written, 0, line.is_last);
        match written - expected {
            0 => Ok(()),
            1 => Err(Misplaced::Elsewhere("a line before it is missing".to_owned())),
            missing => Err(Misplaced::Elsewhere(format!("{missing} lines before it are missing"))),
        }
    }

    /// Whether the file ends after a readable line that was not written last.
    pub(super) fn is_cut_off(&self) -> bool {
        self.written > 0 && self.unread == 0 && !self.is_whole
    }

    fn place(&self, line: &ReadLine) -> Place {
        let of = |trajectory| Place { step: line.step, group: line.group, sample: line.sample, trajectory };
        // In the oldest recordings, the trajectories of a sample have no numbers, and follow each other.
        let before = self.before.filter(|before| *before == of(before.trajectory));
        let follows = before.and_then(|before| before.trajectory.checked_add(1));
        of(line.trajectory.or(follows).unwrap_or(0))
    }
}
