//! `[train]`: how a policy learns, for `gavel train` and for `gavel sft`.

use crate::advantage::{AdvantageSettings, AdvantageTable};
use crate::algorithm::ReferenceTable;
use crate::checks::at_least_one;
use crate::critic::CriticTable;
use crate::error::ConfigError;
use crate::learning::{LearningConfig, train_table};
use crate::off_policy::OffPolicyTable;
use crate::tables::RolloutTable;
use crate::train_table::TrainTable;
use gavel_data::{MOST_REWARD, OutcomeKind, named_keys, named_keys_schema};
use gavel_scoring::recording::{Grouping, OfSample, Substitute};
use gavel_train::{AdvantageConfig, Estimator, KlConfig, KlEstimator, LossConfig, OffPolicyConfig, OldLogProbs};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What becomes of a sample that was not scored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnOutcome {
    /// It is left out of its group.
    Drop,
    /// It counts with this reward: an explicit choice, never a default.
    Score(f64),
    /// It counts with the lowest possible reward if its response exhausted a plugin, or made it abstain; otherwise it is
    /// left out of its group.
    #[serde(rename = "lowest-if-caused")]
    LowestIfCaused,
}

/// `[train.filter_groups]`: groups whose rewards are all equal are dropped, and others drawn in their place ("dynamic
/// sampling": Yu et al., "DAPO", 2025).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FilterGroups {
    /// The most groups that a step may try, in multiples of `prompts_per_step`; 10 by default. The step then trains on
    /// the groups that it has.
    pub max_num_gen_batches: usize,
}

impl Default for FilterGroups {
    fn default() -> Self {
        Self { max_num_gen_batches: 10 }
    }
}

/// Which turns of a whole conversation are learned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Turns {
    /// The messages of the assistant after the user's last message.
    #[default]
    Last,
    /// Every message of the assistant.
    All,
}

train_table! {
    /// `[train]` of `gavel train`
    pub struct RlTable by prompts_per_step {
        /// How rewards become advantages; `grpo` by default, and absent with a plugin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("default" = "grpo"))]
        pub algorithm: Option<Estimator>,
        /// Settings of the algorithm, or a plugin in its place.
        #[serde(default, skip_serializing_if = "AdvantageTable::is_default")]
        pub advantage: AdvantageTable,
        /// The critic of `gae`; absent for other algorithms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub critic: Option<CriticTable>,
        /// A penalty on the distance from the run's first policy, taken from the reward of each token; none by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub kl_reward: Option<KlConfig>,
        /// The reference, from which penalties measure the distance; the run's first policy by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reference: Option<ReferenceTable>,
        /// Whether responses that reached the limit of tokens are not learned from; their rewards still count in their
        /// group; no by default.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        #[schemars(extend("default" = false))]
        pub mask_truncated: bool,
        /// Prompts in each step's rollout.
        pub prompts_per_step: usize,
        /// Prompts in each optimiser step; must divide `prompts_per_step`, which is the default.
        pub mini_batch_prompts: Option<usize>,
        /// How often a step learns from its mini-batches, one pass over all of them after another; 1 by default.
        #[serde(default = "one")]
        pub ppo_epochs: usize,
        /// The loss; PPO's clipped surrogate by default.
        #[serde(default)]
        pub loss: LossConfig,
        /// Which distributions the data was drawn from, and how training corrects for them. The default is no correction
        /// in an on-policy run, and weights of tokens in any other.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub off_policy: Option<OffPolicyTable>,
        /// What becomes of samples without a reward, by outcome; by default `lowest-if-caused` for `out-of-budget`, and `drop` for
        /// the others.
        #[serde(default, deserialize_with = "named_keys")]
        #[schemars(schema_with = "named_keys_schema::<OutcomeKind, OnOutcome>")]
        pub on_outcome: BTreeMap<OutcomeKind, OnOutcome>,
        /// With this table, groups that teach nothing are dropped and others drawn in their place; absent by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub filter_groups: Option<FilterGroups>,
        /// A group with fewer scored samples is dropped; 2 by default, and 1 for algorithms that compare no samples.
        pub min_scored: Option<usize>,
        /// The run stops when more than this share of the samples of the last `prompts_per_step` groups has a fault, is
        /// out of budget or unavailable; 0.5 by default.
        #[serde(default = "half")]
        pub max_failure_rate: f64,
        /// The run stops after n steps in a row without an update; 3 by default.
        #[serde(default = "three")]
        pub max_steps_without_update: u64,
        /// The run stops when a server that has answered before does not answer for this long; 30 min by default.
        #[serde(default = "half_an_hour", with = "humantime_serde")]
        #[schemars(with = "gavel_data::DurationForm")]
        pub max_pause: Duration,
    }
}

train_table! {
    /// `[train]` of `gavel sft`
    pub struct SftTable by batch_size {
        /// Rows in each step.
        pub batch_size: usize,
        /// The turns of a conversation that are learned; the last one by default.
        #[serde(default)]
        pub turns: Turns,
        /// Training ends once `val/accuracy` is above this; never by default.
        pub stop_accuracy: Option<f64>,
    }
}

pub(super) fn micro_batch() -> usize {
    16_384
}

pub(super) fn ten() -> u64 {
    10
}

fn one() -> usize {
    1
}

fn three() -> u64 {
    3
}

fn half_an_hour() -> Duration {
    Duration::from_secs(30 * 60)
}

fn half() -> f64 {
    0.5
}

impl RlTable {
    /// The built-in algorithm; the default one with a plugin, which needs no more than it.
    pub fn algorithm(&self) -> Estimator {
        self.algorithm.unwrap_or_default()
    }

    /// The advantage's settings.
    pub fn advantage_config(&self) -> AdvantageConfig {
        let AdvantageSettings { scale, gamma, lam, threshold, turns, turn_weight } = self.advantage.settings();
        AdvantageConfig { estimator: self.algorithm(), scale, gamma, lam, threshold, turns, turn_weight }
    }

    /// Whether a lone sample has no advantage. A plugin may give it one.
    pub fn compares(&self) -> bool {
        self.advantage.plugin().is_none() && self.advantage_config().compares()
    }

    /// The smallest number of scored samples with which a group is learned from.
    pub fn min_scored(&self) -> usize {
        self.min_scored.unwrap_or(self.least_samples())
    }

    /// The smallest number of samples that can teach anything.
    fn least_samples(&self) -> usize {
        if self.compares() { 2 } else { 1 }
    }

    /// Whether a penalty measures the distance from a reference.
    fn measures_distance(&self) -> bool {
        self.loss.kl.is_some() || self.kl_reward.is_some() || self.loss.distillation.is_some()
    }

    /// The penalties, if none of them counts: their weight is 0, and stays 0.
    pub fn idle_penalty(&self) -> Option<&'static str> {
        if self.loss.distillation.is_some() {
            return None;
        }
        let is_idle = |kl: &KlConfig| kl.coefficient == 0.0;
        let idle = |kl: Option<&KlConfig>| kl.is_none_or(is_idle);
        match (&self.loss.kl, &self.kl_reward) {
            (in_loss, in_reward) if !idle(in_loss.as_ref()) || !idle(in_reward.as_ref()) => None,
            (Some(_), Some(_)) => Some("train.loss.kl and train.kl_reward"),
            (Some(_), None) => Some("train.loss.kl"),
            (None, Some(_)) => Some("train.kl_reward"),
            (None, None) => None,
        }
    }

    /// Whether a reference is loaded.
    pub fn needs_reference(&self) -> bool {
        self.measures_distance() && self.reference.as_ref().is_none_or(|reference| reference.chat.is_none())
    }

    /// Whether a token without an advantage is learned from, because of a teacher.
    pub fn distils(&self) -> bool {
        self.loss.distillation.is_some_and(|distillation| distillation.coefficient > 0.0)
    }

    /// Which of the references the rows of a data source are compared with ([`ReferenceTable::number_of`]).
    pub fn reference_of(&self, source: Option<&str>) -> usize {
        self.reference.as_ref().map_or(0, |reference| reference.number_of(source))
    }

    /// Refuses keys that do not fit distillation.
    fn validate_distillation(&self) -> Result<(), ConfigError> {
        if !self.reference.as_ref().is_some_and(ReferenceTable::is_other) {
            return Err(ConfigError::invalid(
                "train.algorithm",
                "train.algorithm = \"distillation\" needs a teacher\nhint: set train.reference.path to its folder, train.reference.by_source to several, or train.reference.chat to a server",
            ));
        }
        if self.kl_reward.is_none() && self.loss.distillation.is_some_and(|table| table.coefficient == 0.0) {
            return Err(ConfigError::of(
                "train.loss.distillation.coefficient",
                "with 0, nothing is learned: train.algorithm = \"distillation\" learns from this distance alone\nhint: set it above 0, or another algorithm",
            ));
        }
        match self.filter_groups {
            Some(_) => Err(ConfigError::invalid(
                "train.filter_groups",
                "train.filter_groups drops groups by their rewards, and distillation does not learn from rewards\nhint: leave it out",
            )),
            None => Ok(()),
        }
    }

    /// What becomes of a sample with this outcome. By default it is dropped, but a response that exhausted a plugin
    /// counts with the lowest reward. If it were dropped, it would escape a low reward, and the policy would learn to
    /// write such responses (`benches/broken_judge.py`).
    pub fn on_outcome(&self, kind: OutcomeKind) -> OnOutcome {
        let default = if kind == OutcomeKind::OutOfBudget { OnOutcome::LowestIfCaused } else { OnOutcome::Drop };
        self.on_outcome.get(&kind).copied().unwrap_or(default)
    }

    /// The settings that decide, together with the rewards, which samples are learned from.
    pub fn grouping(&self) -> Grouping {
        let scores = OutcomeKind::ALL.into_iter().filter_map(|kind| match self.on_outcome(kind) {
            OnOutcome::Score(score) => Some((kind, Substitute::Score(score))),
            OnOutcome::LowestIfCaused => Some((kind, Substitute::OfSample(OfSample::LowestIfCaused))),
            OnOutcome::Drop => None,
        });
        Grouping { on_outcome: scores.collect(), min_scored: self.min_scored() }
    }

    /// The loss, with the correction of off-policy data.
    pub fn loss(&self) -> LossConfig {
        LossConfig { off_policy: self.correction(), ..self.loss }
    }

    /// How data that another policy drew is corrected, if it is.
    pub fn correction(&self) -> Option<OffPolicyConfig> {
        self.off_policy.and_then(|table| table.correction)
    }

    /// Why log-probabilities are of the policy's whole distribution, however tokens are drawn.
    fn mask_obstacle(&self) -> Option<&'static str> {
        if self.algorithm() == Estimator::Distillation {
            return Some(
                "train.algorithm = \"distillation\" compares the whole distributions of the policy and the teacher\nhint: leave it out",
            );
        }
        if self.loss.distillation.is_some() {
            return Some(
                "train.loss.distillation compares the whole distributions of the policy and the teacher\nhint: leave it out",
            );
        }
        let is_served = self.reference.as_ref().is_some_and(|reference| reference.chat.is_some());
        is_served.then_some(
            "train.reference.chat: a server reports no log-probabilities among the tokens that could be drawn\nhint: leave it out, or set train.reference.path",
        )
    }

    /// Prompts in each optimiser step.
    pub fn mini_batch(&self) -> usize {
        self.mini_batch_prompts.unwrap_or(self.prompts_per_step)
    }
}

impl TrainTable for RlTable {
    const LEARNS: bool = true;
    const DRAWS: bool = true;

    fn advantage(&self) -> Option<&str> {
        self.advantage.plugin()
    }

    fn reference(&self) -> Option<&ReferenceTable> {
        self.reference.as_ref()
    }

    fn critic(&self) -> Option<&CriticTable> {
        self.critic.as_ref()
    }

    fn find_on_hub(&mut self) -> Result<(), ConfigError> {
        self.reference.iter_mut().try_for_each(ReferenceTable::find_on_hub)?;
        self.critic.iter_mut().try_for_each(CriticTable::find_on_hub)
    }

    fn least_group(&self) -> usize {
        self.least_samples()
    }

    fn max_failure_rate(&self) -> f64 {
        self.max_failure_rate
    }

    fn max_pause(&self) -> Option<Duration> {
        Some(self.max_pause)
    }

    fn corrects_rollout(&self) -> bool {
        let by_ratio = self.loss.old_logprobs == Some(OldLogProbs::Rollout);
        by_ratio || self.correction().is_some_and(|correction| correction.has_weights())
    }

    fn max_token_staleness(&self) -> Option<u64> {
        self.correction().and_then(|correction| correction.max_token_staleness)
    }

    fn complete(&mut self, max_staleness: u64) {
        if max_staleness > 0 || self.correction().is_some() {
            let old = *self.loss.old_logprobs.get_or_insert(OldLogProbs::Proximal);
            let correction = self.correction().unwrap_or(OffPolicyConfig::of_run(old));
            self.off_policy.get_or_insert_default().correction = Some(correction.complete());
        }
        if self.advantage.plugin().is_none() {
            self.algorithm.get_or_insert_default();
        }
        if self.algorithm().needs_critic() {
            let critic = self.critic.get_or_insert_default();
            critic.optimizer = critic.optimizer.beside(&self.optimizer).into();
        }
        if self.algorithm() == Estimator::Distillation && self.loss.distillation.is_none() {
            let whole = KlConfig { estimator: KlEstimator::K1, coefficient: 1.0, ..KlConfig::default() };
            self.kl_reward.get_or_insert(whole);
        }
        self.mini_batch_prompts = Some(self.mini_batch());
        self.min_scored = Some(self.min_scored());
        for kind in OutcomeKind::ALL.into_iter().filter(|kind| *kind != OutcomeKind::Scored) {
            self.on_outcome.insert(kind, self.on_outcome(kind));
        }
    }

    fn follow_rollout(&mut self, rollout: &RolloutTable) {
        if rollout.changes_distribution() && self.mask_obstacle().is_none() {
            self.off_policy.get_or_insert_default().sampling_mask.get_or_insert(true);
        }
    }

    fn records_masks(&self, rollout: &RolloutTable) -> bool {
        let is_set = self.off_policy.and_then(|table| table.sampling_mask) == Some(true);
        is_set && rollout.changes_distribution()
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate_learning()?;
        at_least_one("train.mini_batch_prompts", self.mini_batch())?;
        if !self.prompts_per_step.is_multiple_of(self.mini_batch()) {
            let must = format!("a divisor of prompts_per_step ({})", self.prompts_per_step);
            return Err(ConfigError::value("train.mini_batch_prompts", &must, self.mini_batch()));
        }
        at_least_one("train.ppo_epochs", self.ppo_epochs)?;
        if let Some(filter) = &self.filter_groups {
            at_least_one("train.filter_groups.max_num_gen_batches", filter.max_num_gen_batches)?;
        }
        if self.min_scored() < self.least_samples() {
            let must = format!("at least {}", self.least_samples());
            return Err(ConfigError::value("train.min_scored", &must, self.min_scored()));
        }
        if self.algorithm.is_some() && self.advantage.plugin().is_some() {
            return Err(ConfigError::of(
                "train.algorithm",
                "train.advantage names a plugin, which takes the place of an algorithm\nhint: leave one of them out",
            ));
        }
        match &self.critic {
            Some(critic) if self.algorithm().needs_critic() => {
                critic.validate(self.steps(usize::MAX), &self.optimizer)?
            }
            Some(_) => {
                return Err(ConfigError::of(
                    "train.critic",
                    "only train.algorithm = \"gae\" has a critic\nhint: set that, or leave [train.critic] out",
                ));
            }
            None => {}
        }
        self.advantage_config().validate().map_err(|error| error.within("train.advantage"))?;
        if let Some(reference) = &self.reference {
            reference.validate()?;
            if reference.chat.is_some() && self.loss.kl.is_some() {
                return Err(ConfigError::of(
                    "train.reference.chat",
                    "train.loss.kl needs the reference in each update, and a server is asked before them\nhint: use train.kl_reward",
                ));
            }
            if reference.chat.is_some() && self.loss.distillation.is_some() {
                return Err(ConfigError::of(
                    "train.reference.chat",
                    "train.loss.distillation needs the teacher's most probable tokens, and a server is asked for the tokens that were drawn alone\nhint: set train.reference.path, or leave train.loss.distillation out",
                ));
            }
            if !reference.by_source.is_empty() && self.loss.kl.is_some() {
                return Err(ConfigError::of(
                    "train.reference.by_source",
                    "train.loss.kl has one reference in each update\nhint: use train.kl_reward or train.loss.distillation",
                ));
            }
            if !self.measures_distance() {
                return Err(ConfigError::of(
                    "train.reference",
                    "nothing measures the distance from it\nhint: set train.loss.kl, train.loss.distillation or train.kl_reward, or leave it out",
                ));
            }
        }
        if self.algorithm() == Estimator::Distillation {
            self.validate_distillation()?;
        }
        if let Some(kl) = &self.kl_reward {
            kl.validate().map_err(|error| error.within("train.kl_reward"))?;
        }
        if !(0.0..=1.0).contains(&self.max_failure_rate) {
            return Err(ConfigError::value("train.max_failure_rate", "from 0 to 1", self.max_failure_rate));
        }
        at_least_one("train.max_steps_without_update", self.max_steps_without_update as usize)?;
        if self.max_pause.is_zero() {
            return Err(ConfigError::value("train.max_pause", "longer than 0", "0s"));
        }
        for (kind, choice) in &self.on_outcome {
            let key = format!("train.on_outcome.{}", kind.as_str());
            match choice {
                OnOutcome::Score(score) if !(-MOST_REWARD..=MOST_REWARD).contains(score) => {
                    let must = format!("a score from -{MOST_REWARD:e} to {MOST_REWARD:e}");
                    return Err(ConfigError::value(&key, &must, score));
                }
                _ if *kind == OutcomeKind::Scored => {
                    return Err(ConfigError::of(&key, "a scored sample keeps its score"));
                }
                OnOutcome::LowestIfCaused if !matches!(kind, OutcomeKind::OutOfBudget | OutcomeKind::Abstained) => {
                    return Err(ConfigError::of(
                        &key,
                        "\"lowest-if-caused\" is for out-of-budget and abstained only: an honest answer may meet a fault",
                    ));
                }
                OnOutcome::Score(_) | OnOutcome::Drop | OnOutcome::LowestIfCaused => {}
            }
        }
        if let Some(correction) = self.correction() {
            correction.validate(self.loss.old_logprobs()).map_err(|error| error.within("train.off_policy"))?;
        }
        if self.off_policy.and_then(|table| table.sampling_mask) == Some(true)
            && let Some(why) = self.mask_obstacle()
        {
            return Err(ConfigError::of("train.off_policy.sampling_mask", why));
        }
        Ok(self.loss.validate().map_err(|error| error.within("train.loss"))?)
    }
}

impl TrainTable for SftTable {
    const LEARNS: bool = true;
    const DRAWS: bool = false;

    fn validate(&self) -> Result<(), ConfigError> {
        self.validate_learning()?;
        if let Some(accuracy) = self.stop_accuracy.filter(|accuracy| !(0.0..1.0).contains(accuracy)) {
            return Err(ConfigError::value("train.stop_accuracy", "at least 0 and below 1", accuracy));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
