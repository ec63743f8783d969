//! Answers to the validation set, scored by the run's own plugins on the same
//! path as in training: one that is greedy, or several that are sampled.

use crate::config::{Config, TrainTable};
use crate::error::{PipelineError, Result};
use crate::policy::Policy;
use crate::prompts::Prompt;
use crate::rollout::Rollout;
use crate::setup::Setup;
use crate::task_stream::validation_seeds;
use crate::validation_metrics::describe;
use gavel_rollout::AsyncEngine;
use gavel_runs::Metrics;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

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
    let engine = AsyncEngine::start(
        model,
        text,
        config.rollout.engine(config.data.validation_samples * validation.len()),
        Arc::new(()),
    )?;
    let rollout = Rollout { engine, scorer: Arc::new(scorer), table: config.rollout.clone() };
    let runtime = rollout.scorer.sandbox().handle().clone();
    Ok(runtime.block_on(validate(&config, &rollout, &validation))?.metrics)
}

/// What a validation came to.
pub(crate) struct Validation {
    pub(crate) metrics: Metrics,
    /// Seconds in which all answers were there, and not all of their scores.
    pub(crate) waited: f64,
}

/// `val/accuracy`, `val/reward/*`, `val/<data source>/mean@n` and the like.
pub(crate) async fn validate<T: TrainTable>(
    config: &Config<T>,
    rollout: &Rollout,
    prompts: &[Prompt],
) -> Result<Validation> {
    let start = Instant::now();
    let samples = config.data.validation_samples;
    let seeds = |row: usize| (row * samples..(row + 1) * samples).map(|answer| validation_seeds(config.seed, answer));
    let sampling = if samples == 1 { rollout.greedy() } else { rollout.sampling() };
    let (groups, waited) = rollout.draw_all(prompts, |row| seeds(row).collect(), &sampling).await?;
    let mut metrics = describe(&groups, config.accuracy_reward(), samples);
    metrics.time("validate", start);
    Ok(Validation { metrics, waited })
}
