//! Answers to the validation set, scored by the run's own plugins on the same
//! path as in training: one that is greedy, or several that are sampled.

use crate::config::{Config, TrainTable};
use crate::error::Result;
use crate::prompts::Prompt;
use crate::rollout::Rollout;
use crate::task_stream::{Seeds, validation_seeds};
use crate::validation_metrics::describe;
use gavel_data::Group;
use gavel_policy::Sampling;
use gavel_runs::Metrics;
use std::time::Instant;

/// What a validation came to.
pub(crate) struct Validation {
    pub(crate) metrics: Metrics,
    /// The answers: a group of each row.
    pub(crate) groups: Vec<Group>,
    /// Seconds in which all answers were there, and not all of their scores.
    pub(crate) waited: f64,
}

/// `val/accuracy`, `val/reward/*`, `val/<data source>/mean@n` and the like.
pub(crate) async fn validate<T: TrainTable>(
    config: &Config<T>,
    rollout: &Rollout,
    prompts: &[Prompt],
) -> Result<Validation> {
    let temperature = if config.data.validation_samples == 1 { 0.0 } else { config.rollout.temperature };
    validate_at(config, rollout, prompts, temperature).await
}

/// The same at another temperature.
pub(crate) async fn validate_at<T: TrainTable>(
    config: &Config<T>,
    rollout: &Rollout,
    prompts: &[Prompt],
    temperature: f32,
) -> Result<Validation> {
    let start = Instant::now();
    let sampling = Sampling { temperature, ..rollout.sampling() };
    let (groups, waited) = rollout.draw_all(prompts, |row| seeds(config, row), &sampling).await?;
    let mut metrics = describe(&groups, config.accuracy_reward(), config.data.validation_samples);
    metrics.time("validate", start);
    Ok(Validation { metrics, groups, waited })
}

/// The seeds of the answers to a row.
pub(crate) fn seeds<T>(config: &Config<T>, row: usize) -> Vec<Seeds> {
    let samples = config.data.validation_samples;
    (row * samples..(row + 1) * samples).map(|answer| validation_seeds(config.seed, answer)).collect()
}
