//! The numbers of a trajectory, as the table has them in memory.

use gavel_data::{FinishReason, OutcomeKind};
use std::collections::HashMap;
use std::sync::Arc;

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
pub(crate) struct Interned {
    names: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Default for Interned {
    fn default() -> Self {
        let empty: Arc<str> = "".into();
        Self { names: vec![empty.clone()], numbers: HashMap::from([(empty, 0)]) }
    }
}

impl Interned {
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let (number, name): (u32, Arc<str>) = (self.names.len() as u32, name.into());
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub(crate) fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", |name| name)
    }

    pub(crate) fn all(&self) -> &[Arc<str>] {
        &self.names
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_many_names_keeps_its_own_number() {
        let mut names = Interned::default();
        let numbers: Vec<u32> = (0..30_000).map(|number| names.number(&format!("source {number}"))).collect();
        for (number, at) in numbers.iter().enumerate() {
            let name = format!("source {number}");
            assert_eq!((names.name(*at), names.find(&name)), (&*name, Some(*at)));
            assert_eq!(names.number(&name), *at, "it is found again");
        }
        assert_eq!((names.number(""), names.name(99_999), names.find("none")), (0, "", None));
    }
}
