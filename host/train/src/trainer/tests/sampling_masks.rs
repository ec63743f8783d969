//! Updates under the distributions that tokens were drawn from, over a vocabulary that is small enough to enumerate.

use super::*;
use crate::Drawing;
use crate::testing::{VOCAB, tokens};
use gavel_data::seed::uniform;
use gavel_data::{SamplingMask, SamplingMasks};
use gavel_policy::{Engine, EngineConfig, Request, Sampling};
use std::sync::Arc;

const PROMPT: [u32; 3] = [1, 2, 3];

/// For each row of tokens, all of one length, the probability of each token to be drawn after it.
fn distributions(model: &Model, rows: &[Vec<u32>], sampling: &Sampling) -> Vec<Vec<f64>> {
    let _guard = tch::no_grad_guard();
    let (count, length) = (rows.len() as i64, rows[0].len() as i64);
    let ids: Vec<i64> = rows.iter().flatten().map(|&id| i64::from(id)).collect();
    let hidden = model.hidden(&Tensor::from_slice(&ids).view([count, length])).unwrap();
    let logits = values(&model.logits(&hidden.select(1, length - 1)).unwrap());
    let of_rows = logits.chunks(VOCAB as usize).zip(rows);
    of_rows.map(|(logits, before)| distribution(logits.to_vec(), before, sampling)).collect()
}

/// The probability of each token to be drawn after `before`, in plain loops: bias, penalty, temperature, min-p, top-k,
/// top-p.
fn distribution(mut logits: Vec<f64>, before: &[u32], sampling: &Sampling) -> Vec<f64> {
    for (token, bias) in &sampling.logit_bias {
        logits[*token as usize] += f64::from(*bias);
    }
    let penalty = f64::from(sampling.repetition_penalty);
    for (token, logit) in logits.iter_mut().enumerate() {
        if before.contains(&(token as u32)) {
            *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty };
        }
    }
    let exponentials: Vec<f64> = logits.iter().map(|logit| (logit / f64::from(sampling.temperature)).exp()).collect();
    let mut order: Vec<usize> = (0..exponentials.len()).collect();
    order.sort_by(|one, other| exponentials[*other].total_cmp(&exponentials[*one]));
    let least = f64::from(sampling.min_p) * exponentials[order[0]];
    order.retain(|token| exponentials[*token] >= least);
    order.truncate(sampling.top_k.unwrap_or(order.len()));
    let enough = f64::from(sampling.top_p) * order.iter().map(|token| exponentials[*token]).sum::<f64>();
    let mut sum = 0.0;
    order.retain(|token| {
        let stays = sum < enough;
        sum += exponentials[*token];
        stays
    });
    let total: f64 = order.iter().map(|token| exponentials[*token]).sum();
    let share = |token: usize| if order.contains(&token) { exponentials[token] / total } else { 0.0 };
    (0..exponentials.len()).map(share).collect()
}

fn mask(probabilities: &[f64]) -> SamplingMask {
    let kept: Vec<u32> = (0..VOCAB).filter(|token| probabilities[*token as usize] > 0.0).collect();
    SamplingMask::of(&kept, VOCAB as usize)
}

/// Every response of two tokens that can be drawn, with its probability.
fn all_responses(model: &Model, sampling: &Sampling) -> Vec<(f64, Experience)> {
    let drawing = Arc::new(Drawing::new(&sampling.logit_bias, sampling.repetition_penalty));
    let mut all = Vec::new();
    let first = distributions(model, &[PROMPT.to_vec()], sampling).remove(0);
    let ones: Vec<u32> = (0..VOCAB).filter(|token| first[*token as usize] > 0.0).collect();
    let starts: Vec<Vec<u32>> = ones.iter().map(|one| [&PROMPT[..], &[*one]].concat()).collect();
    for (one, second) in ones.into_iter().zip(distributions(model, &starts, sampling)) {
        for other in (0..VOCAB).filter(|token| second[*token as usize] > 0.0) {
            let mut masks = SamplingMasks::new();
            [&first, &second].into_iter().for_each(|probabilities| masks.push(&mask(probabilities)));
            let [p, q] = [first[one as usize], second[other as usize]];
            let row = Experience {
                sample: SampleId { group: 0, index: all.len(), trajectory: 0 },
                prompt: PROMPT.to_vec(),
                response: vec![one, other],
                loss_mask: vec![true; 2],
                logprobs: [p, q].map(|probability| probability.ln() as f32).to_vec(),
                masks,
                drawing: Some(drawing.clone()),
                ..Default::default()
            };
            all.push((p * q, row));
        }
    }
    all
}

/// Rewards of which no mean was taken, so that the normaliser of a distribution has a gradient.
fn reward(row: &Experience) -> f64 {
    0.5 + uniform(77, u64::from(row.response[0] * VOCAB + row.response[1]))
}

fn expected_reward(model: &Model, sampling: &Sampling) -> f64 {
    all_responses(model, sampling).iter().map(|(probability, row)| probability * reward(row)).sum()
}

/// The same rows as if nothing was known of how they were drawn.
fn stripped(rows: &[Experience]) -> Vec<Experience> {
    let bare = |row: &Experience| Experience { masks: SamplingMasks::default(), drawing: None, ..row.clone() };
    rows.iter().map(bare).collect()
}

fn cuts() -> Vec<(&'static str, Sampling)> {
    let plain = Sampling { temperature: 0.7, ..Sampling::new(2, vec![]) };
    let bias = vec![(3, 1.5), (5, -2.0), (3, 0.25)];
    vec![
        ("top_k", Sampling { top_k: Some(4), ..plain.clone() }),
        ("top_p", Sampling { top_p: 0.7, ..plain.clone() }),
        ("min_p", Sampling { min_p: 0.3, ..plain.clone() }),
        ("logit_bias", Sampling { logit_bias: bias.clone(), ..plain.clone() }),
        ("repetition_penalty", Sampling { repetition_penalty: 1.8, ..plain.clone() }),
        (
            "all",
            Sampling { top_k: Some(9), top_p: 0.9, min_p: 0.01, logit_bias: bias, repetition_penalty: 1.4, ..plain },
        ),
    ]
}

#[test]
fn the_expected_gradient_is_the_gradient_of_the_policy_that_draws() {
    let model = tiny_f64(1);
    let loss: LossConfig = toml::from_str("policy = 'gpg'\naggregation = 'token-sum'").unwrap();
    for (name, sampling) in cuts() {
        let all = all_responses(&model, &sampling);
        let total: f64 = all.iter().map(|(probability, _)| probability).sum();
        assert!((total - 1.0).abs() < 1e-12, "{name}: the responses that can be drawn have {total}");
        // Each response counts as often as it is drawn.
        let weighted = |(probability, row): &(f64, Experience)| Experience {
            advantages: vec![(probability * reward(row)) as f32; 2],
            ..row.clone()
        };
        let rows: Vec<Experience> = all.iter().map(weighted).collect();
        let gradients = |rows: &[Experience], max_tokens: usize| {
            let mut trainer = Trainer::new(&model, BARE, max_tokens).unwrap();
            let temperature = f64::from(sampling.temperature);
            trainer.update(policy_update(&model, None, rows, &loss, temperature, 0.0)).unwrap();
            last_gradients(&model, &trainer)
        };
        // Masks follow their tokens into micro-batches.
        let (found, split, without) = (gradients(&rows, 1000), gradients(&rows, 20), gradients(&stripped(&rows), 1000));
        // The loss falls as the reward rises.
        assert_slopes(&model, &found, 4, [1e-6, 1e-5], name, || -expected_reward(&model, &sampling));
        let flat = |all: &[(String, Vec<f64>)]| all.iter().flat_map(|(_, of)| of.clone()).collect::<Vec<f64>>();
        let norm = |all: &[f64]| all.iter().map(|x| x * x).sum::<f64>().sqrt();
        let distance = |other: &[(String, Vec<f64>)]| {
            let difference: Vec<f64> = flat(&found).iter().zip(flat(other)).map(|(one, other)| one - other).collect();
            norm(&difference) / norm(&flat(&found))
        };
        assert!(distance(&split) < 1e-6, "{name}: micro-batches change the gradient by {}", distance(&split));
        assert!(distance(&without) > 0.1, "{name}: without the mask, the gradient differs by {}", distance(&without));
    }
}

/// Responses that the engine draws, as a run does.
fn drawn(model: &Model, sampling: &Sampling) -> Vec<Experience> {
    let mut engine = Engine::new(model, EngineConfig::default()).unwrap();
    let prompt = |id: u64| tokens(300 + id, 2 + id as usize % 3);
    for id in 0..8 {
        engine.submit(Request::new(id, prompt(id), sampling.clone(), 40 + id)).unwrap();
    }
    let mut responses = Vec::new();
    while !engine.is_idle() {
        responses.extend(engine.step(model).unwrap().finished);
    }
    let drawing = Arc::new(Drawing::new(&sampling.logit_bias, sampling.repetition_penalty));
    let row = |response: gavel_policy::Finished| Experience {
        sample: SampleId { group: 0, index: response.id as usize, trajectory: 0 },
        prompt: prompt(response.id),
        loss_mask: vec![true; response.response.len()],
        advantages: vec![if response.id.is_multiple_of(2) { 1.0 } else { -0.5 }; response.response.len()],
        response: response.response,
        logprobs: response.logprobs,
        versions: response.versions,
        masks: response.masks,
        drawing: Some(drawing.clone()),
        ..Default::default()
    };
    responses.into_iter().map(row).collect()
}

/// All settings that change what is drawn.
fn everything() -> Sampling {
    Sampling {
        temperature: 0.8,
        top_k: Some(8),
        top_p: 0.9,
        min_p: 0.01,
        repetition_penalty: 1.3,
        logit_bias: vec![(4, 1.0), (6, -1.5)],
        masked: true,
        ..Sampling::new(12, vec![])
    }
}

#[test]
fn before_the_first_update_every_ratio_is_one() {
    // In 32 bits, decoding and training round sums in different orders; in 64 bits only the records are rounded.
    for (bits, model, most) in [(32, tiny(3), 1e-5), (64, tiny_f64(3), 1e-6)] {
        let sampling = everything();
        let mut rows = drawn(&model, &sampling);
        assert!(rows.iter().all(|row| row.masks.cuts() && row.response.len() == 12));
        let temperature = f64::from(sampling.temperature);
        let trainer = Trainer::new(&model, BARE, 64).unwrap();
        trainer.set_proximal(&model, &mut rows, temperature).unwrap();
        for row in &rows {
            let mut pairs = row.logprobs.iter().zip(&row.proximal);
            assert!(pairs.all(|(rollout, proximal)| f64::from((rollout - proximal).abs()) < most), "{bits}: {row:?}");
        }
        for (name, policy) in PolicyLoss::all() {
            let config = LossConfig { policy, ..Default::default() };
            let update = |rows: &[Experience]| {
                let mut trainer = Trainer::new(&model, BARE, 64).unwrap();
                trainer.update(policy_update(&model, None, rows, &config, temperature, 0.0)).unwrap()
            };
            let stats = update(&rows);
            assert!(number(&stats, "logprob_mismatch_max") < most, "{bits}, {name}: {stats:?}");
            assert!(stats.statistics.get("clip_fraction").is_none_or(|share| share == 0.0), "{name}: {stats:?}");
            let without = number(&update(&stripped(&rows)), "logprob_mismatch_max");
            assert!(without > 0.1, "{name}: without the mask, log-probabilities differ by {without}");
        }
    }
}

#[test]
fn a_reference_is_compared_over_what_could_be_drawn() {
    let (model, sampling) = (tiny(3), everything());
    let rows = drawn(&model, &sampling);
    let kl = KlConfig { coefficient: 0.1, ..KlConfig::default() };
    let config = LossConfig { kl: Some(kl), ..Default::default() };
    let distance = |reference: &Model| {
        let mut trainer = Trainer::new(&model, BARE, 64).unwrap();
        let temperature = f64::from(sampling.temperature);
        let stats = trainer.update(policy_update(&model, Some(reference), &rows, &config, temperature, 0.0)).unwrap();
        number(&stats, "kl")
    };
    // Were the reference's log-probabilities of the whole vocabulary, its distance from itself would not be 0.
    assert!(distance(&tiny(3)) < 1e-10);
    assert!(distance(&tiny(4)) > 1e-3);
}

#[test]
fn the_entropy_is_of_what_could_be_drawn() {
    let (model, sampling) = (tiny_f64(1), cuts().remove(0).1);
    let (_, mut row) = all_responses(&model, &sampling).remove(0);
    row.advantages = vec![1.0; 2];
    let entropy = |before: &[u32]| {
        let probabilities = distributions(&model, &[before.to_vec()], &sampling).remove(0);
        -probabilities.iter().filter(|p| **p > 0.0).map(|p| p * p.ln()).sum::<f64>()
    };
    let expected = (entropy(&PROMPT) + entropy(&[&PROMPT[..], &row.response[..1]].concat())) / 2.0;
    let mut trainer = Trainer::new(&model, BARE, 64).unwrap();
    let temperature = f64::from(sampling.temperature);
    let stats = trainer.update(policy_update(&model, None, &[row], &LossConfig::default(), temperature, 0.0)).unwrap();
    assert!((number(&stats, "entropy") - expected).abs() < 1e-9, "{stats:?} is not {expected}");
}

#[test]
fn a_mask_without_the_token_that_was_drawn_is_refused() {
    let model = tiny(1);
    let mut rows = experiences(&model, 1.0);
    let mut error = |only: Vec<u32>, count: usize| {
        rows[3].masks = SamplingMasks::new();
        (0..count).for_each(|_| rows[3].masks.push(&SamplingMask::Only(only.clone())));
        let mut trainer = Trainer::new(&model, BARE, 64).unwrap();
        trainer
            .update(policy_update(&model, None, &rows, &LossConfig::default(), 1.0, 0.0))
            .err()
            .map(|e| e.to_string())
    };
    let all: Vec<u32> = (0..VOCAB).collect();
    assert_eq!(error(all.clone(), 9), None);
    let missing = error(vec![VOCAB - 1], 9).unwrap();
    assert!(missing.starts_with("row 3 of the mini-batch has a sampling mask without response token "), "{missing}");
    let more = error(all, 10).unwrap();
    assert_eq!(more, "row 3 of the mini-batch has 10 sampling masks for 9 response tokens");
}
