//! Supervised fine-tuning: imitate the responses of a dataset.

use crate::error::Result;
use crate::memory::predict_sft;
use crate::ranks::Ranks;
use crate::rows::{Drawable, TaskStream};
use crate::run::{Control, Run, RunShape, Setup, Start, Summary, components, find_run, try_rewards};
use gavel_config::{Config, SftTable};
use gavel_runs::Metrics;
use gavel_scoring::recording::Grouping;
use gavel_torch::peers::Peers;
use gavel_train::SftRow;
use std::time::Instant;

/// Runs `gavel sft`, until its last step or until `control` asks it to end. `peers` are the ranks of the run, all of which
/// call this.
///
/// # Errors
/// A rank is gone or has another configuration, anything that the configuration names cannot be used, or training fails.
pub fn sft(config: &Config<SftTable>, start: Start, peers: &Peers, control: &Control) -> Result<Summary> {
    let (table, ranks) = (&config.train, &Ranks::of(peers, &config.reward_model)?);
    let found = find_run(config, start, ranks)?;
    let setup = Setup::new(config, &components(found.as_ref())?, ranks)?;
    let Drawable { rows, shares } = setup.sft_rows(config)?;
    let learning = table.learning(rows.len());
    let schedule = learning.schedule.over(learning.steps).map_err(gavel_config::ConfigError::from)?;
    let cache = predict_sft(config, &setup, &rows, ranks.size())?.announce();
    if ranks.is_first() {
        try_rewards(config, &setup, &[])?;
    }
    let shape = RunShape { learning, drawn: 0, grouping: Grouping::default(), needs_reference: false, cache };
    let mut run = Run::open(config, setup, shape, found, ranks)?;
    let runtime = run.rollout.scorer.sandbox().handle().clone();
    runtime.block_on(run.begin())?;
    let enough =
        |accuracy: Option<f64>| accuracy.zip(table.stop_accuracy).is_some_and(|(found, enough)| found > enough);
    if enough(run.recorder.state().last_accuracy) {
        return run.summary();
    }
    let mut stream = TaskStream::new(config.seed, config.data.shuffle, &shares);
    let mut is_stopped = false;
    for step in run.steps() {
        let start = Instant::now();
        let size = table.batch_size as u64;
        let draws = (step - 1) * size..step * size;
        let batch: Vec<&SftRow> = draws.map(|ordinal| &rows[stream.row(ordinal)]).collect();
        let share = ranks.own(batch.iter().map(|row| (&*row.prompt, row.response.len())));
        let batch: Vec<SftRow> = batch[share].iter().copied().cloned().collect();
        let learning_rate = schedule.at(step - 1);
        let stats = run.updater.sft_step(step, batch, learning_rate)?;
        let mut metrics = Metrics::of_step(step);
        metrics.set("loss", stats.loss);
        metrics.set("token_accuracy", stats.token_accuracy);
        metrics.set("grad_norm", stats.grad_norm);
        metrics.set("learning_rate", learning_rate);
        metrics.count("tokens/response", stats.tokens as u64);
        let seconds = metrics.time("update", start);
        metrics.set("perf/tokens_per_second", stats.tokens as f64 / seconds);
        if ranks.is_first() && (step.is_multiple_of(10) || step == 1 || step == learning.steps) {
            tracing::info!(
                "step {step}/{}: loss {:.4}, token accuracy {:.3}",
                learning.steps,
                stats.loss,
                stats.token_accuracy
            );
        }
        let end = runtime.block_on(async {
            run.publish(step).await?;
            run.end_step(step, metrics).await
        })?;
        let is_stopping = ranks.exchange(&control.is_stopping())?.contains(&true);
        if end.is_checkpoint_due || enough(end.accuracy) || is_stopping {
            run.save(&[])?;
        }
        if enough(end.accuracy) {
            tracing::info!("validation accuracy is above train.stop_accuracy: done");
            break;
        }
        if is_stopping && step < learning.steps {
            is_stopped = true;
            break;
        }
    }
    // Until rank 0 has written everything, the others stay.
    ranks.exchange(&())?;
    Ok(Summary { is_stopped, ..run.summary()? })
}
