//! Cutting, packing and checkpointing a mini-batch do not change its gradient.

use super::*;
use crate::testing::tokens;
use gavel_policy::LoraConfig;
use gavel_torch::context::is_deterministic;

#[test]
fn the_split_into_micro_batches_changes_nothing() {
    let (model, reference) = (tiny_f64(1), tiny_f64(2));
    let rows = off_policy(experiences(&model, 0.7));
    for aggregation in AGGREGATIONS {
        let (whole, whole_gradients) = gradients(&model, &reference, &rows, &config(aggregation), 10_000);
        for max_tokens in [1, 12, 20] {
            let (split, split_gradients) = gradients(&model, &reference, &rows, &config(aggregation), max_tokens);
            for name in ["loss", "grad_norm", "entropy"] {
                let difference = number(&whole, name) - number(&split, name);
                assert!(difference.abs() < 1e-12, "{name}: {whole:?} is not {split:?}");
            }
            assert_eq!(whole.tokens, split.tokens);
            assert_eq!(number(&whole, "clip_fraction"), number(&split, "clip_fraction"));
            for ((name, a), (_, b)) in whole_gradients.iter().zip(&split_gradients) {
                assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12), "{aggregation:?}, {name}");
            }
        }
    }
}

/// Three groups of rows with one prompt each, and a row by itself.
fn grouped(model: &Model) -> Vec<Experience> {
    let mut rows: Vec<Experience> = (0..13)
        .map(|row| {
            let (group, length) = (row as u64 % 4, [1, 5, 2, 9, 4][row % 5]);
            Experience {
                sample: SampleId { group: group as usize, index: row, trajectory: 0 },
                prompt: tokens(300 + group, [4, 7, 1, 3][group as usize]),
                response: tokens(400 + row as u64, length),
                loss_mask: (0..length).map(|at| (at + row) % 4 != 3).collect(),
                logprobs: vec![0.0; length],
                advantages: vec![row as f32 / 4.0 - 1.5; length],
                ..Default::default()
            }
        })
        .collect();
    rows.push(Experience {
        sample: SampleId { group: 4, index: 0, trajectory: 0 },
        prompt: tokens(1, 2),
        response: tokens(2, 3),
        loss_mask: vec![true; 3],
        logprobs: vec![0.0; 3],
        advantages: vec![-1.5; 3],
        ..Default::default()
    });
    let logprobs = crate::log_probs(model, &rows, 0.7, 1).unwrap();
    rows.iter_mut().zip(logprobs).for_each(|(row, logprobs)| row.logprobs = logprobs);
    off_policy(rows)
}

/// Each loss, with settings under which its clip or mask applies to some of the rows of a test.
fn every_loss() -> Vec<(String, LossConfig)> {
    let keys = |name: &str| match name {
        "clip_cov" => "clip_cov_ratio = 0.2\nclip_cov_lb = 0.05\nclip_cov_ub = 100.0",
        "kl_cov" => "kl_cov_ratio = 0.2",
        "gspo" | "gspo_token" => "clip_low = 0.1\nclip_high = 0.1",
        "icepop" => "mask_low = 0.9\nmask_high = 1.5",
        "dppo_tv" | "dppo_kl" => "clip_low = 0.005\nclip_high = 0.005",
        "vanilla" => "clip_ratio_c = 1.3",
        _ => "",
    };
    let config = |(name, _): (String, PolicyLoss)| {
        let text = format!("policy = '{name}'\nentropy_coefficient = 0.05\n{}\nkl.coefficient = 0.1", keys(&name));
        (name, toml::from_str(&text).unwrap())
    };
    PolicyLoss::all().into_iter().map(config).collect()
}

#[test]
fn no_loss_depends_on_the_split_the_order_or_the_sharing_of_prompts() {
    let (model, reference) = (tiny_f64(1), tiny_f64(2));
    let mut rows = grouped(&model);
    // Advantages of tokens.
    for (row, experience) in rows.iter_mut().enumerate() {
        let own = |(at, advantage): (usize, &mut f32)| *advantage += (0.1 * (5 * row + at) as f32).sin();
        experience.advantages.iter_mut().enumerate().for_each(own);
    }
    let reversed: Vec<Experience> = rows.iter().rev().cloned().collect();
    for (name, config) in every_loss() {
        // A row alone, without a shared prompt.
        let (alone, expected) = gradients(&model, &reference, &rows, &config, 1);
        let norm = number(&alone, "grad_norm");
        assert!(norm > 1e-3, "{name}: {norm}");
        for statistic in ["clip_fraction", "clip_fraction_dual", "mask_fraction", "covariance_fraction"] {
            let share = alone.statistics.get(statistic);
            assert!(share.is_none_or(|share| share > 0.0 && share < 1.0), "{name}, {statistic}: {share:?}");
        }
        for (order, rows) in [("given", &rows), ("reversed", &reversed)] {
            for max_tokens in [1, 30, 60, 10_000] {
                let (stats, found) = gradients(&model, &reference, rows, &config, max_tokens);
                for (known, value) in alone.statistics.iter() {
                    assert!((number(&stats, known) - value).abs() < 1e-10 * (1.0 + value.abs()), "{name}, {known}");
                }
                for ((parameter, a), (_, b)) in expected.iter().zip(&found) {
                    let is_same = a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-11 * norm.max(1.0));
                    assert!(is_same, "{name}, {order}, {max_tokens}: {parameter}");
                }
            }
        }
    }
}

#[test]
fn a_prompt_that_is_computed_once_has_the_gradients_of_one_that_is_not() {
    let models = [tiny_f64, |seed| {
        let mut config = tiny(seed).config().clone();
        // The second layer sees the last five tokens.
        config.windows = vec![None, Some(5)];
        Model::random(config, seed, tch::Device::Cpu).unwrap().to_kind(tch::Kind::Double).unwrap()
    }];
    for model in models {
        let (model, reference) = (model(1), model(2));
        let rows = grouped(&model);
        let config = config(Aggregation::TokenMean);
        // A row alone is the plain computation.
        let (alone, plain) = gradients(&model, &reference, &rows, &config, 1);
        for max_tokens in [30, 60, 10_000] {
            let (stats, shared) = gradients(&model, &reference, &rows, &config, max_tokens);
            for name in ["loss", "entropy"] {
                assert!((number(&stats, name) - number(&alone, name)).abs() < 1e-12, "{max_tokens}, {name}");
            }
            for ((name, a), (_, b)) in plain.iter().zip(&shared) {
                assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12), "{max_tokens}, {name}");
            }
        }
    }
}

/// A model with adapters whose product is not 0.
fn adapted(model: Model) -> Model {
    let model = model.adapt(&LoraConfig { rank: 2, ..Default::default() }, Path::new("base"), 3).unwrap();
    let _guard = tch::no_grad_guard();
    for (name, mut tensor) in model.parameters() {
        if name.ends_with("lora_B.weight") {
            let ramp = Tensor::arange(tensor.numel() as i64, (tensor.kind(), tensor.device()));
            tensor.copy_(&(ramp.sin() * 0.1).view_as(&tensor));
        }
    }
    model
}

#[test]
fn gradient_checkpointing_changes_no_gradient() {
    let bfloat16 = |seed| tiny(seed).to_kind(tch::Kind::BFloat16).unwrap();
    for (model, limit) in [
        (tiny_f64(1), 1e-13),
        (adapted(tiny_f64(1)), 1e-13),
        (tiny(1), 1e-7),
        (adapted(tiny(1)), 1e-7),
        (bfloat16(1), 0.0),
    ] {
        let rows = grouped(&model);
        let gradients = |checkpointing: bool| {
            let mut trainer = Trainer::new(&model, BARE, 40).unwrap().gradient_checkpointing(checkpointing);
            let stats = trainer.update(policy_update(&model, None, &rows, &LossConfig::default(), 0.7, 0.0)).unwrap();
            let named = model.parameters().into_iter().map(|(name, _)| exp_avg(&trainer.optimizer, &name));
            (stats, named.collect::<Vec<_>>())
        };
        let (kept, again) = (gradients(false), gradients(true));
        assert!(number(&kept.0, "grad_norm") > 0.0);
        assert!((number(&kept.0, "loss") - number(&again.0, "loss")).abs() < 1e-14);
        for (a, b) in kept.1.iter().flatten().zip(again.1.iter().flatten()) {
            assert!((a - b).abs() <= limit, "{a} is not {b}");
        }
    }
}

#[test]
fn in_16_bits_a_shared_prompt_changes_only_rounding() {
    let model = tiny(1).to_kind(tch::Kind::BFloat16).unwrap();
    let rows = grouped(&model);
    // Ratios of 1: rounding must not decide what is clipped.
    let config = LossConfig { old_logprobs: Some(OldLogProbs::Current), ..Default::default() };
    let flat = |max_tokens: usize| -> Vec<f64> {
        gradients(&model, &model, &rows, &config, max_tokens).1.into_iter().flat_map(|(_, values)| values).collect()
    };
    let (alone, shared) = (flat(1), flat(10_000));
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let distance = norm(&mut alone.iter().zip(&shared).map(|(a, b)| a - b)) / norm(&mut alone.iter().copied());
    assert!(distance < 0.03, "{distance}");
}

#[test]
fn neither_padding_nor_neighbours_change_a_logprob() {
    let model = tiny(1);
    let rows = experiences(&model, 0.7);
    for (row, experience) in rows.iter().enumerate() {
        let alone = crate::log_probs(&model, std::slice::from_ref(experience), 0.7, 1).unwrap().remove(0);
        let plain = plain_logprobs(&model, experience, 0.7);
        for (at, logprob) in alone.iter().enumerate() {
            if experience.loss_mask[at] {
                assert!((logprob - experience.logprobs[at]).abs() < 1e-5, "row {row}, token {at}");
                assert!((f64::from(*logprob) - plain[at]).abs() < 1e-5, "row {row}, token {at}");
            } else {
                assert_eq!(*logprob, 0.0);
            }
        }
    }
}

#[test]
fn a_deterministic_update_is_the_same_and_ends_with_it() {
    let after = |on: bool| {
        let model = tiny_f64(1);
        let rows = experiences(&model, 0.7);
        let mut trainer = Trainer::new(&model, BARE, 20).unwrap().deterministic(on);
        let stats = trainer.update(policy_update(&model, None, &rows, &LossConfig::default(), 0.7, 0.1)).unwrap();
        let weights = model.parameters().into_iter().map(|(_, weight)| Vec::<f64>::try_from(weight.flatten(0, -1)));
        (stats, weights.collect::<std::result::Result<Vec<_>, _>>().unwrap())
    };
    assert_eq!(after(true), after(false));

    let model = tiny_f64(1);
    let rows = experiences(&model, 0.7);
    let sequences: Vec<_> = rows.iter().map(Experience::sequence).collect();
    let batches = micro_batches(&sequences, 10_000, &model).unwrap();
    let mut trainer = Trainer::new(&model, BARE, 10_000).unwrap().deterministic(true);
    let mut seen = false;
    let fails = trainer.accumulate(&model, None, &batches, rows.len(), |_, _| {
        seen = is_deterministic();
        Err(TrainError::NoReference)
    });
    assert!(fails.is_err() && seen && !is_deterministic());
}
