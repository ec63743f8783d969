//! From scored groups to what an update learns from.

use crate::config::RlTable;
use gavel_data::{Group, Sample, Trajectory};
use gavel_runs::Metrics;
use gavel_train::Experience;

/// Gives each group its advantages, and returns the experiences of each; a group that was dropped has none.
pub(crate) fn advantages(groups: &mut [Group], table: &RlTable, metrics: &mut Metrics) -> Vec<Vec<Experience>> {
    let grouping = table.grouping();
    let (mut equal, mut dropped) = (0, 0);
    let mut experiences = Vec::with_capacity(groups.len());
    for group in groups.iter_mut() {
        let (mut scored, mut rewards) = (Vec::new(), Vec::new());
        for member in &mut group.members {
            if let Some(reward) = grouping.reward(member.outcome.reward, member.outcome.outcome) {
                scored.push(member);
                rewards.push(reward);
            }
        }
        if scored.len() < table.min_scored {
            dropped += 1;
            experiences.push(Vec::new());
            continue;
        }
        equal += u64::from(rewards.windows(2).all(|pair| pair[0] == pair[1]));
        let mut learned = Vec::with_capacity(scored.len());
        for (member, advantage) in scored.into_iter().zip(table.advantage().of_group(&rewards)) {
            member.advantage = Some(advantage);
            learned.extend(experience(&member.sample, advantage));
        }
        experiences.push(learned);
    }
    let members = groups.iter().flat_map(|group| &group.members);
    metrics.describe("advantage", &members.filter_map(|member| member.advantage).collect::<Vec<_>>());
    metrics.set("frac_reward_zero_std", equal as f64 / groups.len() as f64);
    metrics.count("groups/dropped", dropped);
    experiences
}

fn experience(sample: &Sample, advantage: f64) -> impl Iterator<Item = Experience> {
    sample.trajectories.iter().filter_map(Trajectory::tokens).map(move |tokens| Experience {
        prompt: tokens.prompt.clone(),
        response: tokens.response.clone(),
        loss_mask: tokens.loss_mask.clone(),
        logprobs: tokens.logprobs.clone(),
        advantage: advantage as f32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{group, rl_table};
    use gavel_data::OutcomeKind;

    #[test]
    fn only_what_was_scored_reaches_an_advantage() {
        let mut groups = [group(&[
            (OutcomeKind::Scored, Some(1.0)),
            (OutcomeKind::Fault, None),
            (OutcomeKind::Scored, Some(0.0)),
            (OutcomeKind::OutOfBudget, None),
        ])];
        let experiences = advantages(&mut groups, &rl_table(""), &mut Metrics::default());
        assert_eq!(experiences[0].len(), 2);
        let found: Vec<_> = groups[0].members.iter().map(|member| member.advantage).collect();
        let advantage = found[0].unwrap();
        assert!((advantage - std::f64::consts::FRAC_1_SQRT_2).abs() < 1e-5);
        assert_eq!(found, [Some(advantage), None, Some(-advantage), None]);
    }

    #[test]
    fn a_score_for_an_outcome_is_an_explicit_choice() {
        let mut groups = [group(&[(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::OutOfBudget, None)])];
        let mut metrics = Metrics::default();
        let table = rl_table("on_outcome = {out-of-budget = {score = 0.0}}");
        assert_eq!(advantages(&mut groups.clone(), &table, &mut metrics)[0].len(), 2);
        let dropped = advantages(&mut groups, &rl_table(""), &mut metrics);
        assert_eq!((dropped[0].len(), metrics.get("groups/dropped")), (0, Some(1.0)));
    }
}
