//! The rows that a queue draws, and the groups that a sampler refuses.

use super::GroupQueue;
use crate::error::{PipelineError, Result};
use crate::rl::sampler::{Sampler, SamplerAnswer};
use crate::rl::task_source::TaskSource;
use crate::samples::DrawnGroup;
use gavel_config::RlTable;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

impl GroupQueue {
    /// The plugin that draws tasks, if epochs do not.
    pub(crate) fn sampler(&self) -> Option<&Sampler> {
        self.tasks.sampler()
    }

    /// Seconds in calls of the sampler since this was last asked; nothing without one.
    pub(crate) fn take_sampler_seconds(&mut self) -> Option<f64> {
        self.tasks.sampler_mut().map(Sampler::take_seconds)
    }

    /// The rows of these draws, which step `step` starts.
    pub(super) async fn rows(&mut self, draws: Range<u64>, step: u64) -> Result<Vec<usize>> {
        let asked = match &mut self.tasks {
            TaskSource::Epochs(stream) => return Ok(draws.map(|draw| stream.row(draw)).collect()),
            TaskSource::Sampler(_) if draws.is_empty() => return Ok(Vec::new()),
            TaskSource::Sampler(sampler) => sampler.ask(step, draws, Vec::new()),
        };
        Ok(self.answer(asked).await?.rows)
    }

    /// Asks the sampler, if there is one, about groups that ended, before step `step` trains on them. Returns the reason
    /// for each group that it refuses, by draw.
    pub(crate) async fn admit(
        &mut self,
        step: u64,
        ended: &[DrawnGroup],
        table: &RlTable,
    ) -> Result<BTreeMap<u64, String>> {
        let Some(sampler) = self.sampler() else { return Ok(BTreeMap::new()) };
        let asked = sampler.ask(step, self.next..self.next, sampler.ended(ended, table));
        Ok(self.answer(asked).await?.refusals)
    }

    /// Waits for the answer of the sampler, while the groups under way continue.
    async fn answer(&mut self, asked: impl Future<Output = Result<SamplerAnswer>>) -> Result<SamplerAnswer> {
        let start = Instant::now();
        let mut answer = self.meanwhile(asked).await?;
        self.tasks.keep(&mut answer, start.elapsed().as_secs_f64());
        Ok(answer)
    }

    /// The row of a draw in a checkpoint, which has it if a sampler drew it.
    pub(super) fn kept_row(&mut self, draw: u64, kept: Option<u64>) -> Result<usize> {
        let rows = self.prompts.len();
        match &mut self.tasks {
            TaskSource::Epochs(stream) => Ok(stream.row(draw)),
            TaskSource::Sampler(_) => {
                let row = kept.and_then(|row| usize::try_from(row).ok()).filter(|row| *row < rows);
                row.ok_or_else(|| PipelineError::Stopped(wrong_row(draw, kept, rows)))
            }
        }
    }
}

/// Refuses a draw of a checkpoint whose row is not one of so many rows.
fn wrong_row(draw: u64, row: Option<u64>, rows: usize) -> String {
    match row {
        Some(row) => format!(
            "draw {draw} of the checkpoint is of row {row}, and data.train has {rows} rows\nhint: restore the files of data.train, or start a new run"
        ),
        None => format!("draw {draw} of the checkpoint has no row: no sampler drew it\nhint: start a new run"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_without_a_row_of_the_datasets_is_named() {
        assert!(
            wrong_row(3, Some(9), 8).starts_with("draw 3 of the checkpoint is of row 9, and data.train has 8 rows")
        );
        assert!(wrong_row(3, None, 8).starts_with("draw 3 of the checkpoint has no row: no sampler drew it"));
    }
}
