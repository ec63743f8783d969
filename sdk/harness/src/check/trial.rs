//! Calls of a plugin with other responses to a row.

use super::golden::Golden;
use crate::endpoints::Endpoints;
use crate::plugin::{LoadedPlugin, verdict};
use crate::rows::DataRow;
use gavel_data::{ContentPart, Evaluation, Json, Message, Role, Sample, SampleInput, Task, Trajectory};
use std::sync::Arc;

/// A plugin and the row of its calls.
pub(super) struct Trial<'a> {
    pub(super) plugin: &'a LoadedPlugin,
    pub(super) row: &'a DataRow,
    pub(super) endpoints: &'a Endpoints<'a>,
}

impl Trial<'_> {
    /// The verdict on a sample.
    pub(super) fn own(&self, input: &SampleInput) -> Evaluation {
        self.endpoints.restart(&self.row.replies);
        self.plugin.evaluate(input, self.row.seed)
    }

    /// A judger's verdicts on two responses in one group.
    pub(super) fn pair(&self, one: &str, other: &str) -> (Evaluation, Evaluation) {
        self.endpoints.restart(&self.row.replies);
        let group = [self.with_response(one), self.with_response(other)];
        let mut said = self.plugin.judge_all(&group, self.row.seed).into_iter();
        (verdict(said.next()), verdict(said.next()))
    }

    /// The verdicts on a mutated answer and on the golden one beside it.
    pub(super) fn against(&self, golden: &Golden, response: &str) -> (Evaluation, Evaluation) {
        match self.plugin.judges() {
            true => self.pair(&golden.response, response),
            false => (golden.said.clone(), self.own(&self.with_response(response))),
        }
    }

    /// Whether another ground truth changes the score of the golden answer.
    pub(super) fn looks_at_truth(&self, golden: &Golden) -> bool {
        // An answer that is alone in its group may be the best whatever the
        // truth is.
        let (Some(wrong), false) = (&golden.wrong, self.plugin.judges()) else { return true };
        let SampleInput { sample, verdicts } = self.with_response(&golden.response);
        let task = Arc::new(with_truth(&sample.task, wrong));
        let sample = Arc::new(Sample { task, ..Arc::unwrap_or_clone(sample) });
        let said = self.own(&SampleInput { sample, verdicts });
        said.outcome.score() != golden.said.outcome.score()
    }

    /// The row's sample with another last answer.
    pub(super) fn with_response(&self, response: &str) -> SampleInput {
        let mut sample = match &self.row.sample {
            Some(sample) => Sample::clone(sample),
            None => Sample::new(self.row.task.clone(), 0, Vec::new()),
        };
        let answer = sample.trajectories.first_mut().and_then(|trajectory| {
            trajectory.messages.iter_mut().rev().find(|message| message.role == Role::Assistant)
        });
        match answer {
            Some(message) => message.content = vec![ContentPart::Text(response.to_owned())],
            None => sample.trajectories = vec![Trajectory::of(vec![Message::new(Role::Assistant, response)])],
        }
        SampleInput { sample: Arc::new(sample), verdicts: self.row.verdicts.clone() }
    }
}

/// A task with another ground truth, wherever the row has it.
fn with_truth(task: &Task, truth: &str) -> Task {
    let mut task = task.clone();
    let columns = &mut task.reference.columns;
    for name in ["ground_truth", "answer"] {
        if columns.get(name).is_some() {
            columns.insert(name, truth);
        }
    }
    if let Some(mut model) = columns.get("reward_model").and_then(Json::fields)
        && model.get("ground_truth").is_some()
    {
        model.insert("ground_truth", truth);
        columns.insert("reward_model", model);
    }
    task.reference.ground_truth = Some(truth.to_owned());
    task
}
