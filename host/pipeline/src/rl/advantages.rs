//! From scored groups to what an update learns from.

use crate::rl::credit::{ComparedTrajectories, CreditRule};
use crate::rl::learning_state::LearningState;
use crate::rl::turns::TurnStates;
use crate::run::{Measures, experience, loss_mask};
use crate::samples::DropReason;
use gavel_config::{RlTable, TrainTable, WeighBy};
use gavel_data::{Group, Member, Trajectory};
use gavel_scoring::recording::Grouping;
use gavel_train::{Advantage, Experience, RewardStatistics, SampleId, ScoredGroup, ScoredSample, ScoredTrajectory};

/// The samples of a group whose compared trajectories have a reward, with their rewards; nothing if there are too few to
/// learn from.
fn scored(
    group: &Group,
    table: &RlTable,
    rule: &CreditRule<'_>,
    compared: &ComparedTrajectories,
) -> Option<(Vec<usize>, Vec<f64>)> {
    let grouping = table.grouping();
    let reward = |member: &Member| rule.reward(member, compared, reward(member, &grouping)?);
    // An algorithm that does not learn from rewards also learns from samples without one.
    let reward = |member: &Member| reward(member).or((!table.algorithm().needs_rewards()).then_some(0.0));
    let rewarded = group.members.iter().enumerate().filter_map(|(index, member)| Some((index, reward(member)?)));
    let (indices, rewards): (Vec<usize>, Vec<f64>) = rewarded.unzip();
    (rewards.len() >= table.min_scored()).then_some((indices, rewards))
}

/// The samples of [`scored`] as an estimator sees them before their tokens are measured, with their numbers.
fn unmeasured(
    group: &Group,
    table: &RlTable,
    rule: &CreditRule<'_>,
    compared: &ComparedTrajectories,
) -> Option<(Vec<usize>, ScoredGroup)> {
    let (indices, rewards) = scored(group, table, rule, compared)?;
    let mut states = TurnStates::default();
    let mut of_sample = |(index, reward): (&usize, f64)| {
        let member = &group.members[*index];
        let of_trajectory = |(number, trajectory): (usize, &Trajectory)| {
            let loss_mask = trajectory.tokens().map(|tokens| loss_mask(trajectory, tokens, table)).unwrap_or_default();
            let turns = table.advantage_config().turns.map(|_| states.turns(member, number, rule)).unwrap_or_default();
            ScoredTrajectory { loss_mask, turns, ..ScoredTrajectory::default() }
        };
        let trajectories = rule.trajectories(&member.sample, compared).into_iter().map(of_trajectory).collect();
        ScoredSample { reward, parts: rule.parts(member, compared, reward), trajectories }
    };
    let samples = indices.iter().zip(rewards).map(&mut of_sample).collect();
    Some((indices, ScoredGroup { samples, greedy_reward: None }))
}

/// The reward that a sample counts with, if any.
pub(crate) fn reward(member: &Member, grouping: &Grouping) -> Option<f64> {
    let outcome = &member.outcome;
    grouping.reward(outcome.reward, outcome.outcome, outcome.lowest_reward)
}

impl DropReason {
    /// Why nothing is learned from `group`, if so. It is not [`Refused`](Self::Refused).
    pub(crate) fn of(group: &Group, table: &RlTable, rule: &CreditRule<'_>) -> Option<Self> {
        let compared_trajectories = rule.compared_trajectories(group);
        let mut scored =
            compared_trajectories.iter().filter_map(|compared| scored(group, table, rule, compared)).peekable();
        if scored.peek().is_none() {
            return Some(Self::TooFewScored);
        }
        if table.advantage_config().turns.is_some() {
            let compared = compared_trajectories.iter();
            let groups: Vec<ScoredGroup> =
                compared.filter_map(|compared| Some(unmeasured(group, table, rule, compared)?.1)).collect();
            let advantages = table.advantage_config().estimate(&groups, &RewardStatistics::default());
            return advantages.iter().flatten().all(Advantage::is_zero).then_some(Self::EqualRewards);
        }
        // A sample alone has nothing that its reward could differ from.
        let is_compared = |rewards: &[f64]| rewards.len() > 1 || table.compares();
        let is_uniform = table.algorithm().needs_rewards()
            && scored.all(|(_, rewards)| is_compared(&rewards) && ScoredGroup::of_rewards(rewards).is_uniform());
        (is_uniform && !rule.has_credit(group)).then_some(Self::EqualRewards)
    }
}

/// How rewards become advantages in a step.
pub(crate) struct AdvantageRule<'a> {
    pub(crate) table: &'a RlTable,
    pub(crate) credit: &'a CreditRule<'a>,
    pub(crate) learning: &'a mut LearningState,
    /// The measures of the tokens of the groups.
    pub(crate) measures: Measures,
    /// The greedy sample of each group, for algorithms that compare with it; otherwise empty.
    pub(crate) greedy: Vec<Option<Member>>,
}

impl AdvantageRule<'_> {
    /// The groups as an estimator compares them. A group with too few rewards is left out.
    pub(crate) fn compare(&mut self, groups: &[&mut Group]) -> ComparedGroups {
        let (mut kept, mut scored_groups) = (Vec::new(), Vec::new());
        for (number, group) in groups.iter().enumerate() {
            for compared in self.credit.compared_trajectories(group) {
                let Some((indices, mut scored)) = unmeasured(group, self.table, self.credit, &compared) else {
                    continue;
                };
                let greedy_reward = self.greedy_reward(number, &compared);
                if self.table.algorithm().needs_greedy() && greedy_reward.is_none() {
                    continue;
                }
                for (index, sample) in indices.iter().zip(&mut scored.samples) {
                    self.add_measures(sample, &group.members[*index], (number, *index), &compared);
                }
                scored_groups.push(ScoredGroup { greedy_reward, ..scored });
                kept.push(Kept { group: number, compared, weigh_by: self.credit.weigh_by(group), indices });
            }
        }
        self.learning.rewards.add(&scored_groups);
        ComparedGroups { kept, scored: scored_groups }
    }

    /// The advantages that the built-in algorithm gives.
    pub(crate) fn estimate(&self, compared: &ComparedGroups) -> Vec<Vec<Advantage>> {
        self.table.advantage_config().estimate(&compared.scored, &self.learning.rewards)
    }

    /// Gives each group its advantages, as an algorithm `estimated` them, and returns the experiences of each.
    pub(crate) fn experiences(
        &self,
        groups: &mut [&mut Group],
        ComparedGroups { kept, scored }: &ComparedGroups,
        estimated: Vec<Vec<Advantage>>,
    ) -> Vec<Vec<Experience>> {
        let mut experiences = vec![Vec::new(); groups.len()];
        for sample in estimated_samples(kept, scored, estimated) {
            let (group, index) = sample.place;
            let reference = self.table.reference_of(groups[group].task.data_source.as_deref());
            let member = &mut groups[group].members[index];
            let learned = self.learned(member, &sample).into_iter();
            experiences[group].extend(learned.map(|row| Experience { reference, ..row }));
            let trajectories = self.credit.trajectories(&member.sample, sample.compared);
            let numbers: Vec<usize> = trajectories.into_iter().map(|(number, _)| number).collect();
            member.advantages.resize(member.sample.trajectories.len(), None);
            for (number, mean) in numbers.into_iter().zip(sample.advantage.means(&sample.scored.trajectories)) {
                member.advantages[number] = Some(mean);
            }
        }
        experiences
    }

    /// Whether credit is not added to an advantage: a comparison of turns has it, and a plugin that decides on each token.
    fn includes_credit(&self, advantage: &Advantage) -> bool {
        let is_of_tokens = matches!(advantage, Advantage::Tokens(_));
        self.table.advantage_config().turns.is_some() || (self.table.advantage().is_some() && is_of_tokens)
    }

    /// The reward of the greedy response to a group's task.
    fn greedy_reward(&self, group: usize, compared: &ComparedTrajectories) -> Option<f64> {
        let member = self.greedy.get(group)?.as_ref()?;
        self.credit.reward(member, compared, reward(member, &self.table.grouping())?)
    }

    /// Adds the measures of the tokens to a sample.
    fn add_measures(
        &self,
        sample: &mut ScoredSample,
        member: &Member,
        (group, index): (usize, usize),
        compared: &ComparedTrajectories,
    ) {
        let weight = self.learning.kl_in_reward.map_or(0.0, |kl| kl.coefficient);
        for (scored, (at, _)) in sample.trajectories.iter_mut().zip(self.credit.trajectories(&member.sample, compared))
        {
            let measures = self.measures.get(&(group, index, at)).cloned().unwrap_or_default();
            scored.penalties = self.penalties(member, at, measures.kl.into_iter().map(|kl| weight * kl).collect());
            scored.gradient_norms = measures.gradient_norms;
            scored.values = measures.values.into_iter().map(f64::from).collect();
        }
    }

    /// What is subtracted from the reward at each token of a trajectory: the penalties `of_distance`, and with a critic,
    /// which learns what follows from a token, its credit.
    fn penalties(&self, member: &Member, trajectory: usize, of_distance: Vec<f64>) -> Vec<f64> {
        if !self.table.algorithm().needs_critic() {
            return of_distance;
        }
        let Some(mut credit) = self.credit.of_tokens(member, trajectory) else { return of_distance };
        for (at, credit) in credit.iter_mut().enumerate() {
            *credit = of_distance.get(at).copied().unwrap_or(0.0) - *credit;
        }
        credit
    }

    /// The compared trajectories of a sample, as an update learns from them.
    fn learned(&self, member: &Member, estimated: &EstimatedSample<'_>) -> Vec<Experience> {
        let EstimatedSample { place: at, compared, weigh_by, scored, advantage } = estimated;
        let has_critic = self.table.algorithm().needs_critic();
        let experience = |(place, (number, trajectory)): (usize, (usize, &Trajectory))| {
            let bare = experience(trajectory, self.table)?;
            if self.table.algorithm().leaves_out() && advantage.mean(&scored.trajectories) == 0.0 {
                return None;
            }
            let mut advantages = advantage.of_trajectory(place, bare.response.len());
            let sample = counts_as(*weigh_by, *at, number);
            if has_critic {
                let trajectory = scored.trajectories.get(place)?;
                let narrow = |numbers: &[f64]| numbers.iter().map(|number| *number as f32).collect();
                let returns = narrow(&self.table.advantage_config().returns(trajectory, scored.reward));
                return Some(Experience { sample, advantages, values: narrow(&trajectory.values), returns, ..bare });
            }
            let credit = match self.includes_credit(advantage) {
                true => None,
                false => self.credit.of_tokens(member, number),
            };
            for (advantage, credit) in advantages.iter_mut().zip(credit.unwrap_or_default()) {
                *advantage += credit as f32;
            }
            Some(Experience { sample, advantages, ..bare })
        };
        self.credit.trajectories(&member.sample, compared).into_iter().enumerate().filter_map(experience).collect()
    }
}

/// The groups of a batch as an estimator compares them.
pub(crate) struct ComparedGroups {
    pub(crate) kept: Vec<Kept>,
    /// The same, with the numbers of the samples.
    pub(crate) scored: Vec<ScoredGroup>,
}

/// Trajectories that an estimator compares, of samples that have a reward.
pub(crate) struct Kept {
    /// The number of their group.
    pub(crate) group: usize,
    pub(crate) compared: ComparedTrajectories,
    weigh_by: WeighBy,
    /// The numbers of the samples.
    pub(crate) indices: Vec<usize>,
}

/// A sample that an estimator compared with others.
struct EstimatedSample<'a> {
    /// The number of its group, and its own.
    place: (usize, usize),
    compared: &'a ComparedTrajectories,
    weigh_by: WeighBy,
    scored: &'a ScoredSample,
    advantage: Advantage,
}

/// The samples of what was kept, `scored` as the estimator saw them, with the advantages that it gave.
fn estimated_samples<'a>(
    kept: &'a [Kept],
    scored: &'a [ScoredGroup],
    advantages: Vec<Vec<Advantage>>,
) -> impl Iterator<Item = EstimatedSample<'a>> {
    kept.iter().zip(scored).zip(advantages).flat_map(|((kept, scored), advantages)| {
        let Kept { group, compared, weigh_by, indices } = kept;
        let samples = indices.iter().zip(&scored.samples).zip(advantages);
        samples.map(|((index, scored), advantage)| EstimatedSample {
            place: (*group, *index),
            compared,
            weigh_by: *weigh_by,
            scored,
            advantage,
        })
    })
}

/// What a trajectory counts as when losses are averaged over samples.
fn counts_as(weigh_by: WeighBy, (group, index): (usize, usize), trajectory: usize) -> SampleId {
    match weigh_by {
        WeighBy::Sample => SampleId { group, index, trajectory: 0 },
        WeighBy::Trajectory => SampleId { group, index, trajectory },
    }
}

/// Gives groups their advantages as in the first step of a run.
#[cfg(test)]
pub(crate) fn advantages_of(
    groups: &mut [&mut Group],
    table: &RlTable,
    credit: &CreditRule<'_>,
) -> Vec<Vec<Experience>> {
    let learning = &mut LearningState::new(table, &std::collections::BTreeMap::new(), &[]);
    AdvantageRule { table, credit, learning, measures: Measures::new(), greedy: Vec::new() }.apply(groups)
}

#[cfg(test)]
impl AdvantageRule<'_> {
    /// The experiences that the built-in algorithm gives.
    fn apply(mut self, groups: &mut [&mut Group]) -> Vec<Vec<Experience>> {
        let compared = self.compare(groups);
        let estimated = self.estimate(&compared);
        self.experiences(groups, &compared, estimated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{group, rl_table};
    use gavel_data::{FinishReason, OutcomeKind};
    use std::collections::BTreeMap;

    /// The experiences of a group whose greedy response has this reward.
    fn apply(group: &mut Group, table: &RlTable, greedy: Option<f64>) -> Vec<Experience> {
        let mut learning = LearningState::new(table, &BTreeMap::new(), &[]);
        let greedy =
            greedy.map(|reward| crate::testing::group(&[(OutcomeKind::Scored, Some(reward))]).members.remove(0));
        let credit = CreditRule::plain();
        let measures = Measures::new();
        let rule = AdvantageRule { table, credit: &credit, learning: &mut learning, measures, greedy: vec![greedy] };
        rule.apply(&mut [group]).remove(0)
    }

    #[test]
    fn only_what_was_scored_reaches_an_advantage() {
        let mut group = group(&[
            (OutcomeKind::Scored, Some(1.0)),
            (OutcomeKind::Fault, None),
            (OutcomeKind::Scored, Some(0.0)),
            (OutcomeKind::OutOfBudget, None),
        ]);
        assert_eq!(apply(&mut group, &rl_table(""), None).len(), 2);
        let found: Vec<_> = group.members.iter().map(|member| member.advantages.clone()).collect();
        let advantage = found[0][0].unwrap();
        assert!((advantage - std::f64::consts::FRAC_1_SQRT_2).abs() < 1e-5);
        assert_eq!(found, [vec![Some(advantage)], vec![], vec![Some(-advantage)], vec![]]);
    }

    #[test]
    fn a_score_for_an_outcome_is_an_explicit_choice() {
        let mut group = group(&[(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::OutOfBudget, None)]);
        let table = rl_table("on_outcome = {out-of-budget = {score = 0.0}}");
        assert_eq!(apply(&mut group, &table, None).len(), 2);
        assert_eq!(DropReason::of(&group, &table, &CreditRule::plain()), None);
        assert_eq!(apply(&mut group, &rl_table(""), None).len(), 0);
        assert_eq!(DropReason::of(&group, &rl_table(""), &CreditRule::plain()), Some(DropReason::TooFewScored));
    }

    #[test]
    fn a_response_that_exhausts_its_judge_does_not_escape_unless_the_run_says_so() {
        let outcomes = [(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::OutOfBudget, None), (OutcomeKind::Fault, None)];
        let mut group = group(&outcomes);
        // Scoring finds a lowest reward for the second sample only.
        group.members[1].outcome.lowest_reward = Some(-1.0);
        let learned = |text: &str| {
            let mut group = group.clone();
            apply(&mut group, &rl_table(text), None);
            group.members.iter().map(|member| member.advantages.first()?.map(f64::signum)).collect::<Vec<_>>()
        };
        assert_eq!(learned(""), [Some(1.0), Some(-1.0), None]);
        assert_eq!(learned(r#"on_outcome = {fault = {score = -2.0}}"#)[..2], [Some(1.0), Some(-1.0)]);
        assert_eq!(learned(r#"on_outcome = {out-of-budget = "drop"}"#), [None; 3]);
    }

    #[test]
    fn a_truncated_response_counts_in_its_group_and_is_not_learned_from() {
        let mut group = group(&[(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::Scored, Some(0.0))]);
        group.members[1].sample.trajectories[0].finish_reason = FinishReason::Length;
        let masks = |text: &str| {
            let mut group = group.clone();
            let experiences = apply(&mut group, &rl_table(text), None);
            assert!(group.members[0].advantages[0].is_some_and(|advantage| advantage > 0.7));
            experiences.into_iter().map(|experience| experience.loss_mask).collect::<Vec<_>>()
        };
        assert_eq!(masks(""), [[true, true]; 2]);
        assert_eq!(masks("mask_truncated = true"), [[true, true], [false, false]]);
    }

    #[test]
    fn a_sample_alone_is_not_a_group_of_equal_rewards() {
        let drop_reason = |rewards: &[f64], text: &str| {
            let members: Vec<_> = rewards.iter().map(|reward| (OutcomeKind::Scored, Some(*reward))).collect();
            DropReason::of(&group(&members), &rl_table(text), &CreditRule::plain())
        };
        let [remax, raft] = ["algorithm = 'remax'", "algorithm = 'raft'\nadvantage.threshold = 1.0"];
        let distillation = "algorithm = 'distillation'\nreference.path = 'teacher'";
        for text in [remax, raft, distillation] {
            assert_eq!(drop_reason(&[1.0], text), None, "{text}");
        }
        assert_eq!(drop_reason(&[1.0, 1.0], remax), Some(DropReason::EqualRewards));
        assert_eq!(drop_reason(&[1.0, 1.0], distillation), None);
    }

    #[test]
    fn remax_learns_nothing_without_a_greedy_response_and_from_a_single_sample_with_one() {
        let single = group(&[(OutcomeKind::Scored, Some(1.0))]);
        let table = rl_table("algorithm = 'remax'");
        let found = apply(&mut single.clone(), &table, Some(0.25));
        assert_eq!(found[0].advantages, [0.75, 0.75]);
        assert!(apply(&mut single.clone(), &table, None).is_empty());
    }

    #[test]
    fn a_penalty_at_a_token_lowers_the_reward_of_its_sample() {
        let mut group = group(&[(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::Scored, Some(0.0))]);
        let table = rl_table("algorithm = 'dr_grpo'\nkl_reward.coefficient = 0.5");
        let kl = crate::run::token_measures::TokenMeasures { kl: vec![0.25, 0.75], ..Default::default() };
        let mut learning = LearningState::new(&table, &BTreeMap::new(), &[]);
        let credit = CreditRule::plain();
        let rule = AdvantageRule {
            table: &table,
            credit: &credit,
            learning: &mut learning,
            measures: Measures::from([((0, 0, 0), kl)]),
            greedy: Vec::new(),
        };
        assert_eq!(rule.apply(&mut [&mut group])[0][0].advantages, [0.25, 0.25]);
        assert_eq!((learning.rewards.count, learning.rewards.mean), (2.0, 0.25));
    }

    #[test]
    fn with_a_critic_credit_is_a_reward_of_its_tokens() {
        let mut group = group(&[(OutcomeKind::Scored, Some(1.0))]);
        let table = rl_table("algorithm = 'gae'\nkl_reward.coefficient = 0.5");
        let mut learning = LearningState::new(&table, &BTreeMap::new(), &[]);
        let credit = CreditRule::plain();
        let measured = crate::run::token_measures::TokenMeasures {
            kl: vec![0.25, 0.75],
            values: vec![0.5, 0.25],
            ..Default::default()
        };
        let measures = Measures::from([((0, 0, 0), measured)]);
        let rule =
            AdvantageRule { table: &table, credit: &credit, learning: &mut learning, measures, greedy: Vec::new() };
        let member = &mut group.members[0];
        let tokenizer = gavel_text::TextModel::byte_level().tokenizer;
        if let Some(gavel_data::KnownTokens::Full(tokens)) = &mut member.sample.trajectories[0].tokens {
            tokens.response = vec![tokenizer.encode("a").unwrap()[0], tokenizer.stop_ids()[0]];
        }
        let given = gavel_data::Credit { trajectory: 0, message: 0, start: 0, end: 1, value: 0.5 };
        let score = gavel_data::Score { credit: vec![given], ..Default::default() };
        let evaluation = gavel_data::Evaluation::without_call(gavel_data::Outcome::Scored(score));
        member.outcome.plugins.insert("r".into(), evaluation);
        let of_tokens = credit.of_tokens(member, 0).unwrap();
        let penalties = rule.penalties(member, 0, vec![0.125, 0.375]);
        let expected: Vec<f64> =
            [0.125, 0.375].iter().zip(&of_tokens).map(|(penalty, credit)| penalty - credit).collect();
        assert!(of_tokens.iter().any(|credit| *credit != 0.0), "{of_tokens:?}");
        assert_eq!(penalties, expected);
        let row = rule.apply(&mut [&mut group])[0].remove(0);
        let last = 1.0 - expected[1];
        assert_eq!(row.values, [0.5, 0.25]);
        assert_eq!(row.returns, [(last - expected[0]) as f32, last as f32]);
    }
}
