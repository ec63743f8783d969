//! Asking a plugin about other responses to a row.

use super::golden::Golden;
use crate::endpoints::Endpoints;
use crate::error::HarnessError;
use crate::harness::Harness;
use crate::plugin::LoadedPlugin;
use crate::rows::DataRow;
use gavel_data::{ContentPart, Evaluation, FinishReason, Message, Outcome, Role, Sample, Task, Trajectory};
use gavel_plugin::PluginSpec;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The plugin, once for each of the parameters that rows have.
pub(super) struct Subjects {
    of_params: HashMap<String, LoadedPlugin>,
    common: LoadedPlugin,
}

impl Subjects {
    pub(super) fn load(harness: &Harness, spec: &PluginSpec, rows: &[DataRow]) -> Result<Self, HarnessError> {
        let load = |params: &Map<String, Value>| {
            let plugin = harness.load(PluginSpec { params: params.clone(), ..spec.clone() })?;
            match plugin.scores() {
                true => Ok(plugin),
                false => Err(HarnessError::ScoresNothing(spec.name.clone())),
            }
        };
        let mut of_params = HashMap::new();
        for params in rows.iter().filter_map(|row| row.params.as_ref()) {
            if let Entry::Vacant(new) = of_params.entry(key(params)) {
                new.insert(load(params)?);
            }
        }
        // A plugin that needs parameters may have them in each row only.
        let common = match rows.iter().all(|row| row.params.is_some()) {
            true => rows.iter().find_map(|row| row.params.as_ref()).unwrap_or(&spec.params),
            false => &spec.params,
        };
        Ok(Self { of_params, common: load(common)? })
    }

    /// The one for a row.
    pub(super) fn of(&self, row: &DataRow) -> &LoadedPlugin {
        row.params.as_ref().and_then(|params| self.of_params.get(&key(params))).unwrap_or(&self.common)
    }

    /// One of them: the component is the same in all.
    pub(super) fn any(&self) -> &LoadedPlugin {
        &self.common
    }
}

fn key(params: &Map<String, Value>) -> String {
    Value::Object(params.clone()).to_string()
}

/// A plugin and the row that it is asked about.
pub(super) struct Trial<'a> {
    pub(super) plugin: &'a LoadedPlugin,
    pub(super) row: &'a DataRow,
    pub(super) endpoints: &'a Endpoints<'a>,
}

impl Trial<'_> {
    /// What is said of a sample.
    pub(super) fn own(&self, sample: &Arc<Sample>) -> Evaluation {
        self.endpoints.restart(&self.row.replies);
        self.plugin.evaluate(sample, self.row.seed)
    }

    /// What is said of two responses; a judger compares them.
    pub(super) fn pair(&self, one: &str, other: &str) -> (Evaluation, Evaluation) {
        let (one, other) = (self.with_response(one), self.with_response(other));
        if !self.plugin.judges() {
            return (self.own(&one), self.own(&other));
        }
        self.endpoints.restart(&self.row.replies);
        let mut said = self.plugin.judge_all(&[one, other], self.row.seed).into_iter();
        let nothing = || Evaluation::without_call(Outcome::Abstained("the judger said nothing".into()));
        let mut next = || said.next().unwrap_or_else(nothing);
        (next(), next())
    }

    /// What is said of a mutated answer, and of the golden one beside it.
    pub(super) fn against(&self, golden: &Golden, response: &str) -> (Evaluation, Evaluation) {
        match self.plugin.judges() {
            true => self.pair(&golden.response, response),
            false => (golden.said.clone(), self.own(&self.with_response(response))),
        }
    }

    /// Whether another ground truth makes another score of the golden answer.
    pub(super) fn looks_at_truth(&self, golden: &Golden) -> bool {
        let Some(wrong) = &golden.wrong else { return true };
        let sample = self.with_response(&golden.response);
        let task = Arc::new(with_truth(&sample.task, wrong));
        let said = self.own(&Arc::new(Sample { task, ..Arc::unwrap_or_clone(sample) }));
        match self.plugin.judges() {
            // Alone in its group it may be the best whatever the truth is.
            true => true,
            false => said.outcome.score() != golden.said.outcome.score(),
        }
    }

    /// The row's sample with another last answer.
    pub(super) fn with_response(&self, response: &str) -> Arc<Sample> {
        let mut sample = match &self.row.sample {
            Some(sample) => Sample::clone(sample),
            None => Sample { task: self.row.task.clone(), index: 0, trajectories: Vec::new() },
        };
        let answer = sample.trajectories.first_mut().and_then(|trajectory| {
            trajectory.messages.iter_mut().rev().find(|message| message.role == Role::Assistant)
        });
        match answer {
            Some(message) => message.content = vec![ContentPart::Text(response.to_owned())],
            None => {
                sample.trajectories = vec![Trajectory {
                    messages: vec![Message::new(Role::Assistant, response)],
                    tokens: None,
                    finish_reason: FinishReason::Stop,
                }]
            }
        }
        Arc::new(sample)
    }
}

/// A task with another ground truth, wherever the row has it.
fn with_truth(task: &Task, truth: &str) -> Task {
    let mut task = task.clone();
    let columns = &mut task.reference.columns;
    for name in ["ground_truth", "answer"] {
        if let Some(value) = columns.get_mut(name) {
            *value = truth.into();
        }
    }
    if let Some(value) = columns.get_mut("reward_model").and_then(|model| model.get_mut("ground_truth")) {
        *value = truth.into();
    }
    task.reference.ground_truth = Some(truth.to_owned());
    task
}
