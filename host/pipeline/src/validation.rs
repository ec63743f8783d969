//! Greedy answers to the validation set, scored by the run's own plugins on
//! the same path as in training.

use crate::config::{Config, TrainTable};
use crate::error::{PipelineError, Result};
use crate::policy::Policy;
use crate::prompts::Prompt;
use crate::rollout::Rollout;
use crate::setup::Setup;
use crate::step_metrics::{count_outcomes, members};
use crate::task_stream::validation_seeds;
use gavel_data::{Group, NotCalled, SampleOutcome};
use gavel_rollout::AsyncEngine;
use gavel_runs::Metrics;
use gavel_runs::metrics::mean;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
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
    let Setup { scorer, validation, .. } = Setup::new(&config)?;
    let Policy { model, text } = Policy::load(&config.model, &config.resources, config.seed)?;
    let engine = AsyncEngine::start(model, text, config.rollout.engine(validation.len()), Arc::new(()))?;
    let rollout = Rollout { engine, scorer: Arc::new(scorer), table: config.rollout.clone() };
    let runtime = rollout.scorer.sandbox().handle().clone();
    runtime.block_on(validate(&config, &rollout, &validation))
}

/// `val/accuracy`, `val/reward/*`, `val/<data source>/mean@1` and the like.
pub(crate) async fn validate<T: TrainTable>(
    config: &Config<T>,
    rollout: &Rollout,
    prompts: &[Prompt],
) -> Result<Metrics> {
    let start = Instant::now();
    let seeds = |row| validation_seeds(config.seed, row);
    let draws: Vec<_> = prompts.iter().enumerate().map(|(row, prompt)| (prompt, seeds(row))).collect();
    let groups = rollout.draw_each(&draws, &rollout.greedy()).await?;
    let mut metrics = describe(&groups, config.accuracy_reward());
    metrics.time("validate", start);
    Ok(metrics)
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

fn describe(groups: &[Group], accuracy: Option<&str>) -> Metrics {
    let mut metrics = Metrics::default();
    let right: Vec<f64> = members(groups)
        .filter_map(|member| right(&member.outcome, accuracy?))
        .map(|right| f64::from(u8::from(right)))
        .collect();
    if !right.is_empty() {
        metrics.set("val/accuracy", mean(&right));
    }
    let mut sources: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for member in members(groups) {
        let source = member.sample.task.data_source.as_deref().unwrap_or("unknown");
        sources.entry(source).or_default().extend(member.outcome.reward);
    }
    let rewards: Vec<f64> = sources.values().flatten().copied().collect();
    if !rewards.is_empty() {
        metrics.set("val/reward/mean", mean(&rewards));
    }
    for (source, rewards) in sources.iter().filter(|(_, rewards)| !rewards.is_empty()) {
        metrics.set(format!("val/{source}/mean@1"), mean(rewards));
    }
    let lengths: Vec<f64> = members(groups)
        .flat_map(|member| &member.sample.trajectories)
        .filter_map(|trajectory| Some(trajectory.tokens()?.response.len() as f64))
        .collect();
    metrics.set("val/response_length/mean", mean(&lengths));
    count_outcomes("val/outcome", groups, &mut metrics);
    metrics
}
