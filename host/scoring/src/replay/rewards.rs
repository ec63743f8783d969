//! The effect of changed scores on the rewards of groups: on the ranks of
//! samples and on their advantages.

use crate::recording::Grouping;
use serde::Serialize;
use std::cmp::Ordering;

/// The changes in the rewards of samples and in their groups.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RewardChange {
    /// The mean of the recorded rewards.
    pub recorded_mean: Option<f64>,
    /// The mean of the rewards now.
    pub replayed_mean: Option<f64>,
    /// Pairs of samples of one group that have rewards both then and now.
    pub pairs: u64,
    /// Pairs of which the other sample is better now.
    pub pairs_flipped: u64,
    /// Pairs that are equal now and were not, or were equal and are not.
    pub ties_changed: u64,
    /// Samples that were compared.
    pub samples: u64,
    /// Samples whose advantage changed its sign. 0, or no advantage, is a sign of
    /// its own.
    pub advantage_sign_changed: u64,
    /// Samples whose advantage was positive and is negative, or the reverse.
    pub advantage_sign_flipped: u64,
}

/// The rewards of the samples of one group, in order: recorded and now.
pub(super) type GroupRewards = Vec<(Option<f64>, Option<f64>)>;

/// Adds up the changes over groups.
#[derive(Default)]
pub(super) struct Rewards {
    change: RewardChange,
    recorded: Mean,
    replayed: Mean,
}

#[derive(Default)]
pub(super) struct Mean {
    sum: f64,
    pub(super) count: u64,
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    /// The mean; `None` if there are no values, or their sum is not finite.
    pub(super) fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64).filter(|mean| mean.is_finite())
    }
}

impl Rewards {
    pub(super) fn add(&mut self, group: &GroupRewards, grouping: &Grouping) {
        let change = &mut self.change;
        for (at, (was, now)) in group.iter().enumerate() {
            was.iter().for_each(|reward| self.recorded.add(*reward));
            now.iter().for_each(|reward| self.replayed.add(*reward));
            let (Some(was), Some(now)) = (was, now) else { continue };
            for (other_was, other_now) in &group[at + 1..] {
                let (Some(other_was), Some(other_now)) = (other_was, other_now) else { continue };
                change.pairs += 1;
                let (before, after) = (was.total_cmp(other_was), now.total_cmp(other_now));
                if before != after {
                    let tie = before == Ordering::Equal || after == Ordering::Equal;
                    *(if tie { &mut change.ties_changed } else { &mut change.pairs_flipped }) += 1;
                }
            }
        }
        let before = signs(group.iter().map(|(was, _)| *was), grouping);
        let after = signs(group.iter().map(|(_, now)| *now), grouping);
        for (before, after) in before.into_iter().zip(after) {
            change.samples += 1;
            change.advantage_sign_changed += u64::from(before != after);
            change.advantage_sign_flipped += u64::from(before == after.reverse() && before != Ordering::Equal);
        }
    }

    pub(super) fn finish(mut self) -> RewardChange {
        self.change.recorded_mean = self.recorded.value();
        self.change.replayed_mean = self.replayed.value();
        self.change
    }
}

/// The sign of each reward's advantage: the side of the group's mean on which the reward lies.
fn signs(rewards: impl Iterator<Item = Option<f64>> + Clone, grouping: &Grouping) -> Vec<Ordering> {
    let there: Vec<f64> = rewards.clone().flatten().collect();
    // Equal rewards are found by comparison, since a rounded mean could give them a sign.
    let says_nothing = there.len() < grouping.min_scored || there.windows(2).all(|pair| pair[0] == pair[1]);
    let mean = there.iter().sum::<f64>() / there.len() as f64;
    let sign = |reward: f64| reward.partial_cmp(&mean).unwrap_or(Ordering::Equal);
    rewards.map(|reward| reward.filter(|_| !says_nothing).map_or(Ordering::Equal, sign)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(groups: &[&[(Option<f64>, Option<f64>)]]) -> RewardChange {
        let mut rewards = Rewards::default();
        let grouping = Grouping { min_scored: 2, ..Grouping::default() };
        groups.iter().for_each(|group| rewards.add(&group.to_vec(), &grouping));
        rewards.finish()
    }

    #[test]
    fn flips_and_ties_are_told_apart() {
        let found = change(&[&[(Some(1.0), Some(0.0)), (Some(0.0), Some(1.0)), (Some(0.0), Some(0.0))]]);
        // (0, 1) is reversed; (0, 2) and (1, 2) gain or lose a tie.
        assert_eq!((found.pairs, found.pairs_flipped, found.ties_changed), (3, 1, 2));
        assert_eq!((found.samples, found.advantage_sign_changed, found.advantage_sign_flipped), (3, 2, 2));
        assert_eq!((found.recorded_mean, found.replayed_mean), (Some(1.0 / 3.0), Some(1.0 / 3.0)));
    }

    #[test]
    fn a_group_that_no_longer_differs_loses_its_advantages() {
        let found = change(&[&[(Some(1.0), Some(0.1)), (Some(0.0), Some(0.1)), (Some(0.0), Some(0.1))]]);
        assert_eq!((found.advantage_sign_changed, found.advantage_sign_flipped), (3, 0));
        assert_eq!((found.pairs_flipped, found.ties_changed), (0, 2));
    }

    #[test]
    fn what_has_no_reward_has_no_rank() {
        let found = change(&[&[(Some(1.0), None), (Some(0.0), Some(0.0))], &[(None, None)]]);
        assert_eq!((found.pairs, found.samples), (0, 3));
        // One reward is fewer than two: the group is dropped, and both lose their advantage.
        assert_eq!(found.advantage_sign_changed, 2);
        assert_eq!(found.replayed_mean, Some(0.0));
    }

    #[test]
    fn groups_do_not_mix() {
        let found = change(&[&[(Some(1.0), Some(1.0))], &[(Some(0.0), Some(2.0))]]);
        assert_eq!((found.pairs, found.advantage_sign_changed), (0, 0));
    }
}
