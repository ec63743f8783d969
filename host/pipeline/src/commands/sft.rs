//! Supervised fine-tuning: imitate the responses of a dataset.

use super::ShownText;
use crate::error::Result;
use crate::memory::predict_sft;
use crate::ranks::Ranks;
use crate::rows::{Drawable, PlacedRow, SftRows, StoredRows, TaskStream};
use crate::run::{Control, Run, RunShape, Setup, Start, Summary, components, find_run, try_rewards};
use gavel_config::{Config, SftTable};
use gavel_runs::{Metrics, TrainedRow};
use gavel_scoring::recording::Grouping;
use gavel_text::TextModel;
use gavel_torch::peers::Peers;
use gavel_train::{Schedule, SftRow};
use std::time::Instant;

/// The most rows of a step that are kept.
const KEPT_ROWS: usize = 256;

/// Runs `gavel sft`, until its last step or until `control` asks it to end. `peers` are the ranks of the run, all of which
/// call this.
///
/// # Errors
/// A rank is gone or has another configuration, anything that the configuration names cannot be used, or training fails.
pub fn sft(config: &Config<SftTable>, start: Start, peers: &Peers, control: &Control) -> Result<Summary> {
    let (table, ranks) = (&config.train, &Ranks::of(peers, &config.reward_model)?);
    let found = find_run(config, start, ranks)?;
    let setup = Setup::new(config, &components(found.as_ref())?, ranks)?;
    let rows = setup.sft_rows(config)?;
    let learning = table.learning(rows.drawable.rows.len());
    let schedule = learning.schedule.over(learning.steps).map_err(gavel_config::ConfigError::from)?;
    let cache = predict_sft(config, &setup, &rows, ranks.size())?.announce();
    if ranks.is_first() {
        try_rewards(config, &setup, None)?;
    }
    let SftRows { drawable: Drawable { rows, shares }, .. } = rows;
    let shape = RunShape { learning, drawn: 0, grouping: Grouping::default(), needs_reference: false, cache };
    let mut run = Run::open(config, setup, shape, found, ranks)?;
    let runtime = run.rollout.scorer.sandbox().handle().clone();
    runtime.block_on(run.begin()).inspect_err(|error| run.recorder.record_failure(error))?;
    if is_enough(table, run.recorder.state().last_accuracy) {
        run.recorder.record_end(&Ok(false));
        return run.summary();
    }
    let stream = TaskStream::new(config.seed, config.data.shuffle, &shares);
    let taken = take_steps(&mut run, &rows, stream, &schedule, control);
    if taken.is_err() {
        let logged = run.recorder.log_waiting();
        // Other ranks may be gone.
        let saved = if ranks.are_several() { logged } else { logged.and_then(|()| run.save_if_whole(&[])) };
        run.recorder.report_left(saved);
    }
    run.recorder.record_end(&taken);
    let is_stopped = taken?;
    // Until rank 0 has written everything, the others stay.
    ranks.exchange(&())?;
    Ok(Summary { is_stopped, ..run.summary()? })
}

/// Whether the accuracy of the last validation ends the run.
fn is_enough(table: &SftTable, accuracy: Option<f64>) -> bool {
    accuracy.zip(table.stop_accuracy).is_some_and(|(found, enough)| found > enough)
}

/// Takes the steps that are left. Returns whether the run was asked to end before its last step.
fn take_steps(
    run: &mut Run<'_, SftTable>,
    rows: &StoredRows<PlacedRow>,
    mut stream: TaskStream,
    schedule: &Schedule,
    control: &Control,
) -> Result<bool> {
    let (table, ranks, steps) = (&run.config.train, run.ranks.clone(), run.learning.steps);
    let runtime = run.rollout.scorer.sandbox().handle().clone();
    for step in run.steps() {
        let start = Instant::now();
        let size = table.batch_size as u64;
        let draws = (step - 1) * size..step * size;
        let batch = draws.map(|ordinal| rows.get(stream.row(ordinal))).collect::<Result<Vec<_>>>()?;
        let share = ranks.own(batch.iter().map(|placed| (&*placed.row.prompt, placed.row.response.len())));
        let own: Vec<SftRow> = batch[share.clone()].iter().map(|placed| placed.row.clone()).collect();
        let learning_rate = schedule.at(step - 1);
        let stats = run.updater.sft_step(step, own, learning_rate)?;
        let mut metrics = Metrics::of_step(step);
        metrics.set("loss", stats.loss);
        metrics.set("token_accuracy", stats.token_accuracy);
        metrics.set("grad_norm", stats.grad_norm);
        metrics.set("learning_rate", learning_rate);
        metrics.count("tokens/response", stats.tokens as u64);
        let seconds = metrics.time("update", start);
        metrics.set("perf/tokens_per_second", stats.tokens as f64 / seconds);
        if run.config.log.trajectories && run.recorder.has_room_for_rows() {
            let numbered = share.clone().zip(&batch[share]).take_while(|(number, _)| *number < KEPT_ROWS);
            let kept = numbered
                .zip(&stats.row_losses)
                .map(|((number, row), loss)| trained_row(step, number, row, *loss, run.rollout.engine.text()));
            let kept = kept.collect::<Result<Vec<_>>>()?;
            run.recorder.keep_rows(step, &kept)?;
        }
        if ranks.is_first() && (step.is_multiple_of(10) || step == 1 || step == steps) {
            tracing::info!("step {step}/{steps}: loss {:.4}, token accuracy {:.3}", stats.loss, stats.token_accuracy);
        }
        let end = runtime.block_on(async {
            run.note_step(step, &metrics);
            run.publish(step).await?;
            run.end_step(step, metrics).await
        })?;
        let is_stopping = ranks.exchange(&control.is_stopping())?.contains(&true);
        if end.is_checkpoint_due || is_enough(table, end.accuracy) || is_stopping {
            run.save(&[])?;
        }
        if is_enough(table, end.accuracy) {
            tracing::info!("validation accuracy is above train.stop_accuracy: done");
            break;
        }
        if is_stopping && step < steps {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The record of row `number` of step `step`.
fn trained_row(step: u64, number: usize, placed: &PlacedRow, loss: f64, text: &TextModel) -> Result<TrainedRow> {
    let PlacedRow { row: SftRow { prompt, response }, place } = placed;
    let mut parts = ShownText::learned(None, prompt, response, text)?.parts.into_iter().map(|part| part.text);
    Ok(TrainedRow {
        id: format!("{step}.{number}"),
        trained_step: step,
        row: place.to_string(),
        prompt_text: parts.next().unwrap_or_default(),
        response: parts.next().unwrap_or_default(),
        prompt_length: prompt.len(),
        response_length: response.len(),
        loss,
    })
}

#[cfg(test)]
mod tests;
