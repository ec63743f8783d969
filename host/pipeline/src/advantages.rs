//! From scored groups to what an update learns from.

use crate::config::RlTable;
use crate::credit::{CreditRule, Strand};
use gavel_data::{Group, Member, Trajectory};
use gavel_train::{Advantage, Experience, ScoredGroup};

/// Which samples of a group have a reward in a strand, and their rewards; nothing if they are too few to learn from.
fn scored(group: &Group, table: &RlTable, rule: &CreditRule<'_>, strand: &Strand) -> Option<(Vec<usize>, ScoredGroup)> {
    let grouping = table.grouping();
    let reward = |member: &Member| {
        let outcome = &member.outcome;
        let reward = grouping.reward(outcome.reward, outcome.outcome, outcome.lowest_reward)?;
        rule.reward(member, strand, reward)
    };
    let rewarded = group.members.iter().enumerate().filter_map(|(index, member)| Some((index, reward(member)?)));
    let (indices, rewards): (Vec<usize>, Vec<f64>) = rewarded.unzip();
    (rewards.len() >= table.min_scored).then_some((indices, ScoredGroup { rewards }))
}

/// Why nothing is learned from a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Useless {
    /// Fewer samples than `min_scored` have a reward.
    TooFewScored,
    /// All rewards are equal, and so all advantages 0.
    EqualRewards,
}

impl Useless {
    /// The name in metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::TooFewScored => "too-few-scored",
            Self::EqualRewards => "equal-rewards",
        }
    }

    /// Why nothing is learned from `group`, if so.
    pub(crate) fn of(group: &Group, table: &RlTable, rule: &CreditRule<'_>) -> Option<Self> {
        let strands = rule.strands(group);
        let mut scored = strands.iter().filter_map(|strand| scored(group, table, rule, strand)).peekable();
        if scored.peek().is_none() {
            return Some(Self::TooFewScored);
        }
        let is_uniform = scored.all(|(_, scored)| scored.is_uniform());
        (is_uniform && !rule.has_credit(group)).then_some(Self::EqualRewards)
    }
}

/// Gives each group its advantages, and returns the experiences of each; a group with too few rewards has none.
pub(crate) fn advantages(groups: &mut [&mut Group], table: &RlTable, rule: &CreditRule<'_>) -> Vec<Vec<Experience>> {
    // Of each strand that is kept, the number of its group, and which of the samples have a reward.
    let (mut kept, mut rewards) = (Vec::new(), Vec::new());
    for (number, group) in groups.iter().enumerate() {
        for strand in rule.strands(group) {
            if let Some((indices, scored)) = scored(group, table, rule, &strand) {
                kept.push((number, strand, indices));
                rewards.push(scored);
            }
        }
    }
    let mut experiences = vec![Vec::new(); groups.len()];
    for ((group, strand, indices), advantages) in kept.into_iter().zip(table.advantage().estimate(&rewards)) {
        let shares = rule.strands(groups[group]).len() as f64;
        for (index, advantage) in indices.into_iter().zip(advantages) {
            let member = &mut groups[group].members[index];
            experiences[group].extend(learned(member, (group, index), &strand, &advantage, rule));
            *member.advantage.get_or_insert(0.0) += advantage.mean() / shares;
        }
    }
    experiences
}

/// The trajectories of a sample in a strand, as an update learns from them.
fn learned(
    member: &Member,
    (group, index): (usize, usize),
    strand: &Strand,
    advantage: &Advantage,
    rule: &CreditRule<'_>,
) -> Vec<Experience> {
    let experience = |(number, trajectory): (usize, &Trajectory)| {
        let tokens = trajectory.tokens()?;
        let mut advantages = advantage.of_trajectory(number, tokens.response.len());
        for (advantage, credit) in advantages.iter_mut().zip(rule.of_tokens(member, number).unwrap_or_default()) {
            *advantage += credit as f32;
        }
        Some(Experience {
            sample: rule.counts_as(group, index, number),
            prompt: tokens.prompt.clone(),
            response: tokens.response.clone(),
            loss_mask: tokens.loss_mask.clone(),
            logprobs: tokens.logprobs.clone(),
            proximal: Vec::new(),
            versions: tokens.versions.clone(),
            advantages,
        })
    };
    rule.trajectories(&member.sample, strand).into_iter().filter_map(experience).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{group, rl_table};
    use gavel_data::OutcomeKind;

    #[test]
    fn only_what_was_scored_reaches_an_advantage() {
        let mut group = group(&[
            (OutcomeKind::Scored, Some(1.0)),
            (OutcomeKind::Fault, None),
            (OutcomeKind::Scored, Some(0.0)),
            (OutcomeKind::OutOfBudget, None),
        ]);
        let experiences = advantages(&mut [&mut group], &rl_table(""), &CreditRule::plain());
        assert_eq!(experiences[0].len(), 2);
        let found: Vec<_> = group.members.iter().map(|member| member.advantage).collect();
        let advantage = found[0].unwrap();
        assert!((advantage - std::f64::consts::FRAC_1_SQRT_2).abs() < 1e-5);
        assert_eq!(found, [Some(advantage), None, Some(-advantage), None]);
    }

    #[test]
    fn a_score_for_an_outcome_is_an_explicit_choice() {
        let mut group = group(&[(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::OutOfBudget, None)]);
        let table = rl_table("on_outcome = {out-of-budget = {score = 0.0}}");
        assert_eq!(advantages(&mut [&mut group], &table, &CreditRule::plain())[0].len(), 2);
        assert_eq!(Useless::of(&group, &table, &CreditRule::plain()), None);
        assert_eq!(advantages(&mut [&mut group], &rl_table(""), &CreditRule::plain())[0].len(), 0);
        assert_eq!(Useless::of(&group, &rl_table(""), &CreditRule::plain()), Some(Useless::TooFewScored));
    }

    #[test]
    fn a_response_that_exhausts_its_judge_does_not_escape_unless_the_run_says_so() {
        let outcomes = [(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::OutOfBudget, None), (OutcomeKind::Fault, None)];
        let mut group = group(&outcomes);
        // As scoring finds for the second one alone.
        group.members[1].outcome.lowest_reward = Some(-1.0);
        let learned = |text: &str| {
            let mut group = group.clone();
            advantages(&mut [&mut group], &rl_table(text), &CreditRule::plain());
            group.members.iter().map(|member| member.advantage.map(f64::signum)).collect::<Vec<_>>()
        };
        assert_eq!(learned(""), [Some(1.0), Some(-1.0), None]);
        assert_eq!(learned(r#"on_outcome = {fault = {score = -2.0}}"#)[..2], [Some(1.0), Some(-1.0)]);
        assert_eq!(learned(r#"on_outcome = {out-of-budget = "drop"}"#), [None; 3]);
    }
}
