//! Each estimator on numbers that were worked out by hand.

use super::*;

fn config(estimator: Estimator) -> AdvantageConfig {
    AdvantageConfig { estimator, ..AdvantageConfig::default() }
}

/// The advantage of each sample of the first of two groups; the second has the rewards 5 and 7.
fn estimate(config: AdvantageConfig, rewards: &[f64]) -> Vec<f64> {
    let groups = [ScoredGroup::of_rewards(rewards.iter().copied()), ScoredGroup::of_rewards([5.0, 7.0])];
    let mut running = RewardStatistics { count: 1.0, mean: 0.0, squares: 0.0 };
    running.add(&groups);
    let mut found = config.estimate(&groups, &running);
    assert_eq!((found.len(), found[1].len()), (2, 2));
    found.remove(0).iter().map(|advantage| advantage.mean(&[])).collect()
}

/// A sample with this reward whose trajectories have these loss masks.
fn sample(reward: f64, masks: &[&[bool]]) -> ScoredSample {
    let trajectory = |mask: &&[bool]| ScoredTrajectory { loss_mask: mask.to_vec(), ..ScoredTrajectory::default() };
    ScoredSample { reward, parts: Vec::new(), trajectories: masks.iter().map(trajectory).collect() }
}

fn tokens(advantage: &Advantage) -> Vec<f64> {
    let Advantage::Tokens(tokens) = advantage else { panic!("{advantage:?}") };
    tokens.concat()
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{found:?} is not {expected:?}");
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-6, "{found:?} is not {expected:?}");
    }
}

const ONE: &[bool] = &[true];
const TWO: &[bool] = &[true, true];

#[test]
fn grpo_divides_by_the_deviation() {
    // Mean 0.25; deviation sqrt((3 · 0.0625 + 0.5625) / 3) = 0.5.
    let rewards = [0.0, 1.0, 0.0, 0.0];
    let deviation = 0.5 + 1e-6;
    assert_close(
        &estimate(config(Estimator::Grpo), &rewards),
        &[-0.25 / deviation, 0.75 / deviation, -0.25 / deviation, -0.25 / deviation],
    );
    let scaled = |scale| estimate(AdvantageConfig { scale: Some(scale), ..config(Estimator::Grpo) }, &rewards)[1];
    // All six rewards have the mean 13 / 6 and the squares 75 − 169 / 6 around it; a seventh is 0.
    let batch = ((75.0 - 169.0 / 6.0) / 5.0f64).sqrt();
    let running = ((75.0 - 169.0 / 7.0) / 6.0f64).sqrt();
    assert_close(
        &[scaled(Scale::Batch), scaled(Scale::Running), scaled(Scale::None)],
        &[0.75 / batch, 0.75 / running, 0.75],
    );
}

#[test]
fn estimators_that_only_shift_the_rewards_of_a_group() {
    let rewards = [0.0, 1.0, 0.0, 0.0];
    assert_close(&estimate(config(Estimator::DrGrpo), &rewards), &[-0.25, 0.75, -0.25, -0.25]);
    // The samples other than the second have the mean 0, and the samples other than the first the mean ⅓.
    let third = 1.0 / 3.0;
    assert_close(&estimate(config(Estimator::Rloo), &rewards), &[-third, 1.0, -third, -third]);
    // Three of the six rewards are not 0.
    assert_close(&estimate(config(Estimator::Gpg), &rewards), &[-0.5, 1.5, -0.5, -0.5]);
    let best = [0.5, 3.0, 1.0];
    let deviation = (3.5f64 / 2.0).sqrt() + 1e-6;
    assert_close(&estimate(config(Estimator::GrpoPassk), &best), &[0.0, 2.0 / deviation, 0.0]);
    assert_close(&estimate(config(Estimator::GrpoPassk), &[1.0, 1.0, 0.0]), &[0.0; 3]);
}

#[test]
fn opo_weighs_the_baseline_by_length() {
    // (1 · 1 + 3 · 0) / 4
    let group = ScoredGroup { samples: vec![sample(1.0, &[ONE]), sample(0.0, &[TWO, ONE])], greedy_reward: None };
    let found = config(Estimator::Opo).estimate(&[group], &RewardStatistics::default());
    assert_eq!(found[0], [Advantage::Sample(0.75), Advantage::Sample(-0.25)]);
}

#[test]
fn reinforce_plus_plus_normalises_the_tokens_of_the_batch() {
    // Returns ½ and 1, then 3: mean 1.5, variance (1 + 0.25 + 2.25) / 2 = 1.75.
    let groups = [
        ScoredGroup { samples: vec![sample(1.0, &[TWO])], greedy_reward: None },
        ScoredGroup { samples: vec![sample(3.0, &[&[true, false]])], greedy_reward: None },
    ];
    let deviation = 1.75f64.sqrt();
    let settings = AdvantageConfig { gamma: Some(0.5), ..config(Estimator::ReinforcePlusPlus) };
    let found = settings.estimate(&groups, &RewardStatistics::default());
    assert_close(&tokens(&found[0][0]), &[-1.0 / deviation, -0.5 / deviation]);
    assert_close(&tokens(&found[1][0]), &[1.5 / deviation, 0.0]);
    assert!((found[1][0].mean(&groups[1].samples[0].trajectories) - 1.5 / deviation).abs() < 1e-6);

    // −1 and 1 of the group, over one and two tokens: mean ⅓, variance 4 / 3.
    let groups = [ScoredGroup { samples: vec![sample(0.0, &[ONE]), sample(2.0, &[TWO])], greedy_reward: None }];
    let found = config(Estimator::ReinforcePlusPlusBaseline).estimate(&groups, &RewardStatistics::default());
    let deviation = (4.0f64 / 3.0).sqrt();
    assert_close(&tokens(&found[0][0]), &[-4.0 / 3.0 / deviation]);
    assert_close(&tokens(&found[0][1]), &[2.0 / 3.0 / deviation; 2]);
}

#[test]
fn gdpo_normalises_each_reward_by_itself() {
    let with = |first: f64, second: f64| ScoredSample {
        parts: vec![RewardPart { weight: 1.0, score: first }, RewardPart { weight: 0.5, score: second }],
        ..sample(first + 0.5 * second, &[ONE])
    };
    // A reward of 100 or 0 counts as much as one of 1 or 0: ±√½ and ½ · ±√½.
    let groups = [ScoredGroup { samples: vec![with(100.0, 0.0), with(0.0, 1.0)], greedy_reward: None }];
    let found = config(Estimator::Gdpo).estimate(&groups, &RewardStatistics::default());
    // ±½ · √½, and then the deviation of two opposite numbers.
    let root = 0.5f64.sqrt();
    assert_close(&[tokens(&found[0][0]), tokens(&found[0][1])].concat(), &[root, -root]);
}

#[test]
fn remax_compares_with_the_greedy_response() {
    let group = ScoredGroup { samples: vec![sample(1.0, &[&[true, false, true]])], greedy_reward: Some(0.25) };
    let found = config(Estimator::Remax).estimate(std::slice::from_ref(&group), &RewardStatistics::default());
    assert_eq!(tokens(&found[0][0]), [0.75, 0.0, 0.75]);
    let unscored = ScoredGroup { greedy_reward: None, ..group };
    let found = config(Estimator::Remax).estimate(&[unscored], &RewardStatistics::default());
    assert_eq!(found[0], [Advantage::Sample(0.0)]);
}

#[test]
fn each_token_has_its_own_baseline() {
    let with = |reward: f64, mask: &[bool], norms: &[f64]| {
        let mut sample = sample(reward, &[mask]);
        sample.trajectories[0].gradient_norms = norms.to_vec();
        sample
    };
    // Weights 1, 2 and 3; and 3, then nothing, then 6.
    let samples =
        vec![with(1.0, &[true, true, true], &[1.0, 1.0, 1.0]), with(0.0, &[true, false, true], &[3.0, 9.0, 3.0])];
    let group = [ScoredGroup { samples, greedy_reward: None }];
    let of = |estimator| {
        let found = config(estimator).estimate(&group, &RewardStatistics::default());
        [tokens(&found[0][0]), tokens(&found[0][1])].concat()
    };
    // Baselines ¼, 1 and ⅓; the first is longer than the second, and beyond its two tokens has none.
    assert_close(&of(Estimator::OptimalTokenBaseline), &[0.75, 0.0, 1.0, -0.25, 0.0, -1.0 / 3.0]);
    // The second token of the second is its third place: baselines ¼ and 2 / 8.
    assert_close(&of(Estimator::TirOptimalTokenBaseline), &[0.75, 0.75, 1.0, -0.25, 0.0, -0.25]);
}

#[test]
fn penalties_of_tokens_lower_the_reward() {
    let mut penalised = sample(1.0, &[TWO]);
    penalised.trajectories[0].penalties = vec![0.25, 0.5];
    let group = [ScoredGroup { samples: vec![penalised, sample(0.0, &[TWO])], greedy_reward: Some(0.0) }];
    let of = |estimator| config(estimator).estimate(&group, &RewardStatistics::default());
    assert_eq!(of(Estimator::DrGrpo)[0], [Advantage::Sample(0.125), Advantage::Sample(-0.125)]);
    assert_eq!(tokens(&of(Estimator::Remax)[0][0]), [0.25, 0.5]);
}

#[test]
fn the_order_of_groups_and_samples_does_not_matter() {
    let with = |reward: f64, mask: &[bool]| {
        let mut sample = sample(reward, &[mask]);
        sample.parts =
            vec![RewardPart { weight: 0.5, score: reward }, RewardPart { weight: 1.0, score: mask.len() as f64 }];
        sample.trajectories[0].gradient_norms = (0..mask.len()).map(|at| 0.5 + at as f64).collect();
        sample.trajectories[0].penalties = (0..mask.len()).map(|at| 0.1 * at as f64).collect();
        sample
    };
    let group = |samples| ScoredGroup { samples, greedy_reward: Some(0.5) };
    let groups = [
        group(vec![with(1.0, ONE), with(0.0, &[true, false, true]), with(0.25, TWO)]),
        group(vec![with(3.0, TWO), with(-1.0, ONE)]),
    ];
    let reversed: Vec<ScoredGroup> =
        groups.iter().rev().map(|one| group(one.samples.iter().rev().cloned().collect())).collect();
    for estimator in Estimator::ALL.iter().copied() {
        let flat = |groups: &[ScoredGroup]| -> Vec<f64> {
            let found = config(estimator).estimate(groups, &RewardStatistics::default());
            let each = found.iter().zip(groups).flat_map(|(found, group)| found.iter().zip(&group.samples));
            each.map(|(advantage, sample)| advantage.mean(&sample.trajectories)).collect()
        };
        let mut back = flat(&reversed);
        back.reverse();
        assert_close(&back, &flat(&groups));
        assert!(back.iter().any(|advantage| *advantage != 0.0), "{estimator:?}");
    }
}

#[test]
fn equal_rewards_and_a_group_of_one_give_exact_zeros() {
    // The mean of three times 0.1 is not 0.1 in floating point.
    for rewards in [&[0.1; 3][..], &[1.0], &[]] {
        for estimator in
            [Estimator::Grpo, Estimator::DrGrpo, Estimator::GrpoPassk, Estimator::Rloo, Estimator::Opo, Estimator::Gpg]
        {
            assert_eq!(estimate(config(estimator), rewards), vec![0.0; rewards.len()], "{estimator:?}");
        }
    }
}

#[test]
fn a_batch_of_one_token_is_not_divided_by_zero() {
    for estimator in [Estimator::ReinforcePlusPlus, Estimator::ReinforcePlusPlusBaseline, Estimator::Gdpo] {
        let group = ScoredGroup { samples: vec![sample(3.0, &[ONE])], greedy_reward: None };
        let found = config(estimator).estimate(&[group], &RewardStatistics::default());
        assert_eq!(tokens(&found[0][0]), [0.0], "{estimator:?}");
    }
}

#[test]
fn an_advantage_is_one_of_each_token() {
    let sample = Advantage::Sample(0.5);
    assert_eq!((sample.of_trajectory(1, 3), sample.mean(&[])), (vec![0.5; 3], 0.5));
    let tokens = Advantage::Tokens(vec![vec![1.0, 2.0], vec![6.0]]);
    assert_eq!((tokens.of_trajectory(0, 2), tokens.of_trajectory(1, 1)), (vec![1.0, 2.0], vec![6.0]));
    let trajectory = |mask: &[bool]| ScoredTrajectory { loss_mask: mask.to_vec(), ..Default::default() };
    let trajectories = [trajectory(&[false, true]), trajectory(ONE)];
    assert_eq!((tokens.mean(&trajectories), tokens.means(&trajectories)), (4.0, vec![2.0, 6.0]));
}

#[test]
fn names_are_those_of_the_field_and_settings_belong_to_estimators() {
    let read = |name: &str| -> Result<Estimator, toml::de::Error> { Deserialize::deserialize(toml::Value::from(name)) };
    assert_eq!(read("grpo").unwrap(), Estimator::default());
    assert_eq!(read("reinforce_plus_plus_baseline").unwrap(), Estimator::ReinforcePlusPlusBaseline);
    assert_eq!(read("tir_optimal_token_baseline").unwrap(), Estimator::TirOptimalTokenBaseline);
    assert!(read("gpro").is_err());
    let error = |config: AdvantageConfig| config.validate().unwrap_err().to_string();
    let scaled = |estimator, scale| AdvantageConfig { scale: Some(scale), ..config(estimator) };
    assert!(scaled(Estimator::Grpo, Scale::Running).validate().is_ok());
    assert_eq!(
        error(scaled(Estimator::Rloo, Scale::Batch)),
        "scale must be absent: it is for grpo and grpo_passk, not batch"
    );
    assert_eq!(
        error(scaled(Estimator::GrpoPassk, Scale::Batch)),
        "scale must be group or none for grpo_passk, not batch"
    );
    let discounted = |estimator, gamma| AdvantageConfig { gamma: Some(gamma), ..config(estimator) };
    assert_eq!(
        error(discounted(Estimator::Grpo, 0.5)),
        "gamma must be absent: it is for reinforce_plus_plus, gae, and turns by return or state, not 0.5"
    );
    let traced = |estimator, lam| AdvantageConfig { lam: Some(lam), ..config(estimator) };
    assert!(traced(Estimator::Gae, 0.0).validate().is_ok());
    assert_eq!(error(traced(Estimator::Gae, -0.5)), "lam must be from 0 to 1, not -0.5");
    assert_eq!(error(traced(Estimator::Remax, 0.5)), "lam must be absent: it is for gae, not 0.5");
    assert_eq!(error(discounted(Estimator::ReinforcePlusPlus, 1.5)), "gamma must be from 0 to 1, not 1.5");
}

#[test]
fn a_comparison_of_turns_belongs_to_estimators_that_compare_samples() {
    let by = |estimator, turns| AdvantageConfig { turns: Some(turns), ..config(estimator) };
    let error = |config: AdvantageConfig| config.validate().map_or_else(|error| error.to_string(), |()| String::new());
    for comparison in [TurnComparison::Index, TurnComparison::Return, TurnComparison::State] {
        for estimator in [Estimator::Grpo, Estimator::DrGrpo, Estimator::Rloo] {
            assert_eq!(error(by(estimator, comparison)), "", "{estimator:?}, {comparison:?}");
        }
    }
    let state = by(Estimator::Grpo, TurnComparison::State);
    assert_eq!(error(AdvantageConfig { gamma: Some(0.95), turn_weight: Some(2.0), ..state }), "");
    for (wrong, says) in [
        (
            by(Estimator::Gae, TurnComparison::State),
            "turns must be absent: it is for grpo, dr_grpo and rloo, not state",
        ),
        (AdvantageConfig { scale: Some(Scale::Batch), ..state }, "scale must be group or none with turns, not batch"),
        (AdvantageConfig { gamma: Some(2.0), ..state }, "gamma must be from 0 to 1, not 2"),
        (
            AdvantageConfig { gamma: Some(0.5), ..by(Estimator::Grpo, TurnComparison::Index) },
            "gamma must be absent: it is for reinforce_plus_plus, gae, and turns by return or state, not 0.5",
        ),
        (AdvantageConfig { turn_weight: Some(0.0), ..state }, "turn_weight must be a number above 0, not 0"),
        (
            AdvantageConfig { turn_weight: Some(0.5), ..by(Estimator::Grpo, TurnComparison::Return) },
            "turn_weight must be absent: it is for turns by index or state, not 0.5",
        ),
        (
            AdvantageConfig { turn_weight: Some(0.5), ..config(Estimator::Grpo) },
            "turn_weight must be absent: it is for turns by index or state, not 0.5",
        ),
    ] {
        assert_eq!(error(wrong), says);
    }
}
