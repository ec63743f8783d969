use super::*;
use crate::testing::{BARE, last_gradients, tiny, tiny_f64, tokens};
use crate::{Experience, OptimizerConfig, log_probs};

const SMOOTHED: DpoConfig = DpoConfig { beta: 0.5, label_smoothing: 0.2 };

fn pairs() -> Vec<ResponsePair> {
    [(3, 5, 2), (1, 4, 4), (6, 1, 3), (2, 2, 9)]
        .into_iter()
        .zip(0..)
        .map(|((prompt, chosen, rejected), pair)| {
            let row = |seed: u64, length: usize| SftRow {
                prompt: tokens(pair, prompt),
                response: tokens(seed + pair, length),
            };
            ResponsePair { chosen: row(100, chosen), rejected: row(200, rejected) }
        })
        .collect()
}

fn number(stats: &PairStats, name: &str) -> f64 {
    stats.statistics.get(name).unwrap()
}

/// The log-probability of a response, by the function that reinforcement learning uses.
fn logp(model: &Model, row: &SftRow) -> f64 {
    let SftRow { prompt, response } = row.clone();
    let experience = Experience { loss_mask: vec![true; response.len()], prompt, response, ..Default::default() };
    log_probs(model, &[experience], 1.0, 1000).unwrap()[0].iter().map(|value| f64::from(*value)).sum()
}

#[test]
fn the_loss_is_its_formula() {
    let loss = |chosen: f64, rejected: f64, config: DpoConfig| {
        config.loss(&Tensor::from_slice(&[chosen, rejected]).view([1, 2])).unwrap().double_value(&[0])
    };
    let plain = DpoConfig::default();
    // −log σ(x) = log(1 + e⁻ˣ) for x = 1 and x = −1.
    assert!((loss(1.5, 0.5, plain) - 0.313_261_687_518).abs() < 1e-10);
    let expected = 0.8 * 0.313_261_687_518 + 0.2 * 1.313_261_687_518;
    assert!((loss(1.5, 0.5, SMOOTHED) - expected).abs() < 1e-10);
    let rewards = SMOOTHED.rewards(&Tensor::from_slice(&[-1.0, -4.0]), &Tensor::from_slice(&[-2.0, -1.0])).unwrap();
    assert_eq!(Vec::<f64>::try_from(rewards).unwrap(), [0.5, -1.5]);
}

#[test]
fn the_numbers_follow_from_log_probabilities() {
    let (model, reference) = (tiny_f64(1), tiny_f64(2));
    let rewards: Vec<[f64; 2]> = pairs()
        .iter()
        .map(|pair| [&pair.chosen, &pair.rejected].map(|row| 0.5 * (logp(&model, row) - logp(&reference, row))))
        .collect();
    let mean = |value: fn(&[f64; 2]) -> f64| rewards.iter().map(value).sum::<f64>() / 4.0;
    let below = |x: f64| (1.0 + (-x).exp()).ln();
    let losses: f64 = rewards.iter().map(|[c, r]| 0.8 * below(c - r) + 0.2 * below(r - c)).sum();
    let expected = [
        ("loss", losses / 4.0),
        ("accuracy", mean(|[c, r]| f64::from(u8::from(c > r)))),
        ("margin", mean(|[c, r]| c - r)),
        ("rewards/chosen", mean(|[c, _]| *c)),
        ("rewards/rejected", mean(|[_, r]| *r)),
        ("logps/chosen", pairs().iter().map(|pair| logp(&model, &pair.chosen)).sum::<f64>() / 4.0),
        ("logps/rejected", pairs().iter().map(|pair| logp(&model, &pair.rejected)).sum::<f64>() / 4.0),
    ];
    let mut trainer = Trainer::new(&model, BARE, 1000).unwrap();
    let held_out = trainer.dpo_stats(&model, &reference, &pairs(), &SMOOTHED).unwrap();
    let step = trainer.dpo_step(&model, &reference, &pairs(), &SMOOTHED, 0.0).unwrap();
    for (name, expected) in expected {
        for found in [&held_out, &step] {
            assert!((number(found, name) - expected).abs() < 1e-5, "{name}: {} {expected}", number(found, name));
        }
    }
}

#[test]
fn the_split_into_micro_batches_changes_nothing() {
    let (model, reference) = (tiny_f64(1), tiny_f64(2));
    let gradients = |max_tokens: usize| {
        let mut trainer = Trainer::new(&model, BARE, max_tokens).unwrap();
        let stats = trainer.dpo_step(&model, &reference, &pairs(), &SMOOTHED, 0.0).unwrap();
        (stats, last_gradients(&model, &trainer))
    };
    let (whole, expected) = gradients(1000);
    assert!(expected.iter().all(|(_, gradient)| gradient.iter().any(|value| *value != 0.0)));
    for max_tokens in [1, 12, 20] {
        let (split, found) = gradients(max_tokens);
        for (name, value) in whole.statistics.iter() {
            assert!((number(&split, name) - value).abs() < 1e-12, "{max_tokens}, {name}");
        }
        for ((name, a), (_, b)) in expected.iter().zip(&found) {
            assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12), "{max_tokens}, {name}");
        }
    }
}

#[test]
fn it_starts_at_the_reference_and_learns_to_prefer_what_is_chosen() {
    let (model, reference) = (tiny(1), tiny(1));
    let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 20).unwrap();
    let config = DpoConfig::default();
    let first = trainer.dpo_step(&model, &reference, &pairs(), &config, 1e-2).unwrap();
    assert!((number(&first, "loss") - 2f64.ln()).abs() < 1e-6 && number(&first, "margin").abs() < 1e-5, "{first:?}");
    let before = trainer.dpo_stats(&reference, &reference, &pairs(), &config).unwrap();
    assert_eq!((number(&before, "accuracy"), number(&before, "margin")), (0.5, 0.0));
    let last = (0..40).map(|_| trainer.dpo_step(&model, &reference, &pairs(), &config, 1e-2).unwrap()).last().unwrap();
    assert!(number(&last, "accuracy") == 1.0 && number(&last, "loss") < 0.4, "{last:?}");
}

#[test]
fn what_cannot_be_learned_is_named() {
    let (model, reference) = (tiny(1), tiny(1));
    let mut trainer = Trainer::new(&model, BARE, 20).unwrap();
    let mut rows = pairs();
    rows[2].rejected.response.clear();
    let error = trainer.dpo_step(&model, &reference, &rows, &DpoConfig::default(), 0.1).unwrap_err().to_string();
    assert_eq!(error, "row 2 of the mini-batch has a response without tokens");
    let error =
        |beta: f64, label_smoothing: f64| DpoConfig { beta, label_smoothing }.validate().unwrap_err().to_string();
    assert_eq!(error(0.0, 0.0), "beta must be a number above 0, not 0");
    assert_eq!(error(0.1, 0.5), "label_smoothing must be at least 0 and below 0.5, not 0.5");
}
