//! The largest disagreements between two versions of a plugin.

use gavel_data::{EvaluationRecord, OutcomeKind};
use gavel_runs::RecordedSample;
use serde::Serialize;

/// Characters of a response that are shown.
const SHOWN: usize = 80;

/// A sample on which two versions of a plugin give different verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Disagreement {
    /// The sample.
    pub sample: String,
    /// Its task.
    pub task_id: String,
    /// Its step.
    pub step: u64,
    /// The plugin.
    pub plugin: String,
    /// The recorded verdict.
    pub recorded: VerdictSummary,
    /// The verdict of the other version.
    pub replayed: VerdictSummary,
    /// The beginning of the response.
    pub response: String,
}

/// A summary of a verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictSummary {
    /// The kind of outcome of the call.
    pub outcome: OutcomeKind,
    /// The score, where there is one.
    pub score: Option<f64>,
    /// The reason, in words.
    pub reason: Option<String>,
}

impl From<&EvaluationRecord> for VerdictSummary {
    fn from(record: &EvaluationRecord) -> Self {
        Self { outcome: record.outcome, score: record.score, reason: record.reason.clone() }
    }
}

/// The largest disagreements so far.
pub(super) struct Worst {
    limit: usize,
    found: Vec<(f64, Disagreement)>,
}

impl Worst {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, found: Vec::new() }
    }

    pub(super) fn add(
        &mut self,
        sample: &RecordedSample,
        plugin: &str,
        recorded: &EvaluationRecord,
        replayed: &EvaluationRecord,
    ) {
        // A score and no score differ more than any two scores.
        let gap = match (recorded.score, replayed.score) {
            (Some(a), Some(b)) => (a - b).abs(),
            _ => f64::INFINITY,
        };
        self.found.push((
            gap,
            Disagreement {
                sample: sample.id.clone(),
                task_id: sample.sample.task.id.clone(),
                step: sample.step,
                plugin: plugin.to_owned(),
                recorded: recorded.into(),
                replayed: replayed.into(),
                response: sample.sample.response().chars().take(SHOWN).collect(),
            },
        ));
        if self.found.len() > 1024.max(2 * self.limit) {
            self.sort();
        }
    }

    /// The largest first; among equals, the earliest.
    fn sort(&mut self) {
        self.found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        self.found.truncate(self.limit);
    }

    pub(super) fn into_list(mut self) -> Vec<Disagreement> {
        self.sort();
        self.found.into_iter().map(|(_, disagreement)| disagreement).collect()
    }
}
