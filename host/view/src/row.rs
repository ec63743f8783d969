//! The numbers of a trajectory, as the table has them in memory.

use gavel_data::{FinishReason, OutcomeKind};

/// A trajectory. All rows have the same size; names are numbers of an [`Interned`] list.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// Its file among those of the index.
    pub(crate) file: u32,
    /// The bytes of its line, its end included.
    pub(crate) length: u32,
    pub(crate) offset: u64,
    /// The step that recorded it.
    pub(crate) recorded: u64,
    /// The step that it was drawn for.
    pub(crate) step: u64,
    pub(crate) group: u64,
    /// Not a number where there is none.
    pub(crate) reward: f64,
    /// Not a number where there is none.
    pub(crate) advantage: f64,
    pub(crate) sample: u32,
    pub(crate) trajectory: u32,
    pub(crate) prompt_length: u32,
    pub(crate) response_length: u32,
    pub(crate) turns: u32,
    /// Microseconds of all plugins together.
    pub(crate) elapsed: u32,
    pub(crate) source: u32,
    pub(crate) speaker: u32,
    pub(crate) outcome: u8,
    pub(crate) finish: u8,
}

impl Row {
    pub(crate) fn id(&self) -> String {
        format!("{}.{}.{}", self.step, self.group, self.sample)
    }
}

/// The number of an outcome in the order of reports.
pub(crate) fn outcome_number(kind: OutcomeKind) -> u8 {
    OutcomeKind::ALL.iter().position(|known| *known == kind).map_or(NONE, |number| number as u8)
}

/// The number of a reason to end.
pub(crate) fn finish_number(reason: FinishReason) -> u8 {
    FinishReason::ALL.iter().position(|known| *known == reason).map_or(NONE, |number| number as u8)
}

/// No outcome.
pub(crate) const NONE: u8 = u8::MAX;

/// Names, each once; the first is empty.
#[derive(Debug, Clone)]
pub(crate) struct Interned(Vec<String>);

impl Default for Interned {
    fn default() -> Self {
        Self(vec![String::new()])
    }
}

/// The most names of a kind. Further ones count as the last.
const MOST_NAMES: usize = 10_000;

impl Interned {
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        // Runs have few sources, and lines beside each other often the same.
        let found = self.0.iter().rposition(|known| known == name);
        let number = found.unwrap_or_else(|| {
            if self.0.len() < MOST_NAMES {
                self.0.push(name.to_owned());
            }
            self.0.len() - 1
        });
        number as u32
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.0.iter().position(|known| known == name).map(|number| number as u32)
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        self.0.get(number as usize).map_or("", String::as_str)
    }

    pub(crate) fn all(&self) -> &[String] {
        &self.0
    }
}

/// What a plugin said of each row.
#[derive(Default)]
pub(crate) struct Verdicts {
    /// Not a number where there is none.
    pub(crate) scores: Vec<f64>,
    pub(crate) outcomes: Vec<u8>,
}

impl Verdicts {
    /// Adds rows without a verdict up to this number of rows.
    pub(crate) fn extend_to(&mut self, rows: usize) {
        self.scores.resize(rows.max(self.scores.len()), f64::NAN);
        self.outcomes.resize(rows.max(self.outcomes.len()), NONE);
    }
}
