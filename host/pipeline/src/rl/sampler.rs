//! Tasks that a plugin draws in place of epochs, and groups that it refuses.

use crate::error::{PipelineError, Result};
use crate::ranks::Ranks;
use crate::rl::advantages::reward;
use crate::rows::UsableDataset;
use crate::samples::DrawnGroup;
use gavel_config::RlTable;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{Evaluation, Member, Outcome};
use gavel_plugin::Plugin;
use gavel_plugin::sampler::{Answer, EndedGroup, EndedSample, Metric, Refusal, Request, Task};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// A plugin that draws tasks, with its state.
pub(crate) struct Sampler {
    plugin: Arc<Plugin>,
    ranks: Ranks,
    /// The run's seed.
    seed: u64,
    datasets: Vec<UsableDataset>,
    state: Vec<u8>,
    /// Seconds in its calls since they were last taken.
    seconds: f64,
}

/// The answer of a sampler to a request.
#[derive(Debug, PartialEq)]
pub(crate) struct SamplerAnswer {
    /// The rows that are drawn, among the rows of all datasets.
    pub(crate) rows: Vec<usize>,
    /// Why groups are refused, by their draws.
    pub(crate) refusals: BTreeMap<u64, String>,
    /// The plugin's next state.
    state: Vec<u8>,
}

impl Sampler {
    /// A sampler of these datasets, in a run with the seed `seed`; `state` comes from the checkpoint of a resumed run.
    pub(crate) fn new(
        plugin: Arc<Plugin>,
        ranks: Ranks,
        seed: u64,
        datasets: Vec<UsableDataset>,
        state: Vec<u8>,
    ) -> Self {
        Self { plugin, ranks, seed, datasets, state, seconds: 0.0 }
    }

    /// The plugin's name in the run.
    pub(crate) fn name(&self) -> &str {
        self.plugin.name()
    }

    /// The state for the next call; a checkpoint has it.
    pub(crate) fn state(&self) -> &[u8] {
        &self.state
    }

    /// The rows of all datasets.
    pub(crate) fn rows(&self) -> usize {
        self.datasets.iter().map(|dataset| dataset.rows).sum()
    }

    /// Seconds in its calls since this was last asked.
    pub(crate) fn take_seconds(&mut self) -> f64 {
        std::mem::take(&mut self.seconds)
    }

    /// Asks for the rows of `draws` in step `step`, or about groups that `ended` before it trains on them. Rank 0 asks,
    /// and all ranks have the answer. [`keep`](Self::keep) must follow: it sets the state of the next call.
    ///
    /// # Errors
    /// The plugin failed, or a rank is gone.
    pub(crate) fn ask(
        &self,
        step: u64,
        draws: Range<u64>,
        ended: Vec<EndedGroup>,
    ) -> impl Future<Output = Result<SamplerAnswer>> + use<> {
        // Each draw is asked for once, and each group is the first of one call at most.
        let seed = match ended.first() {
            None => derive(self.seed, draws.start, 0, Purpose::Sampler),
            Some(first) => derive(self.seed, first.draw, 1, Purpose::Sampler),
        };
        let request = Request {
            step,
            seed,
            datasets: self.datasets.iter().map(Into::into).collect(),
            ended,
            wanted: (draws.end - draws.start) as u32,
            next_draw: draws.start,
            state: self.state.clone(),
        };
        let (plugin, ranks, datasets) = (self.plugin.clone(), self.ranks.clone(), self.datasets.clone());
        async move {
            let decide = async {
                let answer = plugin.sample(Arc::new(request)).await;
                let answer = answer.map(|answer| SamplerAnswer::of(answer, &datasets));
                answer.map_err(|source| PipelineError::Decision { step, source })
            };
            ranks.decided_by_first(decide, SamplerAnswer::written, SamplerAnswer::read).await
        }
    }

    /// Takes the next state out of an answer, and counts the seconds of its call.
    pub(crate) fn keep(&mut self, answer: &mut SamplerAnswer, seconds: f64) {
        self.state = std::mem::take(&mut answer.state);
        self.seconds += seconds;
    }

    /// Groups that ended, as the plugin sees them.
    pub(crate) fn ended(&self, groups: &[DrawnGroup], table: &RlTable) -> Vec<EndedGroup> {
        let grouping = table.grouping();
        let sample = |member: &Member| EndedSample {
            outcome: member.outcome.outcome.into(),
            reward: reward(member, &grouping),
            metrics: member.outcome.plugins.iter().flat_map(|(name, of)| metrics(name, of)).collect(),
        };
        let ended = |drawn: &DrawnGroup| EndedGroup {
            draw: drawn.draw,
            task: place(drawn.row, &self.datasets),
            task_id: drawn.group.task.id.clone(),
            data_source: drawn.group.task.data_source.clone(),
            version: drawn.version,
            samples: drawn.group.members.iter().map(sample).collect(),
            dropped: drawn.dropped.as_ref().map(|reason| reason.name().into_owned()),
        };
        groups.iter().map(ended).collect()
    }
}

/// The score of a reward under its name, and the metrics of the score.
fn metrics(reward: &str, evaluation: &Evaluation) -> Vec<Metric> {
    let Outcome::Scored(score) = &evaluation.outcome else { return Vec::new() };
    let own = Metric { name: reward.to_owned(), value: score.value };
    let more = score.metrics.iter();
    let more = more.map(|metric| Metric { name: format!("{reward}/{}", metric.name), value: metric.value });
    std::iter::once(own).chain(more).collect()
}

/// A row among the rows of all datasets, as a plugin names it. It is below their number: answers and checkpoints with
/// other rows are refused.
fn place(row: usize, datasets: &[UsableDataset]) -> Task {
    let mut first = 0;
    for (dataset, of) in (0..).zip(datasets) {
        if row < first + of.rows {
            return Task { dataset, row: (row - first) as u64 };
        }
        first += of.rows;
    }
    Task { dataset: datasets.len() as u32, row: (row - first) as u64 }
}

impl SamplerAnswer {
    fn of(Answer { draws, refusals, state }: Answer, datasets: &[UsableDataset]) -> Self {
        let first = |dataset: u32| datasets.iter().take(dataset as usize).map(|of| of.rows).sum::<usize>();
        let rows = draws.iter().map(|task| first(task.dataset) + task.row as usize).collect();
        let refusals = refusals.into_iter().map(|Refusal { draw, reason }| (draw, reason)).collect();
        Self { rows, refusals, state }
    }

    /// As bytes: a line of JSON, and the state.
    fn written(&self) -> Vec<u8> {
        let line = serde_json::json!([self.rows, self.refusals]).to_string();
        [line.as_bytes(), b"\n", &self.state].concat()
    }

    /// The answer that rank 0 has written; nothing if it is cut.
    fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let (rows, refusals) = serde_json::from_slice(&bytes[..end]).ok()?;
        Some(Self { rows, refusals, state: bytes[end + 1..].to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_within_their_datasets() {
        let datasets = [3, 1, 5].map(|rows| UsableDataset { rows, weight: None });
        let places: Vec<(u32, u64)> = (0..9)
            .map(|row| {
                let Task { dataset, row } = place(row, &datasets);
                (dataset, row)
            })
            .collect();
        assert_eq!(places, [(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (2, 4)]);
        let draws = places.iter().map(|&(dataset, row)| Task { dataset, row }).collect();
        let refusals = vec![Refusal { draw: 7, reason: "too-hard".into() }];
        let answer = SamplerAnswer::of(Answer { draws, refusals, state: vec![1, b'\n', 2] }, &datasets);
        assert_eq!(answer.rows, (0..9).collect::<Vec<_>>());
        assert_eq!(SamplerAnswer::read(&answer.written()), Some(answer));
        assert_eq!(SamplerAnswer::read(b""), None);
    }
}
