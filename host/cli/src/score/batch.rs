//! Rows that are scored in one task, from their groups to their lines of output.

use super::recording::{RecordedRow, STEP};
use super::source::Completion;
use super::summary::Summary;
use anyhow::Result;
use gavel_data::{OutcomeKind, Sample, SampleOutcome};
use gavel_scoring::{PendingBatch, PendingGroup, ScoreRequest, Scorer, write_line};
use std::sync::Arc;
use std::time::Duration;

/// The bytes of rows after which a batch is full.
const FULL_BYTES: usize = 1 << 20;

/// Whole groups of rows, in order.
#[derive(Default)]
pub struct Batch {
    rows: Vec<ReadRow>,
    /// A request for each row that could be read.
    requests: Vec<ScoreRequest>,
    bytes: usize,
}

enum ReadRow {
    /// `group` is the number of its group.
    Sample {
        group: u64,
        sample: Arc<Sample>,
    },
    Unreadable(String),
}

/// The rows of a batch with their scores.
pub struct ScoredBatch {
    pub rows: usize,
    /// A line of output for each row.
    pub lines: Vec<u8>,
    pub summary: Summary,
    /// The rows that could be read, where they are recorded.
    pub recorded: Vec<RecordedRow>,
    /// The processor time of the calls.
    pub cpu: Duration,
}

impl Batch {
    /// Adds the group of this number.
    pub fn add(&mut self, number: u64, members: Vec<Result<Completion, String>>) {
        let size = members.iter().filter(|member| member.is_ok()).count();
        let group = PendingGroup::named(size, format!("{STEP}.{number}"));
        for member in members {
            self.rows.push(match member {
                Ok(Completion { sample, seed }) => {
                    self.bytes += sample.task.reference.columns.bytes();
                    self.requests.push(ScoreRequest { group: group.clone(), sample: sample.clone(), seed });
                    ReadRow::Sample { group: number, sample }
                }
                Err(error) => {
                    self.bytes += error.len();
                    ReadRow::Unreadable(error)
                }
            });
        }
    }

    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it has `rows`, or long ones.
    pub fn is_full(&self, rows: usize) -> bool {
        self.rows.len() >= rows || self.bytes >= FULL_BYTES
    }

    /// Starts to score it. The rows are returned too if `is_recorded`.
    pub fn start(self, scorer: &Scorer, is_recorded: bool) -> PendingBatch<Result<ScoredBatch>> {
        let Self { rows, requests, .. } = self;
        scorer.start_batch(requests, move |outcomes| scored(rows, outcomes, is_recorded))
    }
}

fn scored(rows: Vec<ReadRow>, outcomes: Vec<SampleOutcome>, is_recorded: bool) -> Result<ScoredBatch> {
    let mut batch = ScoredBatch {
        rows: rows.len(),
        lines: Vec::new(),
        summary: Summary::default(),
        recorded: Vec::new(),
        cpu: outcomes.iter().map(processor_time).sum(),
    };
    let mut outcomes = outcomes.into_iter();
    for row in rows {
        match row {
            ReadRow::Sample { group, sample } => {
                let lost = || SampleOutcome::without_calls(OutcomeKind::Fault, "the row was not scored");
                let outcome = outcomes.next().unwrap_or_else(lost);
                batch.summary.add(&outcome);
                write_line(&mut batch.lines, Some(&sample.task.id), &outcome)?;
                if is_recorded {
                    batch.recorded.push(RecordedRow { group, sample, outcome });
                }
            }
            ReadRow::Unreadable(error) => {
                let outcome = SampleOutcome::without_calls(OutcomeKind::Fault, error.clone());
                write_line(&mut batch.lines, None, &outcome)?;
                batch.summary.unreadable.push(error);
            }
        }
    }
    Ok(batch)
}

fn processor_time(outcome: &SampleOutcome) -> Duration {
    Duration::from_micros(outcome.plugins.values().map(|evaluation| evaluation.usage.cpu_us).sum())
}
