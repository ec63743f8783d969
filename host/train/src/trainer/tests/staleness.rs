//! The default of off-policy runs, on data that is four versions old.

use super::*;
use crate::OffPolicyConfig;
use crate::testing::VOCAB;
use gavel_data::seed::uniform;
use std::collections::VecDeque;

const ROWS: usize = 32;
const LENGTH: usize = 6;

/// Responses of `model`, each rewarded with the share of its tokens that are 7.
fn draw(model: &Model, seed: u64) -> (Vec<Experience>, f64) {
    let _guard = tch::no_grad_guard();
    let mut rows = vec![vec![1u32, 2, 3]; ROWS];
    let mut logprobs = vec![Vec::new(); ROWS];
    for at in 0..LENGTH {
        let ids: Vec<i64> = rows.iter().flatten().map(|&id| i64::from(id)).collect();
        let hidden = model.hidden(&Tensor::from_slice(&ids).view([ROWS as i64, (3 + at) as i64])).unwrap();
        let logits = model.logits(&hidden.select(1, (2 + at) as i64)).unwrap();
        let found = values(&logits.log_softmax(-1, tch::Kind::Float));
        for (row, found) in found.chunks(VOCAB as usize).enumerate() {
            let mut left = uniform(seed, (row * LENGTH + at) as u64);
            let beyond = |logprob: &f64| {
                left -= logprob.exp();
                left < 0.0
            };
            let token = found.iter().position(beyond).unwrap_or(0);
            rows[row].push(token as u32);
            logprobs[row].push(found[token] as f32);
        }
    }
    let reward = |row: &Vec<u32>| row[3..].iter().filter(|&&id| id == 7).count() as f64 / LENGTH as f64;
    let rewards: Vec<f64> = rows.iter().map(reward).collect();
    let mean = rewards.iter().sum::<f64>() / ROWS as f64;
    let group = ScoredGroup::of_rewards(rewards);
    let advantages = &AdvantageConfig::default().estimate(&[group], &RewardStatistics::default())[0];
    let experience = |(index, (row, logprobs)): (usize, (Vec<u32>, Vec<f32>))| Experience {
        sample: SampleId { group: 0, index, trajectory: 0 },
        prompt: row[..3].to_vec(),
        response: row[3..].to_vec(),
        loss_mask: vec![true; LENGTH],
        logprobs,
        advantages: advantages[index].of_trajectory(0, LENGTH),
        ..Default::default()
    };
    (rows.into_iter().zip(logprobs).enumerate().map(experience).collect(), mean)
}

/// The mean reward over the last steps of a run whose data is this many versions old.
fn learn(staleness: usize, loss: LossConfig) -> f64 {
    let model = tiny(1);
    let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 1000).unwrap();
    let (mut queue, mut rewards) = (VecDeque::new(), Vec::new());
    for step in 0..120 {
        let (rows, reward) = draw(&model, 1 << 32 | step);
        rewards.push(reward);
        queue.push_back(rows);
        if queue.len() > staleness {
            let mut rows = queue.pop_front().unwrap();
            if loss.needs_proximal() {
                trainer.set_proximal(&model, &mut rows, 1.0).unwrap();
            }
            // Two mini-batches.
            for half in rows.chunks(ROWS / 2) {
                trainer.update(policy_update(&model, None, half, &loss, 1.0, 3e-3)).unwrap();
            }
        }
    }
    rewards[100..].iter().sum::<f64>() / 20.0
}

#[test]
fn the_default_learns_from_data_that_is_four_versions_old() {
    let decoupled = LossConfig {
        old_logprobs: Some(OldLogProbs::Proximal),
        off_policy: Some(OffPolicyConfig::of_run(OldLogProbs::Proximal)),
        ..Default::default()
    };
    let (on_policy, found) = (learn(0, LossConfig::default()), learn(4, decoupled));
    assert!(on_policy > 0.99 && found > on_policy - 0.01, "{found} is not {on_policy}");
    // A clip around the recorded log-probabilities cuts off most of the signal.
    let clipped = learn(4, LossConfig::default());
    assert!(clipped < found - 0.05, "{clipped} is not below {found}");
}
