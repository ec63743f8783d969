//! Reinforcement learning, one policy version after another: a group of
//! responses to each prompt, their scores, their advantages, an update.

use crate::advantages::advantages;
use crate::config::{Config, RlTable};
use crate::error::Result;
use crate::failure_rate::check_failures;
use crate::memory::predict_train;
use crate::prompts::Prompt;
use crate::rollout::GroupDraw;
use crate::run::{Run, RunShape};
use crate::setup::Setup;
use crate::step_metrics::{describe, outcomes};
use crate::task_stream::{Numbering, TaskStream};
use crate::{Start, Summary};
use gavel_data::Group;
use gavel_runs::Metrics;
use gavel_runs::metrics::mean;
use gavel_train::{Experience, Staleness, UpdateStats};
use std::time::Instant;

/// Runs `gavel train`.
///
/// # Errors
/// Anything that the configuration names cannot be used, too many samples
/// cannot be scored, or training fails.
pub fn train(config: &Config<RlTable>, start: Start) -> Result<Summary> {
    let table = &config.train;
    let learning = table.learning();
    let schedule = learning.schedule.over(table.steps).map_err(crate::config::ConfigError::from)?;
    let setup = Setup::new(config)?;
    let prompts = setup.train_prompts(config)?;
    if let Some(warning) = predict_train(config, &setup, &prompts)?.warning() {
        tracing::warn!("{warning}");
    }
    let shape = RunShape {
        learning,
        drawn: table.prompts_per_step * config.rollout.group_size,
        grouping: table.grouping(),
        needs_reference: table.loss.kl.is_some(),
    };
    let mut run = Run::open(config, setup, shape, start)?;
    run.begin()?;
    let mut stream = TaskStream::new(config.seed, prompts.len());
    for step in run.steps() {
        let metrics = rl_step(&mut run, &prompts, &mut stream, step, schedule.at(step - 1))?;
        let number = |name: &str| metrics.get(name).unwrap_or(f64::NAN);
        tracing::info!(
            "step {step}/{}: reward {:.3} ± {:.3}, length {:.1}, entropy {:.3}, {:.2} s",
            table.steps,
            number("reward/mean"),
            number("reward/std"),
            number("response_length/mean"),
            number("entropy"),
            number("time/step")
        );
        run.end_step(step, metrics)?;
    }
    run.summary()
}

/// Takes one step: roll out, score, give advantages, update.
fn rl_step(
    run: &mut Run<'_, RlTable>,
    prompts: &[Prompt],
    stream: &mut TaskStream,
    step: u64,
    learning_rate: f64,
) -> Result<Metrics> {
    let config = run.config;
    let table = &config.train;
    let start = Instant::now();
    let mut metrics = Metrics::of_step(step);

    let mut groups = roll_out(run, prompts, stream, step, &mut metrics)?;
    describe(&groups, config.rollout.max_tokens, &mut metrics);
    run.recorder.count_outcomes(outcomes(&groups));
    let experiences = advantages(&mut groups, table, &mut metrics);
    if config.log.trajectories {
        run.recorder.keep_samples(step, &groups)?;
    }
    check_failures(&groups, step, table)?;

    let (loss, temperature) = (table.loss(), f64::from(config.rollout.temperature));
    let mini_batches = experiences.chunks(table.mini_batch()).map(<[_]>::concat);
    let mut mini_batches: Vec<Vec<Experience>> = mini_batches.filter(|mini_batch| !mini_batch.is_empty()).collect();
    if loss.off_policy.is_some() {
        describe_staleness(&mini_batches, step - 1, &mut metrics);
    }
    if loss.needs_proximal() {
        let start = Instant::now();
        mini_batches = run.updater.set_proximal(step, mini_batches, temperature)?;
        metrics.time("old_log_prob", start);
    }

    let update = Instant::now();
    let mut updates = Vec::new();
    for mini_batch in mini_batches {
        updates.push(run.updater.update(step, mini_batch, loss, temperature, learning_rate)?);
    }
    describe_updates(&updates, &mut metrics);
    metrics.set("learning_rate", learning_rate);
    metrics.time("update", update);
    let seconds = metrics.time("step", start);
    let tokens = metrics.get("tokens/response").unwrap_or(0.0) + metrics.get("tokens/prompt").unwrap_or(0.0);
    metrics.set("perf/tokens_per_second", tokens / seconds);
    Ok(metrics)
}

/// The step's prompts, answered `group_size` times each by the current policy.
fn roll_out(
    run: &Run<'_, RlTable>,
    prompts: &[Prompt],
    stream: &mut TaskStream,
    step: u64,
    metrics: &mut Metrics,
) -> Result<Vec<Group>> {
    let group_size = run.config.rollout.group_size;
    let prompts_per_step = run.config.train.prompts_per_step;
    let numbering = Numbering { seed: run.config.seed, prompts_per_step, group_size };
    let draw = |ordinal| GroupDraw {
        prompt: &prompts[stream.row(ordinal)],
        seeds: (0..group_size).map(|index| numbering.seeds(ordinal, index, 0)).collect(),
    };
    let draws: Vec<GroupDraw<'_>> = numbering.of_step(step).map(draw).collect();
    run.rollout.engine.set_version(step - 1)?;
    let (groups, timing) = run.rollout.draw(&draws, &run.rollout.sampling())?;
    metrics.set("time/generate", timing.generate);
    metrics.set("time/wait_for_reward", timing.wait);
    Ok(groups)
}

/// How far behind the policy with this version the data of a step is.
fn describe_staleness(mini_batches: &[Vec<Experience>], version: u64, metrics: &mut Metrics) {
    let mut staleness = Staleness::default();
    mini_batches.iter().for_each(|mini_batch| staleness.add(mini_batch, version));
    if let Some(mean) = staleness.mean() {
        metrics.set("off_policy/staleness_mean", mean);
        metrics.count("off_policy/staleness_max", staleness.max());
    }
}

/// The means over a step's updates.
fn describe_updates(updates: &[UpdateStats], metrics: &mut Metrics) {
    metrics.count("updates", updates.len() as u64);
    let Some(first) = updates.first() else { return };
    for (name, _) in first.statistics.iter() {
        let values: Vec<f64> = updates.iter().filter_map(|stats| stats.statistics.get(name)).collect();
        metrics.set(name, mean(&values));
    }
    metrics.count("tokens/trained", updates.iter().map(|stats| stats.tokens as u64).sum());
}
