//! What failed, how often, and for which reasons.

use crate::index::Index;
use crate::place::{LinePlace, read_line_at};
use gavel_data::OutcomeKind;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The newest samples whose reasons are read.
const MOST_READ: usize = 2000;
/// The most reasons that are shown of an outcome of a plugin.
const MOST_REASONS: usize = 8;
/// The characters that are shown of a reason.
const REASON: usize = 200;

/// How often a plugin had an outcome other than a score.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Failures {
    pub(crate) plugin: String,
    pub(crate) outcome: &'static str,
    /// The samples of the run.
    pub(crate) count: u64,
    /// Those whose reasons were read: the newest.
    pub(crate) read: u64,
    /// Their reasons, the most frequent first.
    pub(crate) reasons: Vec<Reason>,
}

/// A reason, in which numbers are a `#`.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Reason {
    pub(crate) reason: String,
    pub(crate) count: u64,
    /// The newest sample that has it.
    pub(crate) id: String,
}

/// How often each plugin had which outcome but scores, and where the lines of the newest such samples are.
pub(crate) fn counted(index: &Index) -> (BTreeMap<(String, &'static str), u64>, Vec<LinePlace>) {
    let scored = OutcomeKind::ALL.iter().position(|kind| *kind == OutcomeKind::Scored);
    let mut counts = BTreeMap::new();
    let mut failed = vec![false; index.rows.len()];
    for (name, all) in &index.plugins {
        for ((outcome, failed), row) in all.outcomes.iter().zip(&mut failed).zip(&index.rows) {
            let kind = OutcomeKind::ALL.get(usize::from(*outcome)).filter(|_| Some(usize::from(*outcome)) != scored);
            if let Some(kind) = kind
                && row.trajectory == 0
            {
                *counts.entry((name.clone(), kind.as_str())).or_default() += 1;
                *failed = true;
            }
        }
    }
    let places = index.rows.iter().zip(failed).rev().filter(|(_, failed)| *failed).take(MOST_READ);
    let place = |row: &crate::row::Row| Some((index.path(row)?, row.offset, row.length));
    (counts, places.filter_map(|(row, _)| place(row)).collect())
}

/// Reads the reasons. Lines that cannot be read any more have none.
pub(crate) fn failures(counts: BTreeMap<(String, &'static str), u64>, places: &[LinePlace]) -> Vec<Failures> {
    #[derive(Deserialize)]
    struct Line {
        id: String,
        plugins: BTreeMap<String, Verdict>,
    }
    #[derive(Deserialize)]
    struct Verdict {
        outcome: OutcomeKind,
        reason: Option<String>,
    }
    let mut found: BTreeMap<(String, &'static str), BTreeMap<String, Reason>> = BTreeMap::new();
    let lines = places.iter().filter_map(|place| serde_json::from_slice::<Line>(&read_line_at(place).ok()?).ok());
    for line in lines {
        for (name, verdict) in line.plugins.into_iter().filter(|(_, verdict)| verdict.outcome != OutcomeKind::Scored) {
            let text = without_numbers(verdict.reason.as_deref().unwrap_or_default());
            let reasons = found.entry((name, verdict.outcome.as_str())).or_default();
            let first = || Reason { reason: text.clone(), count: 0, id: line.id.clone() };
            reasons.entry(text.clone()).or_insert_with(first).count += 1;
        }
    }
    let of = |((plugin, outcome), count)| {
        let mut reasons: Vec<Reason> =
            found.remove(&(String::clone(&plugin), outcome)).unwrap_or_default().into_values().collect();
        let read = reasons.iter().map(|reason| reason.count).sum();
        reasons.sort_by_key(|reason| Reverse(reason.count));
        reasons.truncate(MOST_REASONS);
        Failures { plugin, outcome, count, read, reasons }
    };
    let mut all: Vec<Failures> = counts.into_iter().map(of).collect();
    all.sort_by_key(|failures| Reverse(failures.count));
    all
}

/// The first line of a reason with `#` for each number, so that reasons that differ by numbers are one.
fn without_numbers(reason: &str) -> String {
    let mut text = String::new();
    let mut is_number = false;
    for c in reason.lines().next().unwrap_or_default().chars().take(REASON) {
        match (c.is_ascii_digit(), is_number) {
            (true, false) => text.push('#'),
            (true, true) => {}
            (false, _) => text.push(c),
        }
        is_number = c.is_ascii_digit();
    }
    text
}
