//! From scored groups to what an update learns from.

use crate::config::RlTable;
use gavel_data::{Group, Member, Sample};
use gavel_runs::Metrics;
use gavel_train::{Advantage, Experience, SampleId, ScoredGroup};

/// Gives each group its advantages, and returns the experiences of each; a group that was dropped has none.
pub(crate) fn advantages(groups: &mut [Group], table: &RlTable, metrics: &mut Metrics) -> Vec<Vec<Experience>> {
    let grouping = table.grouping();
    // Of each group that is kept, its number, and which of its samples have a reward.
    let (mut kept, mut scored) = (Vec::new(), Vec::new());
    for (number, group) in groups.iter().enumerate() {
        let reward = |member: &Member| grouping.reward(member.outcome.reward, member.outcome.outcome);
        let rewarded = group.members.iter().enumerate().filter_map(|(index, member)| Some((index, reward(member)?)));
        let (indices, rewards): (Vec<usize>, Vec<f64>) = rewarded.unzip();
        if rewards.len() >= table.min_scored {
            kept.push((number, indices));
            scored.push(ScoredGroup { rewards });
        }
    }
    let equal = scored.iter().filter(|group| group.is_uniform()).count();
    let mut experiences = vec![Vec::new(); groups.len()];
    for ((group, indices), advantages) in kept.into_iter().zip(table.advantage().estimate(&scored)) {
        for (index, advantage) in indices.into_iter().zip(advantages) {
            let member = &mut groups[group].members[index];
            member.advantage = Some(advantage.mean());
            experiences[group].extend(trajectories(&member.sample, SampleId { group, index }, &advantage));
        }
    }
    let members = groups.iter().flat_map(|group| &group.members);
    metrics.describe("advantage", &members.filter_map(|member| member.advantage).collect::<Vec<_>>());
    metrics.set("frac_reward_zero_std", equal as f64 / groups.len() as f64);
    metrics.count("groups/dropped", (groups.len() - scored.len()) as u64);
    experiences
}

/// The trajectories of a sample, as an update learns from them.
fn trajectories(sample: &Sample, id: SampleId, advantage: &Advantage) -> impl Iterator<Item = Experience> {
    let trajectories = sample.trajectories.iter().enumerate();
    trajectories.filter_map(|(index, trajectory)| Some((index, trajectory.tokens()?))).map(move |(index, tokens)| {
        Experience {
            sample: id,
            prompt: tokens.prompt.clone(),
            response: tokens.response.clone(),
            loss_mask: tokens.loss_mask.clone(),
            logprobs: tokens.logprobs.clone(),
            proximal: Vec::new(),
            versions: tokens.versions.clone(),
            advantages: advantage.of_trajectory(index, tokens.response.len()),
        }
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
