//! Greedy answers to the validation set, scored by the run's own plugins on
//! the same path as in training.

use crate::config::Config;
use crate::error::{PipelineError, Result};
use crate::groups::count_outcomes;
use crate::learner::Learner;
use crate::prompts::Prompt;
use crate::rollout::{Draw, Rolled, rollout};
use crate::setup::Setup;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{NotCalled, SampleOutcome};
use gavel_policy::Engine;
use gavel_runs::Metrics;
use gavel_runs::metrics::mean;
use gavel_scoring::Scorer;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// A score of at least this is a right answer.
const RIGHT: f64 = 1.0;

/// Validates the model of a configuration, or the checkpoint in its place.
///
/// # Errors
/// The configuration has no validation set, or anything that it names cannot
/// be used.
pub fn evaluate(config: &Config<toml::Table>, checkpoint: Option<&Path>) -> Result<Metrics> {
    let mut config = config.clone();
    if let Some(checkpoint) = checkpoint {
        config.model.path = Some(checkpoint.to_owned());
        config.model.init = None;
        config.model.lora = None;
    }
    if config.data.validation.is_none() {
        return Err(PipelineError::Stopped("there is no data.validation to evaluate on".into()));
    }
    let setup = Setup::new(&config)?;
    let learner = Learner::new(&config.model, &config.resources, config.seed)?;
    let mut engine = Engine::new(&learner.model, config.rollout.engine(setup.validation.len()))?;
    validate(&config, &learner, &mut engine, &setup.scorer, &setup.validation)
}

/// `val/accuracy`, `val/reward/*`, `val/<data source>/mean@1` and the like.
pub(crate) fn validate<T>(
    config: &Config<T>,
    learner: &Learner,
    engine: &mut Engine,
    scorer: &Scorer,
    prompts: &[Prompt],
) -> Result<Metrics>
where
    Config<T>: Accuracy,
{
    let start = Instant::now();
    let draws: Vec<Draw<'_>> = prompts
        .iter()
        .enumerate()
        .map(|(at, prompt)| Draw {
            prompt,
            index: 0,
            seed: derive(config.seed, 0, at as u64, Purpose::Validation),
            plugin_seed: derive(config.seed, 0, at as u64, Purpose::Plugin),
        })
        .collect();
    let table = &config.rollout;
    let sampling = table.greedy(learner.text.tokenizer.stop_ids().to_vec());
    let (rolled, _) = rollout(learner, engine, scorer, &sampling, &table.stop, &draws, 1)?;
    let mut metrics = describe(&rolled, config.accuracy());
    metrics.time("validate", start);
    Ok(metrics)
}

/// Which reward says whether an answer is right.
pub(crate) trait Accuracy {
    fn accuracy(&self) -> Option<&str>;
}

impl<T: crate::config::TrainTable> Accuracy for Config<T> {
    fn accuracy(&self) -> Option<&str> {
        self.accuracy_reward()
    }
}

/// Whether an answer is right; unknown where the reward gave no score, or is for
/// other data sources.
fn right(outcome: &SampleOutcome, accuracy: &str) -> Option<bool> {
    match outcome.not_called.get(accuracy) {
        Some(NotCalled::Gate) => Some(false),
        Some(NotCalled::NoGate | NotCalled::DataSource) => None,
        None => Some(outcome.plugins.get(accuracy)?.outcome.score()? >= RIGHT),
    }
}

fn describe(rolled: &[Rolled], accuracy: Option<&str>) -> Metrics {
    let mut metrics = Metrics::default();
    let right: Vec<f64> = rolled
        .iter()
        .filter_map(|rolled| right(&rolled.outcome, accuracy?))
        .map(|right| f64::from(u8::from(right)))
        .collect();
    if !right.is_empty() {
        metrics.set("val/accuracy", mean(&right));
    }
    let mut sources: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for rolled in rolled {
        let source = rolled.sample.task.data_source.as_deref().unwrap_or("unknown");
        sources.entry(source).or_default().extend(rolled.outcome.reward);
    }
    let rewards: Vec<f64> = sources.values().flatten().copied().collect();
    if !rewards.is_empty() {
        metrics.set("val/reward/mean", mean(&rewards));
    }
    for (source, rewards) in sources.iter().filter(|(_, rewards)| !rewards.is_empty()) {
        metrics.set(format!("val/{source}/mean@1"), mean(rewards));
    }
    let lengths: Vec<f64> = rolled
        .iter()
        .flat_map(|rolled| &rolled.sample.trajectories)
        .filter_map(|trajectory| Some(trajectory.tokens()?.response.len() as f64))
        .collect();
    metrics.set("val/response_length/mean", mean(&lengths));
    count_outcomes("val/outcome", rolled, &mut metrics);
    metrics
}
