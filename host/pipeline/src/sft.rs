//! Supervised fine-tuning: imitate the responses of a dataset.

use crate::config::{Config, SftTable};
use crate::error::{PipelineError, Result};
use crate::memory::predict_sft;
use crate::prompts::sft_rows;
use crate::run::{Run, Shape, rows_of_step};
use crate::setup::Setup;
use crate::{Start, Summary};
use gavel_runs::Metrics;
use gavel_scoring::recording::Grouping;
use gavel_train::SftRow;
use std::time::Instant;

/// Runs `gavel sft`.
///
/// # Errors
/// Anything that the configuration names cannot be used, or training fails.
pub fn sft(config: &Config<SftTable>, start: Start) -> Result<Summary> {
    let table = &config.train;
    let schedule = table.schedule().over(table.steps).map_err(crate::config::ConfigError::from)?;
    let setup = Setup::new(config)?;
    let rows = sft_rows(config, &setup.text, setup.limit)?;
    if let Some(warning) = predict_sft(config, &setup, &rows)?.warning() {
        tracing::warn!("{warning}");
    }
    let shape = Shape {
        optimizer: table.optimizer,
        max_tokens_per_micro_batch: table.max_tokens_per_micro_batch,
        gradient_checkpointing: table.gradient_checkpointing,
        drawn: 0,
        validate_every: table.validate_every,
        steps: table.steps,
        grouping: Grouping::default(),
    };
    let mut run = Run::open(config, setup, shape, start)?;
    run.begin()?;
    let enough =
        |accuracy: Option<f64>| accuracy.zip(table.stop_accuracy).is_some_and(|(found, enough)| found > enough);
    if enough(run.state.last_accuracy) {
        return run.summary();
    }
    for step in run.state.step + 1..=table.steps {
        let start = Instant::now();
        let batch: Vec<SftRow> = rows_of_step(config.seed, step, table.batch_size, rows.len())
            .into_iter()
            .map(|at| rows[at].clone())
            .collect();
        let learning_rate = schedule.at(step - 1);
        let stats = run
            .trainer
            .sft_step(&run.learner.model, &batch, learning_rate)
            .map_err(|source| PipelineError::Train { step, source })?;
        let mut metrics = Metrics::of_step(step);
        metrics.set("loss", stats.loss);
        metrics.set("token_accuracy", stats.token_accuracy);
        metrics.set("grad_norm", stats.grad_norm);
        metrics.set("learning_rate", learning_rate);
        metrics.count("tokens/response", stats.tokens as u64);
        let seconds = metrics.time("update", start);
        metrics.set("perf/tokens_per_second", stats.tokens as f64 / seconds);
        if step.is_multiple_of(10) {
            tracing::info!("step {step}: loss {:.4}, token accuracy {:.3}", stats.loss, stats.token_accuracy);
        }
        let accuracy = run.end_step(step, metrics)?;
        if enough(accuracy) {
            run.save()?;
            tracing::info!("validation accuracy is above train.stop_accuracy: done");
            break;
        }
    }
    run.summary()
}
