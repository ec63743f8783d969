//! The check of an advantage.

use super::decision::Decider;
use crate::error::HarnessError;
use crate::expectation::Expectation;
use crate::golden::{Case, Question};
use crate::plugin::LoadedPlugin;
use gavel_plugin::Decision;
use gavel_plugin::advantage::{Batch, Estimates, ScoredSample};
use std::sync::Arc;

/// Turns rewards into advantages.
pub(super) struct Advantage;

impl Decider for Advantage {
    type Question = Batch;
    type Answer = Estimates;

    const DIFFERENT: &str = "the advantages or the state differ";
    const IS_SEEDED_BESIDE: bool = true;

    fn check(plugin: &LoadedPlugin) -> Result<(), HarnessError> {
        match plugin.is_advantage() {
            true => Ok(()),
            false => Err(HarnessError::NotAnAdvantage(plugin.name().to_owned())),
        }
    }

    fn question(case: &Case) -> Option<&Arc<Batch>> {
        match &case.question {
            Question::Batch(batch) => Some(batch),
            _ => None,
        }
    }

    fn ask(plugin: &LoadedPlugin, batch: &Arc<Batch>, seed: u64) -> Decision<Estimates> {
        plugin.block_on(plugin.plugin().estimate_call(batch.clone(), seed))
    }

    fn is_answer(expected: &Expectation) -> bool {
        expected.advantages.is_some()
    }

    /// Groups of one sample, of equal rewards, of very large ones, and with nothing to learn from.
    fn mutated(batch: &Batch) -> Vec<(&'static str, Batch)> {
        let with = |change: &dyn Fn(&mut Vec<ScoredSample>)| {
            let mut batch = batch.clone();
            batch.groups.iter_mut().for_each(|group| change(&mut group.samples));
            batch
        };
        let rewarded = |reward: fn(f64) -> f64| {
            with(&|samples| {
                for sample in samples {
                    sample.reward = reward(sample.reward);
                    sample.parts.iter_mut().for_each(|part| part.counted = reward(part.counted));
                }
            })
        };
        let unlearned = with(&|samples| {
            let trajectories = samples.iter_mut().flat_map(|sample| &mut sample.trajectories);
            trajectories.for_each(|trajectory| trajectory.learned.clear());
        });
        let without_score = with(&|samples| {
            samples.iter_mut().flat_map(|sample| &mut sample.parts).for_each(|part| part.score = None);
        });
        vec![
            ("one sample", with(&|samples| samples.truncate(1))),
            ("equal rewards", rewarded(|_| 0.5)),
            ("large rewards", rewarded(|reward| if reward > 0.0 { 1e6 } else { -1e6 })),
            ("no score", without_score),
            ("nothing to learn from", unlearned),
        ]
    }
}
