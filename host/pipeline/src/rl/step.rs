//! One step of reinforcement learning: groups are started, taken as they become whole, and trained on.

mod describe;

use crate::error::{PipelineError, Result};
use crate::metrics::{FailureWindow, Slices};
use crate::rl::advantages::AdvantageRule;
use crate::rl::broken_judges::BrokenJudges;
use crate::rl::credit::CreditRule;
use crate::rl::drawn_rows::DrawnRows;
use crate::rl::group_queue::GroupQueue;
use crate::rl::learning_state::LearningState;
use crate::rl::ledger::{Cause, Ledger};
use crate::rl::measured_rules::MeasuredRules;
use crate::rl::pace::Pace;
use crate::rl::plugin_advantages;
use crate::rl::teacher::Teacher;
use crate::rl::turns::check_turns;
use crate::rl::unlearned::StepLearning;
use crate::rows::Numbering;
use crate::run::token_measures::{self, Measures, Measuring, mean_kl, rows};
use crate::run::{Run, note_drawing};
use crate::samples::{DrawnGroup, DropReason};
use gavel_config::{RlTable, ScheduleTable};
use gavel_data::Group;
use gavel_data::seed::{Purpose, derive};
use gavel_plugin::Plugin;
use gavel_plugin::advantage::Batch;
use gavel_runs::Metrics;
use gavel_train::{Experience, Staleness, UpdateStats, explained_variance, passes};
use std::sync::Arc;
use std::time::Instant;

/// A run of `gavel train` between two steps.
pub(crate) struct RlRun<'a> {
    pub(crate) run: Run<'a, RlTable>,
    pub(crate) groups: GroupQueue,
    pub(crate) pace: Pace,
    pub(crate) numbering: Numbering,
    pub(crate) failures: FailureWindow,
    pub(crate) broken_judges: BrokenJudges,
    pub(crate) measured_rules: MeasuredRules,
    pub(crate) drawn_rows: DrawnRows,
    pub(crate) ledger: Ledger,
    pub(crate) learning: LearningState,
    /// The plugin that turns rewards into advantages, if no built-in algorithm does.
    pub(crate) advantage: Option<Arc<Plugin>>,
    /// The reference, if a server has it.
    pub(crate) teacher: Option<Teacher>,
    /// The groups of the step under way, once it has taken all of them.
    pub(crate) of_step: Option<StepGroups>,
    pub(crate) slices: Slices,
}

/// The groups that a step took, trained on or dropped.
pub(crate) struct StepGroups {
    pub(crate) step: u64,
    pub(crate) groups: Vec<DrawnGroup>,
}

/// The result of a step.
pub(crate) struct StepReport {
    pub(crate) metrics: Metrics,
    pub(crate) learning: StepLearning,
    /// Why the run stops after it.
    pub(crate) failure: Option<PipelineError>,
}

/// A step under way.
#[derive(Default)]
struct Step {
    number: u64,
    learning_rate: f64,
    /// The groups that it took; it has trained on the first `trained` of them.
    taken: Vec<DrawnGroup>,
    trained: usize,
    /// Groups that `filter_groups` or a sampler dropped.
    dropped: Vec<DrawnGroup>,
    /// Groups that are whole, before it is decided whether the step trains on them.
    ended: Vec<DrawnGroup>,
    updates: Vec<UpdateStats>,
    /// The updates of the critic.
    critic_updates: Vec<UpdateStats>,
    /// What of the returns the critic explained before its updates, for each set of groups that was trained on.
    explained: Vec<f64>,
    /// Whether any token had an advantage other than 0.
    has_advantage: bool,
    /// Whether groups had one only on tokens that `max_token_staleness` masked.
    lost_advantage: bool,
    /// The mean distance from the reference, for each update before which it was measured.
    measured_kl: Vec<f64>,
    /// Of each group that it trained on.
    staleness: Vec<Staleness>,
    seconds: Seconds,
}

/// Where the time of a step went.
#[derive(Default)]
struct Seconds {
    /// With responses under way.
    generate: f64,
    /// Without responses under way, until something was scored.
    wait: f64,
    /// In the forward pass under the policy before the step's updates.
    old_log_prob: f64,
    /// In calls of the plugin that turns rewards into advantages.
    advantage: f64,
    update: f64,
    update_critic: f64,
}

impl RlRun<'_> {
    pub(super) fn table(&self) -> &RlTable {
        &self.run.config.train
    }

    fn credit_rule(&self) -> CreditRule<'_> {
        CreditRule::new(self.run.config, self.run.rollout.engine.text())
    }

    fn schedule(&self) -> &ScheduleTable {
        &self.run.config.schedule
    }

    /// Takes a step. If it fails, the groups that it took are in the queue again, or in `of_step`.
    pub(crate) async fn step(&mut self, number: u64, learning_rate: f64) -> Result<StepReport> {
        let start = Instant::now();
        let mut step = Step { number, learning_rate, ..Step::default() };
        if let Err(error) = self.take(&mut step).await {
            let groups = step.taken.into_iter().chain(step.dropped).chain(step.ended);
            groups.for_each(|drawn| self.groups.put_back(drawn));
            return Err(error);
        }
        let report = self.describe(&step, start);
        let groups = step.taken.into_iter().chain(step.dropped).collect();
        self.of_step = Some(StepGroups { step: number, groups });
        report
    }

    async fn take(&mut self, step: &mut Step) -> Result<()> {
        self.start(step, self.room(step)).await?;
        self.collect(step).await
    }

    /// How many groups may be started now: as many as the pace allows, and the rest of the run can train on.
    fn room(&self, step: &Step) -> usize {
        let steps_left = (self.run.learning.steps + 1).saturating_sub(step.number) as usize;
        let places = steps_left.saturating_mul(self.pace.groups_per_step);
        let (used, under_way) = (self.used_places(step), self.groups.len());
        self.pace.room(used, under_way).min(places.saturating_sub(used + under_way))
    }

    /// How many of the step's places are used up. A dropped group uses none if `filter_groups` has another one drawn.
    fn used_places(&self, step: &Step) -> usize {
        let lost = if self.table().filter_groups.is_none() { step.dropped.len() } else { 0 };
        step.taken.len() + lost
    }

    /// How many more groups the step can take.
    fn free_places(&self, step: &Step) -> usize {
        self.pace.groups_per_step - self.used_places(step)
    }

    /// How many groups may be started in place of those that this step dropped.
    fn refill_room(&self, step: &Step) -> usize {
        let bound = self.table().filter_groups.map_or(0, |filter| filter.max_num_gen_batches - 1);
        let tries = (bound * self.pace.groups_per_step).saturating_sub(step.dropped.len());
        self.room(step).min(tries)
    }

    async fn start(&mut self, step: &Step, count: usize) -> Result<()> {
        if count > 0 {
            self.ledger.end_wait();
        }
        self.groups.start(count, step.number - 1).await
    }

    /// Takes groups and trains on them until the step has all of its groups, or there are no more.
    async fn collect(&mut self, step: &mut Step) -> Result<()> {
        let mini_batch = self.table().mini_batch();
        loop {
            self.take_whole(step).await?;
            let is_full = self.free_places(step) == 0;
            while is_full && !self.may_change_weights() {
                self.wait(step, None).await?;
            }
            if self.schedule().stream {
                let ready = step.taken.len() - step.trained;
                if ready >= mini_batch && (is_full || self.may_update()) {
                    self.update(step, ready - ready % mini_batch).await?;
                }
            }
            if is_full {
                break;
            }
            if self.groups.len() == 0 {
                match self.refill_room(step) {
                    0 => break,
                    room => self.start(step, room).await?,
                }
            }
            // Others may have become whole during an update.
            if self.groups.is_waiting() {
                self.wait(step, Some(self.wanted(step))).await?;
            }
        }
        self.update(step, step.taken.len() - step.trained).await
    }

    /// Whether weights may be changed while responses are under way: without partial rollout, one policy draws a whole
    /// response.
    fn may_update_while_drawing(&self) -> bool {
        self.run.draws_elsewhere() || self.schedule().partial_rollout
    }

    /// Whether the weights of this rank may be changed now.
    fn may_change_weights(&self) -> bool {
        self.may_update_while_drawing() || !self.groups.is_drawing()
    }

    /// Whether an update may begin now, on all ranks.
    fn may_update(&self) -> bool {
        self.may_update_while_drawing() || !self.groups.is_drawing_anywhere()
    }

    /// How many more whole groups the step can use. All ranks want the same.
    fn wanted(&self, step: &Step) -> usize {
        let missing = self.groups.missing();
        let free = self.free_places(step);
        let useful = match self.schedule().stream {
            _ if self.schedule().is_lockstep() => missing,
            true => self.table().mini_batch().saturating_sub(step.taken.len() - step.trained).min(free),
            false => free,
        };
        useful.clamp(1, missing.max(1))
    }

    /// Takes the groups that are whole, as far as the others can still be trained on in time.
    async fn take_whole(&mut self, step: &mut Step) -> Result<()> {
        self.check_endpoints(step).await?;
        let in_order = self.schedule().is_lockstep();
        let has_sampler = self.groups.sampler().is_some();
        while self.free_places(step) > 0 {
            // A sampler is asked about all of them at once.
            let most = if has_sampler { self.free_places(step) } else { 1 };
            while step.ended.len() < most
                && let Some(drawn) = self.take_next(step)
            {
                self.failures.push(&drawn.group);
                step.ended.push(drawn);
            }
            // In the order of draws, it depends on no time which groups it is asked about together.
            let is_early = in_order && step.ended.len() < most && self.groups.len() > 0;
            if step.ended.is_empty() || (has_sampler && is_early) {
                break;
            }
            self.admit(step).await?;
        }
        Ok(())
    }

    /// The group that the step takes next, if it is whole.
    fn take_next(&mut self, step: &Step) -> Option<DrawnGroup> {
        let (taken, under_way) = (self.used_places(step) + step.ended.len(), self.groups.versions());
        let may_take = |version| self.pace.may_take(step.number, taken, version, under_way);
        let next = match self.schedule().is_lockstep() {
            true => self.groups.oldest_whole(),
            false => self.groups.first_whole(may_take),
        };
        self.groups.take(next?)
    }

    /// Takes or drops each group that ended, and starts other groups in place of the dropped ones.
    async fn admit(&mut self, step: &mut Step) -> Result<()> {
        let is_filtered = self.table().filter_groups.is_some();
        for drawn in &mut step.ended {
            let drop_reason = DropReason::of(&drawn.group, self.table(), &self.credit_rule());
            let kept = |reason: &DropReason| is_filtered || *reason == DropReason::TooFewScored;
            drawn.dropped = drop_reason.filter(kept);
        }
        let dropped = step.dropped.len();
        let mut refusals = self.groups.admit(step.number, &step.ended, &self.run.config.train).await?;
        for mut drawn in std::mem::take(&mut step.ended) {
            let refused = refusals.remove(&drawn.draw).filter(|_| drawn.dropped.is_none());
            if refused.is_none() && !(is_filtered && drawn.dropped.is_some()) {
                step.taken.push(drawn);
                continue;
            }
            drawn.dropped = refused.map(DropReason::Refused).or(drawn.dropped);
            step.dropped.push(drawn);
        }
        if step.dropped.len() == dropped {
            return Ok(());
        }
        self.failures.check(step.number)?;
        match self.schedule().is_lockstep() {
            true => Ok(()),
            false => self.start(step, self.refill_room(step)).await,
        }
    }

    /// Waits for the next event: of all ranks until `wanted` groups are whole, or of this one.
    async fn wait(&mut self, step: &mut Step, wanted: Option<usize>) -> Result<()> {
        let (start, is_drawing) = (Instant::now(), self.groups.is_drawing());
        match wanted {
            Some(wanted) => self.groups.wait(wanted).await?,
            None => self.groups.wait_here().await?,
        }
        self.check_endpoints(step).await?;
        let seconds = start.elapsed().as_secs_f64();
        match is_drawing {
            true => {
                step.seconds.generate += seconds;
                let waits = self.groups.policy_waits().take();
                if self.run.draws_elsewhere() {
                    // This is a wait of the device that trains.
                    self.ledger.charge("generation", seconds);
                } else {
                    for wait in waits {
                        self.ledger.wait(wait.seconds, Some(Cause::of_episode(wait)));
                        self.ledger.end_wait();
                    }
                }
            }
            false => {
                step.seconds.wait += seconds;
                let cause = self.groups.take_last_scored();
                self.ledger.wait(seconds, cause);
                if self.groups.is_drawing() {
                    // A sample is drawn again.
                    self.ledger.end_wait();
                }
            }
        }
        Ok(())
    }

    /// Stops a run that does not wait any longer for an endpoint that is down.
    async fn check_endpoints(&mut self, step: &Step) -> Result<()> {
        let Some(why) = self.run.must_stop() else { return Ok(()) };
        let hint = "hint: once it answers, continue from the last checkpoint with --resume";
        self.groups.stop(format!("step {}: {why}\n{hint}", step.number)).await
    }

    /// Trains on the next `count` groups, mini-batch by mini-batch.
    async fn update(&mut self, step: &mut Step, count: usize) -> Result<()> {
        self.charge_pause();
        let measures = self.measure(step, count).await?;
        let mini_batches = self.mini_batches(step, count, measures).await?;
        self.learn(step, count, mini_batches).await?;
        self.groups.policy_waits().resume();
        step.trained += count;
        Ok(())
    }

    /// Charges the time since an episode last asked the policy to what it waited for.
    fn charge_pause(&mut self) {
        let seconds = self.groups.policy_waits().pause();
        if seconds > 0.0 && !self.run.draws_elsewhere() {
            let cause = self.groups.take_last_scored();
            self.ledger.wait(seconds, cause);
        }
        self.ledger.end_wait();
    }

    /// Gives the next `count` groups their advantages. Returns their mini-batches, of which each rank has its own rows.
    async fn mini_batches(
        &mut self,
        step: &mut Step,
        count: usize,
        measures: Measures,
    ) -> Result<Vec<Vec<Experience>>> {
        let (table, config, text) = (&self.run.config.train, self.run.config, self.run.rollout.engine.text());
        let next = &mut step.taken[step.trained..step.trained + count];
        let credit = CreditRule::new(config, text);
        next.iter().try_for_each(|drawn| match table.advantage_config().turns {
            Some(_) => check_turns(step.number, &drawn.group),
            None => credit.check(step.number, &drawn.group),
        })?;
        let greedy = next.iter().map(|drawn| drawn.greedy.clone()).collect();
        let mut groups: Vec<&mut Group> = next.iter_mut().map(|drawn| &mut drawn.group).collect();
        let mut rule = AdvantageRule { table, credit: &credit, learning: &mut self.learning, measures, greedy };
        let compared = rule.compare(&groups);
        let estimated = match &self.advantage {
            Some(plugin) if !compared.scored.is_empty() => {
                let start = Instant::now();
                let of_groups = plugin_advantages::groups(&groups, &compared, &credit, &table.grouping());
                let state = rule.learning.advantage.clone();
                // A step may ask several times, each after the groups before.
                let seed = derive(config.seed, step.number, step.trained as u64, Purpose::Plugin);
                let batch = Batch { step: step.number, groups: of_groups, state };
                let asked = plugin_advantages::estimate(plugin, batch, &compared.scored, &self.run.ranks, seed);
                let (estimated, state) = self.groups.meanwhile(asked).await?;
                rule.learning.advantage = state;
                step.seconds.advantage += start.elapsed().as_secs_f64();
                estimated
            }
            _ => rule.estimate(&compared),
        };
        let mut experiences = rule.experiences(&mut groups, &compared, estimated);
        note_drawing(experiences.iter_mut().flatten(), &config.rollout);
        let has_advantage = |experiences: &[Vec<Experience>]| {
            let mut of_tokens = experiences.iter().flatten().flat_map(|experience| &experience.advantages);
            of_tokens.any(|advantage| *advantage != 0.0)
        };
        let version = step.number - 1;
        let mut staleness: Vec<Staleness> = experiences.iter().map(|rows| Staleness::of(rows, version)).collect();
        if let Some(most) = table.correction().and_then(|correction| correction.max_token_staleness) {
            let had_advantage = has_advantage(&experiences);
            experiences.iter_mut().zip(&mut staleness).for_each(|(rows, of_rows)| of_rows.mask(rows, version, most));
            step.lost_advantage |= had_advantage && !has_advantage(&experiences);
        }
        step.has_advantage |=
            has_advantage(&experiences) || (table.distils() && has_learned(experiences.iter().flatten()));
        step.staleness.extend(staleness);
        let of_groups = |groups: &mut [Vec<Experience>]| groups.iter_mut().flat_map(std::mem::take).collect::<Vec<_>>();
        let mini_batches = experiences.chunks_mut(table.mini_batch()).map(of_groups);
        let mini_batches: Vec<Vec<Experience>> = mini_batches.filter(|mini_batch| has_learned(mini_batch)).collect();
        if table.critic.is_some() {
            step.explained.extend(explained_variance(mini_batches.iter().flatten()));
        }
        Ok(mini_batches.into_iter().map(|mini_batch| self.run.ranks.own_rows(mini_batch)).collect())
    }

    /// Updates the critic, if there is one, and then the policy with each mini-batch of the next `count` groups, in
    /// each of `ppo_epochs`.
    async fn learn(&mut self, step: &mut Step, count: usize, mut mini_batches: Vec<Vec<Experience>>) -> Result<()> {
        let (table, temperature) = (&self.run.config.train, f64::from(self.run.config.rollout.temperature));
        let loss = self.learning.loss(table.loss());
        let ends_step = self.free_places(step) == 0 && step.trained + count == step.taken.len();
        if loss.needs_proximal() {
            let start = Instant::now();
            let proximal = self.run.updater.set_proximal(step.number, mini_batches, temperature, ends_step);
            mini_batches = self.groups.meanwhile(proximal).await?;
            step.seconds.old_log_prob += start.elapsed().as_secs_f64();
        }
        if let Some(distillation) = loss.distillation {
            let start = Instant::now();
            let taught = self.run.updater.set_taught(step.number, mini_batches, distillation.top_k, temperature);
            mini_batches = self.groups.meanwhile(taught).await?;
            step.seconds.old_log_prob += start.elapsed().as_secs_f64();
        }
        let mini_batches: Vec<Arc<Vec<Experience>>> = mini_batches.into_iter().map(Arc::new).collect();
        if table.critic.is_some() {
            let start = Instant::now();
            for mini_batch in passes(&mini_batches, table.ppo_epochs) {
                let update = self.run.updater.update_critic(step.number, mini_batch.clone());
                step.critic_updates.push(self.groups.meanwhile(update).await?);
            }
            step.seconds.update_critic += start.elapsed().as_secs_f64();
        }
        let start = Instant::now();
        let steps_alone = table.critic.as_ref().map_or(0, |critic| critic.steps_alone);
        let epochs = if step.number > steps_alone { table.ppo_epochs } else { 0 };
        let mut passes = passes(&mini_batches, epochs).peekable();
        while let Some(mini_batch) = passes.next() {
            let is_last = ends_step && passes.peek().is_none();
            let (updater, rate) = (&self.run.updater, step.learning_rate);
            let update = updater.update(step.number, mini_batch.clone(), loss, temperature, rate, is_last);
            step.updates.push(self.groups.meanwhile(update).await?);
        }
        step.seconds.update += start.elapsed().as_secs_f64();
        Ok(())
    }

    /// What the algorithm needs to know of the tokens of the next `count` groups.
    async fn measure(&mut self, step: &mut Step, count: usize) -> Result<Measures> {
        let table = &self.run.config.train;
        let Some(measuring) = Measuring::of(table) else { return Ok(Measures::new()) };
        let start = Instant::now();
        let next: Vec<&Group> =
            step.taken[step.trained..step.trained + count].iter().map(|drawn| &drawn.group).collect();
        let mut rows = rows(&next, table);
        note_drawing(rows.iter_mut().map(|(_, row)| row), &self.run.config.rollout);
        let temperature = f64::from(self.run.config.rollout.temperature);
        let ranks = self.run.ranks.clone();
        let experiences = ranks.own_rows(rows.iter().map(|(_, row)| row.clone()).collect());
        let asked = match &self.teacher {
            Some(teacher) => {
                let asked = async { ranks.or_stop_together(teacher.log_probs(&experiences).await).await };
                Some(self.groups.meanwhile(asked).await?)
            }
            None => None,
        };
        let measured = self.run.updater.measure(step.number, experiences, asked, measuring, temperature);
        let mut measured = self.groups.meanwhile(measured).await?;
        if ranks.are_several() {
            let own = token_measures::written(&measured);
            let all = self.groups.meanwhile(async move { ranks.exchange_bytes_beside(own).await }).await?;
            measured = token_measures::read(&all)?;
        }
        let measures: Measures = rows.iter().map(|(key, _)| *key).zip(measured).collect();
        step.measured_kl.extend(mean_kl(&rows, &measures));
        step.seconds.old_log_prob += start.elapsed().as_secs_f64();
        Ok(measures)
    }
}

/// Whether there is a token to learn from.
fn has_learned<'a>(rows: impl IntoIterator<Item = &'a Experience>) -> bool {
    rows.into_iter().any(|row| row.loss_mask.contains(&true))
}
