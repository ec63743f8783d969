//! `gavel train`: reinforcement learning, one policy version after another.

use crate::error::{PipelineError, Result};
use crate::memory::predict_train;
use crate::metrics::{FailureWindow, Slices};
use crate::ranks::Ranks;
use crate::rl::broken_judges::BrokenJudges;
use crate::rl::drawn_rows::DrawnRows;
use crate::rl::group_queue::{GroupQueue, GroupShare};
use crate::rl::learning_state::LearningState;
use crate::rl::ledger::{Cause, Ledger};
use crate::rl::measured_rules::MeasuredRules;
use crate::rl::pace::Pace;
use crate::rl::sampler::Sampler;
use crate::rl::step::{RlRun, StepGroups, StepReport};
use crate::rl::task_source::TaskSource;
use crate::rl::teacher::Teacher;
use crate::rl::unlearned::{StepLearning, UnlearnedSteps};
use crate::rows::{Numbering, Prompts, TaskStream, shares};
use crate::run::{Control, Run, RunShape, Setup, Start, Summary, components, find_run, over_budget, try_rewards};
use gavel_config::{Config, RlTable};
use gavel_runs::Metrics;
use gavel_torch::peers::Peers;
use gavel_train::Schedule;
use std::time::Instant;

/// Runs `gavel train`, until its last step or until `control` asks it to end. `peers` are the ranks of the run, all of
/// which call this.
///
/// # Errors
/// A rank is gone or has another configuration, anything that the configuration names cannot be used, too many samples
/// cannot be scored, or training fails.
pub fn train(config: &Config<RlTable>, start: Start, peers: &Peers, control: &Control) -> Result<Summary> {
    let (table, ranks) = (&config.train, &Ranks::of(peers, &config.reward_model)?);
    let found = find_run(config, start, ranks)?;
    let setup = Setup::new(config, &components(found.as_ref())?, ranks)?;
    let prompts = setup.train_prompts(config)?;
    let learning = table.learning(prompts.rows.len());
    let (steps, schedule) = (learning.steps, learning.schedule);
    let learning_rate = schedule.over(steps).map_err(gavel_config::ConfigError::from)?;
    let cache = predict_train(config, &setup, &prompts, ranks.size())?.announce();
    let teacher = Teacher::open(config, setup.scorer.sandbox())?;
    if let Some(teacher) = &teacher {
        teacher.check(&prompts.rows, &setup.text.tokenizer, setup.scorer.sandbox())?;
    }
    if ranks.is_first() {
        let tried = try_rewards(config, &setup, Some(&prompts));
        if let Some(why) = setup.scorer.must_stop() {
            return Err(PipelineError::Stopped(format!("{why}\nhint: start it, or correct its address")));
        }
        tried?;
    } else {
        // This rank asks them first in its first step, and then waits for them as rank 0 does.
        setup.scorer.note_answers();
    }
    let pace = Pace { groups_per_step: table.prompts_per_step, max_staleness: config.schedule.max_staleness };
    let numbering = Numbering {
        seed: config.seed,
        prompts_per_step: table.prompts_per_step,
        group_size: config.rollout.group_size,
        has_greedy: table.algorithm().needs_greedy(),
    };
    let share =
        GroupShare::new(ranks.clone(), &config.ranks, pace.room(0, 0), config.rollout.max_batch / numbering.samples());
    let shape = RunShape {
        learning,
        drawn: pace.room(0, 0).div_ceil(ranks.drawing()).saturating_mul(numbering.samples()),
        grouping: table.grouping(),
        needs_reference: table.needs_reference(),
        cache,
    };
    let (advantage, sampler) = (setup.advantage.clone(), setup.sampler.clone());
    let mut run = Run::open(config, setup, shape, found, ranks)?;
    let Prompts { rows, datasets, sources, .. } = prompts;
    let slices = Slices::new(&sources, &config.agent);
    let tasks = match sampler {
        None => TaskSource::Epochs(TaskStream::new(config.seed, config.data.shuffle, &shares(&datasets))),
        Some(plugin) => {
            let kept = run.recorder.state().sampler.clone();
            TaskSource::Sampler(Sampler::new(plugin, ranks.clone(), config.seed, datasets, kept))
        }
    };
    let rollout = run.rollout.clone();
    let mut groups = GroupQueue::new(rollout, rows, tasks, numbering, &config.schedule, share, control.clone());
    let runtime = run.rollout.scorer.sandbox().handle().clone();
    runtime.block_on(async {
        let score_again = matches!(start, Start::Resume { allow_changed_plugins: true, .. });
        let begun = async {
            // Before anything is drawn.
            groups.meanwhile(run.publish(run.recorder.state().step)).await?;
            groups.meanwhile(run.begin()).await?;
            groups.restore(run.started_groups(&numbering), std::mem::take(&mut run.queued), score_again).await
        };
        let begun: Result<()> = begun.await;
        begun.inspect_err(|error| run.recorder.record_failure(error))?;
        let (failures, broken_judges) = (FailureWindow::new(table), BrokenJudges::default());
        let state = run.recorder.state();
        let learning = LearningState::new(table, &state.learning, &state.advantage);
        let ledger = Ledger::new();
        let measured_rules = MeasuredRules::new(&config.reward);
        let of_step = None;
        let mut rl = RlRun {
            run,
            groups,
            pace,
            numbering,
            failures,
            broken_judges,
            measured_rules,
            drawn_rows: DrawnRows::default(),
            ledger,
            learning,
            advantage,
            teacher,
            of_step,
            slices,
        };
        let taken = rl.take_steps(&learning_rate, control).await;
        if let Err(error) = &taken {
            rl.leave_checkpoint(error).await;
        }
        rl.run.recorder.record_end(&taken);
        let is_stopped = taken?;
        // Until rank 0 has written everything, the others stay.
        ranks.exchange(&())?;
        let longest_waits = rl.ledger.worst().to_vec();
        Ok(Summary { longest_waits, is_stopped, ..rl.run.summary()? })
    })
}

fn report(step: u64, steps: u64, metrics: &Metrics, learning: &StepLearning) {
    let number = |name: &str| metrics.get(name).unwrap_or(f64::NAN);
    let (length, seconds) = (number("response_length/mean"), number("time/step"));
    if let StepLearning::NoUpdate(why) | StepLearning::AllRefused(why) = learning {
        tracing::warn!("step {step}/{steps}: {why}; nothing was learned; length {length:.1}, {seconds:.2} s");
        return;
    }
    let equal = match number("frac_reward_zero_std") >= 1.0 {
        true => ", the rewards of each group are equal",
        false => "",
    };
    let learned = match metrics.get("entropy") {
        Some(entropy) => format!("entropy {entropy:.3}"),
        None => "only the critic learned".to_owned(),
    };
    tracing::info!(
        "step {step}/{steps}: reward {:.3} ± {:.3}, length {length:.1}, {learned}, {seconds:.2} s{equal}",
        number("reward/mean"),
        number("reward/std"),
    );
}

impl RlRun<'_> {
    /// Takes the steps that are left. Returns whether the run was asked to end before its last step.
    async fn take_steps(&mut self, learning_rate: &Schedule, control: &Control) -> Result<bool> {
        let (steps, ranks) = (self.run.learning.steps, self.run.ranks.clone());
        let mut unlearned = UnlearnedSteps::new(self.table(), steps);
        for step in self.run.steps() {
            let StepReport { metrics, learning, failure } = self.step(step, learning_rate.at(step - 1)).await?;
            if ranks.is_first() {
                report(step, steps, &metrics, &learning);
            }
            let failure = failure.or_else(|| unlearned.add(step, &learning).err());
            let over = over_budget(&self.run.config.budget, &self.run.recorder.state().spent).filter(|_| step < steps);
            let is_asked = ranks.exchange(&control.is_stopping())?.contains(&true);
            let is_stopping = is_asked || over.is_some();
            let ended = self.end_step(step, metrics, is_stopping || failure.is_some()).await;
            if let Some(failure) = failure {
                return Err(failure);
            }
            ended?;
            self.of_step = None;
            if let Some(what) = over {
                tracing::warn!("step {step}: {what}: the run ends, with a checkpoint");
            }
            if is_stopping && step < steps {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Leaves a checkpoint of a run that stops by a failure, unless other ranks may be elsewhere or gone. A step that did
    /// not end is taken again.
    async fn leave_checkpoint(&mut self, error: &PipelineError) {
        let recorder = &mut self.run.recorder;
        // What the step that failed has asked may be why.
        let (whole, lacks_validation) = (recorder.whole().step, recorder.whole().lacks_validation);
        // A step that is whole may still end, by a validation or by weights that servers refuse.
        let is_ending = lacks_validation || recorder.is_waiting();
        recorder.keep_calls(if is_ending { whole } else { whole + 1 });
        let logged = recorder.log_waiting();
        if self.run.ranks.are_several() && !matches!(error, PipelineError::StoppedTogether(_)) {
            return self.run.recorder.report_left(logged);
        }
        if let Some(StepGroups { step, groups }) = self.of_step.take()
            && step > self.run.recorder.whole().step
        {
            groups.into_iter().for_each(|drawn| self.groups.put_back(drawn));
        }
        let queue = self.groups.stored_before(self.run.recorder.whole().draws).await;
        let saved = logged.and(queue).and_then(|queue| self.run.save_if_whole(&queue));
        self.run.recorder.report_left(saved);
    }

    /// Hands the weights of `version` to rollout; without partial rollout, once no response is under way.
    async fn publish(&mut self, version: u64) -> Result<()> {
        if !self.run.config.schedule.partial_rollout {
            self.groups.finish_drawing().await?;
        }
        self.groups.meanwhile(self.run.publish(version)).await
    }

    /// Validates, logs and keeps a checkpoint, if it is time.
    async fn end_step(&mut self, step: u64, metrics: Metrics, is_last: bool) -> Result<()> {
        self.groups.meanwhile(self.run.updater.end_step(step)).await?;
        // Servers that draw may refuse the weights.
        self.run.note_step(step, &metrics);
        self.publish(step).await?;
        if self.run.is_validated(step) {
            // Validation uses the weights of one version, and its own decode batch.
            self.groups.finish_drawing().await?;
        }
        let end = self.groups.meanwhile(self.run.end_step(step, metrics)).await?;
        if end.validation_wait > 0.0 {
            self.ledger.charge("validation", end.validation_wait);
        }
        for wait in end.validation_waits {
            self.ledger.wait(wait.seconds, Some(Cause::of_episode(wait)));
            self.ledger.end_wait();
        }
        if end.is_checkpoint_due || is_last {
            let start = Instant::now();
            let queue = self.groups.stored_by_all().await?;
            self.run.save(&queue)?;
            self.ledger.charge("saving", start.elapsed().as_secs_f64());
        }
        Ok(())
    }
}

#[cfg(test)]
mod distillation_tests;
#[cfg(test)]
mod plugin_tests;
#[cfg(test)]
mod sampler_tests;
#[cfg(test)]
mod stopped_tests;
#[cfg(test)]
mod tests;
