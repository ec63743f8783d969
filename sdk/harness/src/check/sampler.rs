//! The check of a sampler.

use super::decision::Decider;
use crate::error::HarnessError;
use crate::expectation::Expectation;
use crate::golden::{Case, Question};
use crate::plugin::LoadedPlugin;
use gavel_plugin::Decision;
use gavel_plugin::sampler::{Answer, Dataset, EndedGroup, Request, SampleOutcome};
use std::sync::Arc;

/// More tasks than a case wants.
const MANY: u32 = 512;

/// Draws tasks.
pub(super) struct Sampler;

impl Decider for Sampler {
    type Question = Request;
    type Answer = Answer;

    const DIFFERENT: &str = "the draws, the refusals or the state differ";
    /// The seed is a part of the request.
    const IS_SEEDED_BESIDE: bool = false;

    fn check(plugin: &LoadedPlugin) -> Result<(), HarnessError> {
        match plugin.is_sampler() {
            true => Ok(()),
            false => Err(HarnessError::NotASampler(plugin.name().to_owned())),
        }
    }

    fn question(case: &Case) -> Option<&Arc<Request>> {
        match &case.question {
            Question::Draw(request) => Some(request),
            _ => None,
        }
    }

    fn ask(plugin: &LoadedPlugin, request: &Arc<Request>, _: u64) -> Decision<Answer> {
        plugin.block_on(plugin.plugin().sample_call(request.clone()))
    }

    fn is_answer(expected: &Expectation) -> bool {
        expected.draws.is_some() || expected.refusals.is_some()
    }

    /// More tasks, none, other rewards of the groups that ended, and datasets of one row, or one of very many.
    fn mutated(request: &Request) -> Vec<(&'static str, Request)> {
        let with = |change: &dyn Fn(&mut EndedGroup)| {
            let mut request = request.clone();
            request.ended.iter_mut().for_each(change);
            request
        };
        let rewarded = |reward: fn(f64) -> f64| {
            with(&|group| group.samples.iter_mut().for_each(|sample| sample.reward = sample.reward.map(reward)))
        };
        let without_reward = with(&|group| {
            for sample in &mut group.samples {
                (sample.outcome, sample.reward) = (SampleOutcome::Fault, None);
                sample.metrics.clear();
            }
        });
        let mut mutated = vec![
            ("many tasks", Request { wanted: MANY, ..request.clone() }),
            ("no task", Request { wanted: 0, ..request.clone() }),
            ("equal rewards", rewarded(|_| 0.5)),
            ("large rewards", rewarded(|reward| if reward > 0.0 { 1e6 } else { -1e6 })),
            ("no reward", without_reward),
            ("dropped groups", with(&|group| group.dropped = Some("equal-rewards".to_owned()))),
        ];
        // A state is of the datasets that it was made with, and a group is of one of their rows.
        if request.state.is_empty() {
            let first = Request { ended: Vec::new(), ..request.clone() };
            let datasets = request.datasets.iter().map(|of| Dataset { rows: 1, ..*of }).collect();
            mutated.push(("one row", Request { datasets, ..first.clone() }));
            let mut large = first;
            if let Some(dataset) = large.datasets.first_mut() {
                dataset.rows = 100_000;
            }
            mutated.push(("100000 rows", large));
        }
        mutated
    }
}
