//! The metrics of a step, and the record of its samples.

use super::{RlRun, Step, StepReport};
use crate::error::Result;
use crate::metrics::{TakenGroup, allowed_tokens, describe_episodes, describe_step, outcomes};
use crate::ranks::Ranks;
use crate::rl::unlearned::{ConsideredGroups, StepLearning, why_no_advantage, why_unlearned};
use crate::run::{RankWork, Run};
use crate::samples::{DrawnGroup, DropReason};
use gavel_data::Group;
use gavel_runs::Metrics;
use gavel_runs::metrics::mean;
use gavel_train::{Staleness, UpdateStats};
use std::collections::BTreeMap;
use std::time::Instant;

impl RlRun<'_> {
    /// The metrics of a step that is done; records its samples.
    pub(super) fn describe(&mut self, step: &Step, start: Instant) -> Result<StepReport> {
        let &Step {
            number,
            learning_rate,
            ref taken,
            ref dropped,
            ref updates,
            ref critic_updates,
            ref explained,
            has_advantage,
            lost_advantage,
            ref staleness,
            ref seconds,
            ref measured_kl,
            ..
        } = step;
        let (config, table) = (self.run.config, &self.run.config.train);
        let mut metrics = Metrics::of_step(number);
        metrics.set("time/generate", seconds.generate);
        metrics.set("time/wait_for_reward", seconds.wait);
        let groups: Vec<&Group> = taken.iter().map(|drawn| &drawn.group).collect();
        describe_step(&groups, config.rollout.max_tokens, &mut metrics);
        let vocabulary = self.run.rollout.engine.text().tokenizer.vocab_size();
        if let Some(mean) = allowed_tokens(&groups, vocabulary) {
            metrics.set("rollout/allowed_tokens", mean);
        }
        if self.run.rollout.episode_kinds.have_turns() {
            describe_episodes("", groups.iter().copied(), &mut metrics);
        }
        let is_dead: Vec<bool> = {
            let rule = self.credit_rule();
            let is_dead = |group: &&Group| DropReason::of(group, table, &rule) == Some(DropReason::EqualRewards);
            groups.iter().map(is_dead).collect()
        };
        let dead = is_dead.iter().filter(|is_dead| **is_dead).count();
        metrics.set("frac_reward_zero_std", dead as f64 / groups.len().max(1) as f64);
        let considered = || taken.iter().chain(dropped);
        let by_refusal = ConsideredGroups::of(considered());
        let learning = match (updates.is_empty() && critic_updates.is_empty(), has_advantage) {
            (true, _) => why_unlearned(&by_refusal, config, &self.credit_rule()),
            (false, false) if lost_advantage => StepLearning::NoAdvantage(
                "the tokens with an advantage are older than train.off_policy.max_token_staleness allows".to_owned(),
            ),
            (false, false) => StepLearning::NoAdvantage(why_no_advantage(&by_refusal, config)),
            (false, true) => StepLearning::Learned,
        };
        metrics.count("groups/dropped", considered().filter(|drawn| drawn.dropped.is_some()).count() as u64);
        if table.filter_groups.is_some() {
            metrics.count("groups/tried", considered().count() as u64);
        }
        describe_updates(updates, &mut metrics);
        describe_critic(critic_updates, explained, &mut metrics);
        let kl_in_reward = (!measured_kl.is_empty()).then(|| mean(measured_kl));
        if let (Some(kl), Some(penalty)) = (kl_in_reward, self.learning.kl_in_reward) {
            metrics.set("kl_reward", kl);
            metrics.set("kl_reward/coefficient", penalty.coefficient);
        }
        if let Some(penalty) = self.learning.loss(table.loss()).kl.filter(|kl| kl.target.is_some()) {
            metrics.set("kl/coefficient", penalty.coefficient);
        }
        self.learning.end_step(updates, kl_in_reward, groups.iter().map(|group| group.members.len()).sum());
        self.run.recorder.note_learning(self.learning.kept(), &self.learning.advantage);
        metrics.set("learning_rate", learning_rate);
        if self.advantage.is_some() {
            metrics.set("time/advantage", seconds.advantage);
        }
        metrics.set("time/update", seconds.update);
        if seconds.update_critic > 0.0 {
            metrics.set("time/update_critic", seconds.update_critic);
        }
        if seconds.old_log_prob > 0.0 {
            metrics.set("time/old_log_prob", seconds.old_log_prob);
        }
        let of_step: Staleness = staleness.iter().copied().sum();
        if let Some(mean) = of_step.mean().filter(|_| table.correction().is_some()) {
            metrics.set("off_policy/staleness_mean", mean);
            metrics.count("off_policy/staleness_max", of_step.max());
            if table.correction().is_some_and(|correction| correction.max_token_staleness.is_some()) {
                metrics.set("off_policy/masked_by_age", of_step.masked());
            }
        }
        let staleness = staleness.iter().map(|staleness| table.correction().map(|_| *staleness));
        let of_groups = groups.iter().zip(is_dead).zip(staleness);
        let taken_groups = of_groups.map(|((group, is_dead), staleness)| TakenGroup { group, is_dead, staleness });
        self.slices.describe(&taken_groups.collect::<Vec<_>>(), &mut metrics);
        let warnings = self.broken_judges.add(considered().map(|drawn| &drawn.group), table);
        let falling = self.measured_rules.add(&metrics);
        warnings.iter().chain(&falling).for_each(|warning| tracing::warn!("{warning}"));
        let recorder = &mut self.run.recorder;
        recorder.count_outcomes(outcomes(considered().map(|drawn| &drawn.group)));
        let mut reasons = BTreeMap::<String, u64>::new();
        for drawn in considered() {
            if let Some(DropReason::Refused(reason)) = recorder.count_group(drawn.dropped.as_ref()) {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        recorder.note_draws(self.groups.started());
        if let Some(sampler) = self.groups.sampler() {
            recorder.note_sampler(sampler.state());
            let rows: Vec<usize> = considered().map(|drawn| drawn.row).collect();
            let found = self.drawn_rows.add(&rows, sampler.name(), sampler.rows());
            metrics.count("sampler/distinct_rows", found.distinct as u64);
            metrics.set("sampler/most_drawn", found.most_drawn);
            found.warning.iter().for_each(|warning| tracing::warn!("{warning}"));
            metrics.count("groups/refused", by_refusal.refused.len() as u64);
            for (reason, count) in reasons {
                metrics.count(format!("groups/refused/{reason}"), count);
            }
        }
        if let Some(seconds) = self.groups.take_sampler_seconds() {
            metrics.set("time/sampler", seconds);
        }
        if config.log.trajectories {
            let all: Vec<&DrawnGroup> = considered().collect();
            recorder.keep_samples(number, &all, &self.numbering, self.run.rollout.engine.text())?;
        }
        let Run { ranks, rollout, recorder, reward_models, .. } = &mut self.run;
        let work = RankWork::take(&groups, reward_models, &rollout.scorer)?.of_all(ranks)?;
        work.describe(recorder, &mut metrics);
        if ranks.are_several() {
            describe_ranks(ranks, seconds.generate, &mut metrics)?;
        }
        self.run.describe_servers(&mut metrics);
        let waits = self.ledger.end_step(&mut metrics);
        self.run.recorder.add_waits(&waits);
        let seconds = metrics.time("step", start);
        let tokens = metrics.get("tokens/response").unwrap_or(0.0) + metrics.get("tokens/prompt").unwrap_or(0.0);
        metrics.set("perf/tokens_per_second", tokens / seconds);
        Ok(StepReport { metrics, learning, failure: self.failures.check(number).err() })
    }
}

/// How unequal the ranks were, and what it costs that they are several.
fn describe_ranks(ranks: &Ranks, generate: f64, metrics: &mut Metrics) -> Result<()> {
    let cost = ranks.peers().take_cost();
    let sent = cost.sum_bytes + cost.reduce_bytes + cost.broadcast_bytes + cost.gather_bytes;
    let own = [generate, cost.waited.as_secs_f64(), cost.overlapped.as_secs_f64(), sent as f64];
    let all = ranks.exchange(&own)?;
    let of_ranks = |at: usize| all.iter().map(|numbers| numbers[at]).collect::<Vec<f64>>();
    let [generate, waited, overlapped, sent] = [0, 1, 2, 3].map(of_ranks);
    // A rank that draws nothing would always be the quickest.
    let generate: Vec<f64> =
        generate.into_iter().enumerate().filter(|(rank, _)| ranks.draws(*rank)).map(|(_, seconds)| seconds).collect();
    let most = |numbers: &[f64]| numbers.iter().copied().fold(0.0, f64::max);
    metrics.count("ranks/size", ranks.size() as u64);
    metrics.set("ranks/generate_max", most(&generate));
    metrics.set("ranks/generate_mean", mean(&generate));
    metrics.set("ranks/generate_min", generate.iter().copied().fold(f64::INFINITY, f64::min));
    metrics.count("ranks/bytes_sent", sent.iter().map(|bytes| *bytes as u64).sum());
    metrics.set("ranks/waited_max", most(&waited));
    metrics.set("ranks/waited_mean", mean(&waited));
    metrics.set("ranks/overlapped_mean", mean(&overlapped));
    Ok(())
}

/// The means over a step's updates; for a maximum over tokens, the maximum.
fn describe_updates(updates: &[UpdateStats], metrics: &mut Metrics) {
    metrics.count("updates", updates.len() as u64);
    if !updates.is_empty() {
        describe_statistics("", updates, metrics);
        metrics.count("tokens/trained", updates.iter().map(|stats| stats.tokens as u64).sum());
    }
}

/// The same of the critic.
fn describe_critic(updates: &[UpdateStats], explained: &[f64], metrics: &mut Metrics) {
    describe_statistics("critic/", updates, metrics);
    if !explained.is_empty() {
        metrics.set("critic/explained_variance", mean(explained));
    }
}

fn describe_statistics(prefix: &str, updates: &[UpdateStats], metrics: &mut Metrics) {
    let Some(first) = updates.first() else { return };
    for (name, _) in first.statistics.iter() {
        let values: Vec<f64> = updates.iter().filter_map(|stats| stats.statistics.get(name)).collect();
        let number = match name.ends_with("_max") {
            true => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
            false => mean(&values),
        };
        metrics.set(format!("{prefix}{name}"), number);
    }
}
