//! Tries the plugin that draws tasks before the first step, on the run's datasets and on made-up groups.

use crate::rows::Prompts;
use crate::run::check::Check;
use crate::run::setup::Setup;
use gavel_config::{Config, TrainTable};
use gavel_data::ShownLines;
use gavel_plugin::sampler::{Answer, EndedGroup, EndedSample, Request, SampleOutcome, Task};
use gavel_plugin::{DecisionError, Plugin};
use std::sync::Arc;

/// How many tasks are drawn at once.
const TASKS: u32 = 8;

/// Calls the sampler of a run, if it has one, for a few tasks, and for more after made-up groups of these ended. What it
/// returned, and a warning if it failed: a real group may have what it misses here.
pub(super) fn try_sampler<T: TrainTable>(
    config: &Config<T>,
    setup: &Setup,
    train: &Prompts,
) -> Option<(Check, Option<String>)> {
    let plugin: &Plugin = setup.sampler.as_deref()?;
    let size = config.rollout.group_size;
    let ask = |ended: Vec<EndedGroup>, state: Vec<u8>| {
        let datasets = train.datasets.iter().map(Into::into).collect();
        let next_draw = ended.len() as u64;
        let request = Request { step: 1, seed: config.seed, datasets, ended, wanted: TASKS, next_draw, state };
        setup.scorer.sandbox().handle().block_on(plugin.sample(Arc::new(request)))
    };
    let both = || -> Result<Answer, DecisionError> {
        let first = ask(Vec::new(), Vec::new())?;
        let ended = (0..).zip(first.draws).map(|(draw, task)| made_up(draw, task, size)).collect();
        ask(ended, first.state)
    };
    let tried = format!("{}: twice {TASKS} tasks, and groups of {size} made-up samples", plugin.name());
    let (found, warning) = match both() {
        Ok(_) => (format!("{tried}: all were drawn"), None),
        Err(error) => {
            let what = format!("tried with {TASKS} tasks and groups of {size} made-up samples");
            (format!("{tried}: it failed"), Some(format!("{what}, {}", ShownLines(error.to_string()))))
        }
    };
    Some((Check { what: "sampler tried", found }, warning))
}

/// A group of which every second sample has the reward 1.
fn made_up(draw: u64, task: Task, size: usize) -> EndedGroup {
    let reward = |index: usize| if index.is_multiple_of(2) { 1.0 } else { 0.0 };
    let sample =
        |index| EndedSample { outcome: SampleOutcome::Scored, reward: Some(reward(index)), metrics: Vec::new() };
    EndedGroup {
        draw,
        task,
        task_id: format!("made-up/{draw}"),
        data_source: None,
        version: 0,
        samples: (0..size).map(sample).collect(),
        dropped: None,
    }
}
