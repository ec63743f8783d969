//! Reinforcement learning, one policy version after another: a group of
//! responses to each prompt, their scores, their advantages, an update.

use crate::config::{Config, GrpoTable};
use crate::error::{PipelineError, Result};
use crate::groups::{check_failures, describe, groups, outcomes};
use crate::memory::predict_train;
use crate::metrics::{Metrics, mean};
use crate::prompts::Prompt;
use crate::rollout::{Draw, Rolled, rollout};
use crate::run::{Run, Shape, rows_of_step};
use crate::setup::Setup;
use crate::{Start, Summary};
use gavel_data::seed::{Purpose, derive};
use gavel_policy::Model;
use gavel_train::{Experience, UpdateStats};
use std::time::Instant;

/// Runs `gavel train`.
///
/// # Errors
/// Anything that the configuration names cannot be used, too many samples
/// cannot be scored, or training fails.
pub fn train(config: &Config<GrpoTable>, start: Start) -> Result<Summary> {
    let table = &config.train;
    let schedule = table.schedule().over(table.steps).map_err(crate::config::ConfigError::from)?;
    let setup = Setup::new(config)?;
    let prompts = setup.train_prompts(config)?;
    if let Some(warning) = predict_train(config, &setup, &prompts)?.warning() {
        tracing::warn!("{warning}");
    }
    let shape = Shape {
        optimizer: table.optimizer,
        max_tokens_per_micro_batch: table.max_tokens_per_micro_batch,
        gradient_checkpointing: table.gradient_checkpointing,
        drawn: table.prompts_per_step * config.rollout.group_size,
        validate_every: table.validate_every,
        steps: table.steps,
        grouping: table.grouping(),
    };
    let mut run = Run::open(config, setup, shape, start)?;
    // The penalty is taken to the policy that the run started from.
    let reference = match table.loss.kl {
        Some(_) => Some(run.learner.reference(&config.model, &config.resources, config.seed)?),
        None => None,
    };
    run.begin()?;
    for step in run.state.step + 1..=table.steps {
        let metrics = grpo_step(&mut run, &prompts, reference.as_ref(), step, schedule.at(step - 1))?;
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

fn grpo_step(
    run: &mut Run<'_, GrpoTable>,
    prompts: &[Prompt],
    reference: Option<&Model>,
    step: u64,
    learning_rate: f64,
) -> Result<Metrics> {
    let config = run.config;
    let table = &config.train;
    let start = Instant::now();
    let mut metrics = Metrics::of_step(step);

    let rolled = roll_out(run, prompts, step, &mut metrics)?;
    describe(&rolled, config.rollout.max_tokens, &mut metrics);
    for (plugin, counts) in outcomes(&rolled) {
        let total = run.state.outcomes.entry(plugin).or_default();
        for (kind, count) in counts {
            *total.entry(kind).or_default() += count;
        }
    }
    let groups = groups(&rolled, config.rollout.group_size, table, &mut metrics);
    if config.log.trajectories {
        run.folder.keep_samples(step, &rolled, config.rollout.group_size, &groups.advantages)?;
    }
    check_failures(&rolled, step, table)?;

    let update = Instant::now();
    let mut updates = Vec::new();
    for mini_batch in groups.experiences.chunks(table.mini_batch()) {
        let mini_batch: Vec<Experience> = mini_batch.iter().flatten().cloned().collect();
        if mini_batch.is_empty() {
            continue;
        }
        let temperature = f64::from(config.rollout.temperature);
        let stats = run
            .trainer
            .update(&run.learner.model, reference, &mini_batch, &table.loss, temperature, learning_rate)
            .map_err(|source| PipelineError::Train { step, source })?;
        updates.push(stats);
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
fn roll_out(run: &mut Run<'_, GrpoTable>, prompts: &[Prompt], step: u64, metrics: &mut Metrics) -> Result<Vec<Rolled>> {
    let config = run.config;
    let group_size = config.rollout.group_size;
    let rows = rows_of_step(config.seed, step, config.train.prompts_per_step, prompts.len());
    let draws: Vec<Draw<'_>> = rows
        .iter()
        .flat_map(|row| (0..group_size).map(move |index| (*row, index)))
        .enumerate()
        .map(|(at, (row, index))| Draw {
            prompt: &prompts[row],
            index: index as u32,
            seed: derive(config.seed, step, at as u64, Purpose::Rollout),
            plugin_seed: derive(config.seed, step, at as u64, Purpose::Plugin),
        })
        .collect();
    let sampling = config.rollout.sampling(run.learner.text.tokenizer.stop_ids().to_vec());
    run.engine.set_version(step - 1);
    let (learner, scorer, stop) = (&run.learner, &run.setup.scorer, &config.rollout.stop);
    let (rolled, timing) = rollout(learner, &mut run.engine, scorer, &sampling, stop, &draws, group_size)?;
    metrics.set("time/generate", timing.generate);
    metrics.set("time/wait_for_reward", timing.wait);
    Ok(rolled)
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
