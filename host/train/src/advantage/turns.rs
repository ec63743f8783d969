//! Comparison of turns: rewards of turns take part in the comparison of a group.
//!
//! A turn is what the policy writes at once. The turns of a sample are counted through its trajectories, in their order.
//! The reward of the sample comes with its last turn.

use super::group::{ScoredGroup, ScoredSample, ScoredTrajectory, ScoredTurn};
use super::output::Advantage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which turns of a group are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnComparison {
    /// The turns with the same number, by their own rewards, beside the comparison of samples (Zeng et al., "Reinforcing
    /// multi-turn reasoning in LLM agents via turn-level credit assignment", 2025, <https://arxiv.org/abs/2505.11821>).
    Index,
    /// All turns, by their discounted returns, in place of the comparison of samples (Baronio et al., "Kevin", 2025,
    /// <https://arxiv.org/abs/2507.11948>).
    Return,
    /// The turns before which the policy read the same, by their discounted returns, beside the comparison of samples by
    /// all their rewards (Feng et al., "Group-in-group policy optimization", 2025, <https://arxiv.org/abs/2505.10978>).
    State,
}

/// How the turns of groups are compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnRule {
    pub(super) comparison: TurnComparison,
    /// The share of a turn's return that counts one turn before it.
    pub(super) gamma: f64,
    /// The weight of the comparison of turns beside the comparison of samples.
    pub(super) weight: f64,
}

impl TurnRule {
    /// The advantages of the tokens of each sample. `compare` compares the rewards of each group.
    pub(super) fn advantages(
        self,
        groups: &[ScoredGroup],
        compare: impl Fn(&[ScoredGroup]) -> Vec<Vec<f64>>,
    ) -> Vec<Vec<Advantage>> {
        groups.iter().map(|group| self.of_group(group, &compare)).collect()
    }

    fn of_group(self, group: &ScoredGroup, compare: &impl Fn(&[ScoredGroup]) -> Vec<Vec<f64>>) -> Vec<Advantage> {
        let mut of_turns: Vec<Vec<f64>> = group.samples.iter().map(|sample| self.values(sample)).collect();
        // The samples and turns that are compared with each other.
        let mut sets: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (sample, each) in group.samples.iter().enumerate() {
            for (number, turn) in turns(each).enumerate() {
                let set = match self.comparison {
                    TurnComparison::Index => number,
                    TurnComparison::Return => 0,
                    TurnComparison::State => turn.state,
                };
                sets.entry(set).or_default().push((sample, number));
            }
        }
        let values =
            |set: &Vec<(usize, usize)>| ScoredGroup::of_rewards(set.iter().map(|(at, turn)| of_turns[*at][*turn]));
        let compared = compare(&sets.values().map(values).collect::<Vec<_>>());
        let of_samples = match self.comparison {
            TurnComparison::Return => None,
            TurnComparison::Index | TurnComparison::State => {
                let rewards = group.samples.iter().map(|sample| self.reward(sample));
                Some(compare(&[ScoredGroup::of_rewards(rewards)]).concat())
            }
        };
        for ((sample, turn), advantage) in sets.values().flatten().zip(compared.iter().flatten()) {
            of_turns[*sample][*turn] = match &of_samples {
                Some(of_samples) => of_samples[*sample] + self.weight * advantage,
                None => *advantage,
            };
        }
        group.samples.iter().zip(of_turns).map(|(sample, of_turns)| spread(sample, &of_turns)).collect()
    }

    /// What each turn of a sample is compared by.
    fn values(self, sample: &ScoredSample) -> Vec<f64> {
        let mut values = rewards(sample);
        if self.comparison != TurnComparison::Index {
            let mut later = None;
            for value in values.iter_mut().rev() {
                *value += later.map_or(sample.reward, |later: f64| self.gamma * later);
                later = Some(*value);
            }
        }
        values
    }

    /// What a sample is compared by.
    fn reward(self, sample: &ScoredSample) -> f64 {
        match self.comparison {
            TurnComparison::State => sample.reward + rewards(sample).iter().sum::<f64>(),
            TurnComparison::Index | TurnComparison::Return => sample.reward,
        }
    }
}

fn turns(sample: &ScoredSample) -> impl Iterator<Item = &ScoredTurn> {
    sample.trajectories.iter().flat_map(|trajectory| &trajectory.turns)
}

/// The reward of each turn, minus the penalties of its tokens.
fn rewards(sample: &ScoredSample) -> Vec<f64> {
    let of_trajectory = |trajectory: &ScoredTrajectory| {
        let of_turn = |turn: &ScoredTurn| {
            let penalties = trajectory.penalties.get(turn.tokens.clone()).unwrap_or_default();
            turn.reward - penalties.iter().sum::<f64>()
        };
        trajectory.turns.iter().map(of_turn).collect::<Vec<f64>>()
    };
    sample.trajectories.iter().flat_map(of_trajectory).collect()
}

/// The advantages of turns at their tokens, and 0 at others.
fn spread(sample: &ScoredSample, of_turns: &[f64]) -> Advantage {
    let mut of_turns = of_turns.iter();
    let of_trajectory = |trajectory: &ScoredTrajectory| {
        let mut tokens = vec![0.0; trajectory.loss_mask.len()];
        for (turn, advantage) in trajectory.turns.iter().zip(&mut of_turns) {
            tokens[turn.tokens.clone()].fill(*advantage);
        }
        tokens
    };
    Advantage::Tokens(sample.trajectories.iter().map(of_trajectory).collect())
}

#[cfg(test)]
mod tests {
    use super::super::{AdvantageConfig, Estimator, RewardStatistics, Scale};
    use super::*;

    /// A sample of one trajectory whose turns have two tokens each and a token of somebody else after each: the reward
    /// and the state of each turn.
    fn sample(reward: f64, turns: &[(f64, usize)]) -> ScoredSample {
        let turn = |(number, (reward, state)): (usize, &(f64, usize))| ScoredTurn {
            tokens: number * 3..number * 3 + 2,
            reward: *reward,
            state: *state,
        };
        let trajectory = ScoredTrajectory {
            loss_mask: [true, true, false].repeat(turns.len()),
            turns: turns.iter().enumerate().map(turn).collect(),
            ..ScoredTrajectory::default()
        };
        ScoredSample { reward, trajectories: vec![trajectory], ..ScoredSample::default() }
    }

    /// Two turns and three. The first turns read the same, and so do all others.
    fn group() -> ScoredGroup {
        let samples = vec![sample(2.0, &[(1.0, 7), (0.0, 3)]), sample(0.0, &[(0.0, 7), (2.0, 3), (0.0, 3)])];
        ScoredGroup { samples, greedy_reward: None }
    }

    fn config(estimator: Estimator, turns: TurnComparison) -> AdvantageConfig {
        AdvantageConfig { estimator, turns: Some(turns), ..AdvantageConfig::default() }
    }

    /// The advantage of each turn of each sample of a group. All its tokens have it, and the tokens of others 0.
    fn of_turns(config: AdvantageConfig, group: &ScoredGroup) -> Vec<Vec<f64>> {
        let found = config.estimate(std::slice::from_ref(group), &RewardStatistics::default());
        let of_sample = |(advantage, sample): (&Advantage, &ScoredSample)| {
            let Advantage::Tokens(of_trajectories) = advantage else { panic!("{advantage:?}") };
            let of_trajectory = |(tokens, trajectory): (&Vec<f64>, &ScoredTrajectory)| {
                assert_eq!(tokens.len(), trajectory.loss_mask.len());
                let learned = tokens.iter().zip(&trajectory.loss_mask);
                assert!(learned.into_iter().all(|(advantage, learned)| *learned || *advantage == 0.0), "{tokens:?}");
                let of_turn = |turn: &ScoredTurn| {
                    let own = &tokens[turn.tokens.clone()];
                    assert!(own.iter().all(|advantage| *advantage == own[0]), "{tokens:?}");
                    own[0]
                };
                trajectory.turns.iter().map(of_turn).collect::<Vec<f64>>()
            };
            of_trajectories.iter().zip(&sample.trajectories).flat_map(of_trajectory).collect()
        };
        found[0].iter().zip(&group.samples).map(of_sample).collect()
    }

    fn assert_close(found: &[Vec<f64>], expected: &[&[f64]]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            let is_close = found.iter().zip(*expected).all(|(a, b)| (a - b).abs() < 1e-5);
            assert!(found.len() == expected.len() && is_close, "{found:?} is not {expected:?}");
        }
    }

    #[test]
    fn by_index_turn_k_is_compared_with_turn_k() {
        // Samples: 2 and 0, ±1. Turn 1: 1 and 0, ±½. Turn 2: 0 and 2, ∓1. Turn 3 is alone.
        let halved = AdvantageConfig { turn_weight: Some(0.5), ..config(Estimator::DrGrpo, TurnComparison::Index) };
        assert_close(&of_turns(halved, &group()), &[&[1.25, 0.5], &[-1.25, -0.5, -1.0]]);
        // Two opposite numbers over their deviation are ±√½, and the baseline without the sample itself doubles them.
        let root = 0.5f64.sqrt();
        let grpo = config(Estimator::Grpo, TurnComparison::Index);
        assert_close(&of_turns(grpo, &group()), &[&[2.0 * root, 0.0], &[-2.0 * root, 0.0, -root]]);
        let rloo = config(Estimator::Rloo, TurnComparison::Index);
        assert_close(&of_turns(rloo, &group()), &[&[3.0, 0.0], &[-3.0, 0.0, -2.0]]);
    }

    #[test]
    fn by_return_all_turns_are_compared_with_each_other() {
        // Returns from the last turn: 2, 1 + ½ · 2; and 0, 2 + 0, 0 + ½ · 2. Their mean is 7 / 5.
        let settings = AdvantageConfig { gamma: Some(0.5), ..config(Estimator::DrGrpo, TurnComparison::Return) };
        assert_close(&of_turns(settings, &group()), &[&[0.6, 0.6], &[-0.4, 0.6, -1.4]]);
        let deviation = ((3.0 * 0.36 + 0.16 + 1.96) / 4.0f64).sqrt();
        let settings = AdvantageConfig { estimator: Estimator::Grpo, ..settings };
        let expected: [&[f64]; 2] = [&[0.6 / deviation; 2], &[-0.4 / deviation, 0.6 / deviation, -1.4 / deviation]];
        assert_close(&of_turns(settings, &group()), &expected);
        // Without a discount and without rewards of turns, each turn has the reward of its sample: 1, and twice 0.
        let plain = ScoredGroup { samples: vec![sample(1.0, &[(0.0, 0)]), sample(0.0, &[(0.0, 0); 2])], ..group() };
        let third = 1.0 / 3.0;
        let settings = config(Estimator::DrGrpo, TurnComparison::Return);
        assert_close(&of_turns(settings, &plain), &[&[2.0 * third], &[-third; 2]]);
    }

    #[test]
    fn by_state_turns_that_read_the_same_are_compared_as_gigpo_does() {
        // Samples, by all rewards: 3 and 2, ±½. Returns: 2, 2; and 1, 2, 0. State 7: 2 and 1, ±½. State 3: 2, 2 and 0.
        let settings = AdvantageConfig {
            gamma: Some(0.5),
            turn_weight: Some(0.75),
            scale: Some(Scale::None),
            ..config(Estimator::Grpo, TurnComparison::State)
        };
        let expected: [&[f64]; 2] = [&[0.5 + 0.375, 0.5 + 0.5], &[-0.5 - 0.375, -0.5 + 0.5, -0.5 - 1.0]];
        assert_close(&of_turns(settings, &group()), &expected);
        let root = 0.5f64.sqrt();
        // Twice ⅔, and −4/3: the deviation is √((4/9 + 4/9 + 16/9) / 2) = √(4/3).
        let deviation = (4.0f64 / 3.0).sqrt();
        let (near, far) = (2.0 / 3.0 / deviation, 4.0 / 3.0 / deviation);
        let settings = AdvantageConfig { scale: None, turn_weight: None, ..settings };
        assert_close(
            &of_turns(settings, &group()),
            &[&[2.0 * root, root + near], &[-2.0 * root, -root + near, -root - far]],
        );
        // A state that no other turn has teaches nothing: only the samples are compared.
        let alone = ScoredGroup { samples: vec![sample(1.0, &[(0.0, 0)]), sample(0.0, &[(5.0, 1)])], ..group() };
        assert_close(&of_turns(settings, &alone), &[&[-root], &[root]]);
    }

    #[test]
    fn turns_are_counted_through_the_trajectories_of_a_sample() {
        let split = |mut sample: ScoredSample| {
            let turns = std::mem::take(&mut sample.trajectories[0].turns);
            let of_turn = |turn: ScoredTurn| ScoredTrajectory {
                loss_mask: vec![true, true, false],
                turns: vec![ScoredTurn { tokens: 0..2, ..turn }],
                ..ScoredTrajectory::default()
            };
            ScoredSample { trajectories: turns.into_iter().map(of_turn).collect(), ..sample }
        };
        let whole = group();
        let splits = ScoredGroup { samples: whole.samples.iter().cloned().map(split).collect(), ..whole.clone() };
        for comparison in [TurnComparison::Index, TurnComparison::Return, TurnComparison::State] {
            let settings = config(Estimator::Grpo, comparison);
            assert_eq!(of_turns(settings, &splits), of_turns(settings, &whole), "{comparison:?}");
        }
    }

    #[test]
    fn penalties_of_tokens_lower_the_reward_of_their_turn() {
        let mut penalised = group();
        // The last token is somebody else's.
        penalised.samples[0].trajectories[0].penalties = vec![0.5, 0.25, 9.0, 0.0, 0.25, 9.0];
        let mut expected = group();
        expected.samples[0].trajectories[0].turns[0].reward -= 0.75;
        expected.samples[0].trajectories[0].turns[1].reward -= 0.25;
        for comparison in [TurnComparison::Index, TurnComparison::Return, TurnComparison::State] {
            let settings = config(Estimator::DrGrpo, comparison);
            assert_eq!(of_turns(settings, &penalised), of_turns(settings, &expected), "{comparison:?}");
        }
    }

    #[test]
    fn equal_turns_and_samples_without_turns_give_exact_zeros() {
        let equal = ScoredGroup { samples: vec![sample(0.1, &[(0.1, 0), (0.1, 1)]); 3], ..group() };
        let empty = ScoredGroup { samples: vec![sample(1.0, &[]), sample(0.0, &[(0.0, 0)])], ..group() };
        for estimator in [Estimator::Grpo, Estimator::DrGrpo, Estimator::Rloo] {
            for comparison in [TurnComparison::Index, TurnComparison::State] {
                assert_eq!(of_turns(config(estimator, comparison), &equal), vec![vec![0.0; 2]; 3], "{estimator:?}");
            }
            let settings = config(estimator, TurnComparison::Return);
            assert_eq!(of_turns(settings, &empty), [vec![], vec![0.0]], "{estimator:?}");
        }
    }
}
