//! Answers to the validation set: one greedy answer to each row, or several that are sampled. The run's plugins score
//! them on the path that training uses.

use crate::config::{Config, TrainTable};
use crate::episode_metrics::describe_episodes;
use crate::error::Result;
use crate::prompts::Prompt;
use crate::rollout::Rollout;
use crate::task_stream::{Seeds, validation_seeds};
use crate::validation_metrics::describe;
use gavel_data::Group;
use gavel_policy::Sampling;
use gavel_runs::Metrics;
use std::time::Instant;

/// The results of a validation.
pub(crate) struct Validation {
    pub(crate) metrics: Metrics,
    /// The answers: a group for each row.
    pub(crate) groups: Vec<Group>,
    /// Seconds from the last answer to the last score.
    pub(crate) waited: f64,
}

/// Validates; the metrics are `val/accuracy`, `val/reward/*`, `val/<data source>/mean@n` and others.
pub(crate) async fn validate<T: TrainTable>(
    config: &Config<T>,
    rollout: &Rollout,
    prompts: &[Prompt],
) -> Result<Validation> {
    let temperature = if config.data.validation_samples == 1 { 0.0 } else { config.rollout.temperature };
    validate_at(config, rollout, prompts, temperature, &|| ()).await
}

/// Validates at this temperature. Calls `scored` after each answer.
pub(crate) async fn validate_at<T: TrainTable>(
    config: &Config<T>,
    rollout: &Rollout,
    prompts: &[Prompt],
    temperature: f32,
    scored: &(dyn Fn() + Sync),
) -> Result<Validation> {
    let start = Instant::now();
    let sampling = Sampling { temperature, ..rollout.sampling() };
    let (groups, waited) = rollout.draw_all(prompts, |row| seeds(config, row), &sampling, scored).await?;
    let mut metrics = describe(&groups, config.accuracy_reward(), config.data.validation_samples);
    if rollout.logic.has_turns() {
        describe_episodes("val/", &groups, &mut metrics);
    }
    metrics.time("validate", start);
    Ok(Validation { metrics, groups, waited })
}

/// The seeds of the answers to a row.
pub(crate) fn seeds<T>(config: &Config<T>, row: usize) -> Vec<Seeds> {
    let samples = config.data.validation_samples;
    (row * samples..(row + 1) * samples).map(|answer| validation_seeds(config.seed, answer)).collect()
}
