use super::*;
use crate::loss::{Aggregation, OldLogProbs};
use crate::optimizer::tests::{exp_avg, values};
use crate::testing::{BARE, experiences, last_gradients, policy_update, tiny, tiny_f64};
use crate::{
    AdvantageConfig, ClipRange, KlConfig, OptimizerKind, PolicyLoss, PpoClip, RewardStatistics, SampleId, ScoredGroup,
};
use gavel_policy::{LoraConfig, Module};

mod distillation;
mod micro_batches;
mod off_policy;
mod ranks;
mod sampling_masks;
mod staleness;

const AGGREGATIONS: [Aggregation; 5] = [
    Aggregation::TokenMean,
    Aggregation::TokenSum,
    Aggregation::SeqMeanTokenSum,
    Aggregation::SeqMeanTokenMean,
    Aggregation::SeqMeanTokenSumNorm,
];

/// Shifts the recorded log-probabilities, so that the ratios are in turn 1, 1.6
/// and 0.6. With advantages of both signs, this gives every case of the clip.
fn off_policy(mut rows: Vec<Experience>) -> Vec<Experience> {
    for (row, experience) in rows.iter_mut().enumerate() {
        for (at, logprob) in experience.logprobs.iter_mut().enumerate() {
            *logprob -= [1.0f32, 1.6, 0.6][(row + at) % 3].ln();
        }
    }
    rows
}

/// The gradient of every parameter, by one update that changes nothing.
fn gradients(
    model: &Model,
    reference: &Model,
    rows: &[Experience],
    config: &LossConfig,
    max_tokens: usize,
) -> (UpdateStats, Vec<(String, Vec<f64>)>) {
    let mut trainer = Trainer::new(model, BARE, max_tokens).unwrap();
    let stats = trainer.update(policy_update(model, Some(reference), rows, config, 0.7, 0.0)).unwrap();
    (stats, last_gradients(model, &trainer))
}

/// Compares about `count` elements of each gradient with the slope of `plain`, by central differences. They may differ by
/// `absolute`, and by `relative` of the slope.
fn assert_slopes(
    model: &Model,
    gradients: &[(String, Vec<f64>)],
    count: usize,
    [absolute, relative]: [f64; 2],
    what: &str,
    plain: impl Fn() -> f64,
) {
    for ((name, parameter), (_, gradient)) in model.parameters().iter().zip(gradients) {
        let flat = parameter.detach().flatten(0, -1);
        for at in (0..gradient.len()).step_by(1 + gradient.len() / count) {
            let mut element = flat.get(at as i64);
            let value = element.double_value(&[]);
            let mut at_shift = |shift: f64| {
                let _ = element.fill_(value + shift);
                plain()
            };
            let slope = (at_shift(1e-5) - at_shift(-1e-5)) / 2e-5;
            let _ = element.fill_(value);
            let (error, found) = ((slope - gradient[at]).abs(), gradient[at]);
            assert!(error < absolute + relative * slope.abs(), "{what}, {name}[{at}]: {found} is not {slope}");
        }
    }
}

/// A number of an update.
fn number(stats: &UpdateStats, name: &str) -> f64 {
    stats.statistics.get(name).unwrap()
}

/// `log softmax(logits / temperature)` of each response token of one row by
/// itself, in plain loops.
fn plain_logprobs(model: &Model, row: &Experience, temperature: f64) -> Vec<f64> {
    let _guard = tch::no_grad_guard();
    let ids: Vec<i64> = row.prompt.iter().chain(&row.response).map(|&id| i64::from(id)).collect();
    let hidden = model.hidden(&Tensor::from_slice(&ids).unsqueeze(0)).unwrap();
    let logits = values(&model.logits(&hidden).unwrap());
    let vocab = logits.len() / ids.len();
    (0..row.response.len())
        .map(|at| {
            let before = row.prompt.len() + at - 1;
            let scaled: Vec<f64> = logits[before * vocab..][..vocab].iter().map(|z| z / temperature).collect();
            scaled[row.response[at] as usize] - scaled.iter().map(|z| z.exp()).sum::<f64>().ln()
        })
        .collect()
}

/// The loss as the papers write it, in plain loops.
fn plain_loss(model: &Model, reference: &Model, rows: &[Experience], config: &LossConfig) -> f64 {
    let kl = config.kl.unwrap();
    let PolicyLoss::PpoClip(PpoClip { range: ClipRange { clip_low, clip_high }, .. }) = config.policy else {
        panic!("{config:?}")
    };
    let per_row: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| {
            let (now, frozen) = (plain_logprobs(model, row, 0.7), plain_logprobs(reference, row, 0.7));
            (0..row.response.len())
                .filter(|&at| row.loss_mask[at])
                .map(|at| {
                    let ratio = (now[at] - f64::from(row.logprobs[at])).exp();
                    let clipped = ratio.max(1.0 - clip_low).min(1.0 + clip_high);
                    let advantage = f64::from(row.advantages[at]);
                    let distance = frozen[at] - now[at];
                    -(ratio * advantage).min(clipped * advantage)
                        + kl.coefficient * (distance.exp() - distance - 1.0).min(10.0)
                })
                .collect()
        })
        .filter(|losses: &Vec<f64>| !losses.is_empty())
        .collect();
    let sums = per_row.iter().map(|losses| losses.iter().sum::<f64>());
    let mean_of_rows = |total: f64| total / per_row.len() as f64;
    match config.aggregation {
        Aggregation::TokenMean => sums.sum::<f64>() / per_row.iter().map(Vec::len).sum::<usize>() as f64,
        Aggregation::TokenSum => sums.sum(),
        Aggregation::SeqMeanTokenSum => mean_of_rows(sums.sum()),
        Aggregation::SeqMeanTokenMean => {
            mean_of_rows(per_row.iter().zip(sums).map(|(losses, sum)| sum / losses.len() as f64).sum())
        }
        Aggregation::SeqMeanTokenSumNorm => mean_of_rows(sums.sum()) / config.norm_tokens.unwrap() as f64,
    }
}

fn config(aggregation: Aggregation) -> LossConfig {
    LossConfig {
        policy: PolicyLoss::PpoClip(PpoClip::new(0.2, 0.3)),
        aggregation,
        norm_tokens: Some(9),
        kl: Some(KlConfig { coefficient: 0.1, ..KlConfig::default() }),
        ..Default::default()
    }
}

#[test]
fn loss_and_gradient_are_those_of_plain_loops_and_finite_differences() {
    let (model, reference) = (tiny_f64(1), tiny_f64(2));
    let rows = off_policy(experiences(&model, 0.7));
    for aggregation in AGGREGATIONS {
        let config = config(aggregation);
        let (stats, gradients) = gradients(&model, &reference, &rows, &config, 16);
        let expected = plain_loss(&model, &reference, &rows, &config);
        let loss = number(&stats, "loss");
        assert!((loss - expected).abs() < 1e-10, "{aggregation:?}: {loss} is not {expected}");
        assert!(number(&stats, "clip_fraction_high") > 0.0 && number(&stats, "clip_fraction_low") > 0.0);
        let plain = || plain_loss(&model, &reference, &rows, &config);
        assert_slopes(&model, &gradients, 4, [1e-7, 1e-6], &format!("{aggregation:?}"), plain);
    }
}

#[test]
fn stats_are_means_over_the_tokens_that_were_learned_from() {
    let model = tiny_f64(1);
    let mut rows = experiences(&model, 1.0);
    // Ratios 2, ½ and 1 of three tokens, the first two clipped by their sign.
    rows.truncate(2);
    rows[0].loss_mask = vec![true, true, false, false, false];
    rows[0].advantages.fill(1.0);
    rows[0].logprobs[0] -= 2f32.ln();
    rows[1].advantages.fill(-1.0);
    rows[1].logprobs[0] += 2f32.ln();
    let mut trainer = Trainer::new(&model, BARE, 64).unwrap();
    let stats = trainer.update(policy_update(&model, None, &rows, &LossConfig::default(), 1.0, 0.0)).unwrap();
    let third = 1.0 / 3.0;
    let close = |name: &str, expected: f64| {
        assert!((number(&stats, name) - expected).abs() < 1e-6, "{name} is not {expected}: {stats:?}");
    };
    assert_eq!(stats.tokens, 3);
    close("clip_fraction_high", third);
    close("clip_fraction_low", third);
    close("clip_fraction", 2.0 * third);
    close("logprob_mismatch", 2.0 * third * 2f64.ln());
    close("logprob_mismatch_max", 2f64.ln());
    // k3 with d = log q − log p: exp(−d) − 1 + d.
    let rollout_kl = third * ((2.0 - 1.0 - 2f64.ln()) + (0.5 - 1.0 + 2f64.ln()));
    close("rollout_kl", rollout_kl);
    // There is no reference.
    close("kl", rollout_kl);
    let policy_loss = -third * (1.2 + 1.0 - 0.8);
    close("policy_loss", policy_loss);
    close("loss", policy_loss);
    let entropies = rows.iter().flat_map(|row| {
        let count = row.loss_mask.iter().filter(|&&mask| mask).count();
        (0..count).map(|at| {
            let probabilities = (0..crate::testing::VOCAB).map(|id| {
                let mut row = row.clone();
                row.response[at] = id;
                plain_logprobs(&model, &row, 1.0)[at]
            });
            -probabilities.map(|logprob| logprob.exp() * logprob).sum::<f64>()
        })
    });
    close("entropy", third * entropies.sum::<f64>());
}

#[test]
fn on_policy_both_kinds_of_old_logprobs_have_one_gradient() {
    let (model, reference) = (tiny_f64(1), tiny_f64(2));
    let rows = experiences(&model, 0.7);
    let current = LossConfig { old_logprobs: Some(OldLogProbs::Current), ..config(Aggregation::TokenMean) };
    let (_, a) = gradients(&model, &reference, &rows, &config(Aggregation::TokenMean), 64);
    let (stats, b) = gradients(&model, &reference, &off_policy(rows.clone()), &current, 64);
    assert_eq!(number(&stats, "clip_fraction"), 0.0);
    assert!(number(&stats, "logprob_mismatch") > 0.1, "the mismatch is still measured against rollout");
    for ((name, a), (_, b)) in a.iter().zip(&b) {
        // Rollout's log-probabilities are 32-bit numbers.
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6), "{name}");
    }
}

#[test]
fn the_advantage_of_a_token_is_its_own() {
    let (model, reference) = (tiny_f64(1), tiny_f64(2));
    let mut rows = off_policy(experiences(&model, 0.7));
    for (row, experience) in rows.iter_mut().enumerate() {
        for (at, advantage) in experience.advantages.iter_mut().enumerate() {
            *advantage = ((3 * row + at) as f32).sin();
        }
    }
    let config = config(Aggregation::TokenMean);
    let (stats, _) = gradients(&model, &reference, &rows, &config, 16);
    let expected = plain_loss(&model, &reference, &rows, &config);
    assert!((number(&stats, "loss") - expected).abs() < 1e-10, "{stats:?} is not {expected}");
}

#[test]
fn the_trajectories_of_a_sample_count_as_one_response() {
    let (model, reference) = (tiny_f64(1), tiny_f64(2));
    let rows = experiences(&model, 0.7);
    let twice = |sample: SampleId| [&rows[..], &[Experience { sample, ..rows[1].clone() }]].concat();
    for aggregation in [Aggregation::TokenMean, Aggregation::SeqMeanTokenSum, Aggregation::SeqMeanTokenMean] {
        let weigh =
            |rows: &[Experience]| number(&gradients(&model, &reference, rows, &config(aggregation), 64).0, "loss");
        let once = weigh(&rows);
        assert!((weigh(&twice(rows[1].sample)) - once).abs() < 1e-10);
        let by_itself = SampleId { trajectory: 1, ..rows[1].sample };
        assert!((weigh(&twice(by_itself)) - once).abs() > 1e-6);
    }
}

#[test]
fn a_group_of_equal_rewards_changes_nothing() {
    let model = tiny(1);
    let mut rows = experiences(&model, 1.0);
    let group = ScoredGroup::of_rewards(vec![0.3; rows.len()]);
    let advantages = AdvantageConfig::default().estimate(&[group], &RewardStatistics::default());
    for (row, advantage) in rows.iter_mut().zip(&advantages[0]) {
        row.advantages = advantage.of_trajectory(0, row.response.len());
    }
    let before: Vec<_> = model.parameters().iter().map(|(_, x)| values(x)).collect();
    let no_decay = OptimizerConfig { weight_decay: 0.0, ..Default::default() };
    let stats = Trainer::new(&model, no_decay, 32).unwrap().update(policy_update(
        &model,
        None,
        &rows,
        &LossConfig::default(),
        1.0,
        0.1,
    ));
    assert_eq!(number(&stats.unwrap(), "grad_norm"), 0.0);
    assert_eq!(model.parameters().iter().map(|(_, x)| values(x)).collect::<Vec<_>>(), before);
}

#[test]
fn updates_are_repeatable_and_resume_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("optimizer.safetensors");
    let step = |trainer: &mut Trainer, model: &Model| {
        let rows = off_policy(experiences(model, 1.0));
        trainer.update(policy_update(model, None, &rows, &LossConfig::default(), 1.0, 1e-2)).unwrap()
    };
    let model = tiny(1);
    let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 16).unwrap();
    let first: Vec<_> = (0..2).map(|_| step(&mut trainer, &model)).collect();
    trainer.save(&path).unwrap();
    model.save(folder.path()).unwrap();
    let rest: Vec<_> = (0..3).map(|_| step(&mut trainer, &model)).collect();

    let again = tiny(1);
    let mut repeated = Trainer::new(&again, OptimizerConfig::default(), 16).unwrap();
    assert_eq!((0..2).map(|_| step(&mut repeated, &again)).collect::<Vec<_>>(), first);

    let loaded = Model::load(folder.path(), model.kind(), model.device()).unwrap();
    let mut resumed = Trainer::new(&loaded, OptimizerConfig::default(), 16).unwrap();
    resumed.load(&path).unwrap();
    assert_eq!((0..3).map(|_| step(&mut resumed, &loaded)).collect::<Vec<_>>(), rest);
    for ((name, a), (_, b)) in model.parameters().iter().zip(&loaded.parameters()) {
        assert_eq!(values(a), values(b), "{name}");
    }
}

#[test]
fn what_cannot_be_learned_from_is_an_error_and_changes_nothing() {
    let model = tiny(1);
    let rows = experiences(&model, 1.0);
    let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 64).unwrap();
    let before: Vec<_> = model.parameters().iter().map(|(_, x)| values(x)).collect();
    let mut error = |rows: &[Experience], config: &LossConfig, temperature: f64| {
        trainer.update(policy_update(&model, None, rows, config, temperature, 0.1)).unwrap_err().to_string()
    };
    let with = |change: fn(&mut Experience)| {
        let mut rows = rows.clone();
        change(&mut rows[2]);
        rows
    };
    let plain = LossConfig::default();
    assert_eq!(error(&rows, &plain, 0.0), "temperature must be a number above 0, not 0");
    assert!(error(&rows, &config(Aggregation::TokenMean), 1.0).starts_with("a kl penalty is set, but no reference"));
    assert!(error(&[], &plain, 1.0).starts_with("the mini-batch of 0 rows has no token to learn from"));
    assert_eq!(
        error(&with(|row| row.advantages[1] = f32::NAN), &plain, 1.0),
        "row 2 of the mini-batch has the advantage NaN at response token 1"
    );
    assert_eq!(
        error(&with(|row| row.logprobs[0] = f32::NEG_INFINITY), &plain, 1.0),
        "row 2 of the mini-batch has the log-probability -inf at response token 0"
    );
    assert_eq!(
        error(&with(|row| row.logprobs.truncate(1)), &plain, 1.0),
        "row 2 of the mini-batch has 1 log-probabilities for 2 response tokens"
    );
    assert_eq!(
        error(&with(|row| row.advantages.truncate(1)), &plain, 1.0),
        "row 2 of the mini-batch has 1 advantages for 2 response tokens"
    );
    assert!(error(&with(|row| row.prompt.clear()), &plain, 1.0).contains("has an empty prompt"));
    assert!(error(&with(|row| row.response[0] = 99), &plain, 1.0).contains("token id 99"));
    let after: Vec<_> = model.parameters().iter().map(|(_, x)| values(x)).collect();
    assert_eq!(after, before);

    let other = tiny(2);
    let error = trainer.update(policy_update(&other, None, &rows, &plain, 1.0, 0.1)).unwrap_err().to_string();
    assert!(error.contains("got no gradient: is this the model that the trainer was made for?"), "{error}");
    let _ = model.parameters()[0].1.detach().fill_(f64::NAN);
    let error = trainer.update(policy_update(&model, None, &rows, &plain, 1.0, 0.1)).unwrap_err().to_string();
    assert!(error.starts_with("optimiser step 0: the loss is NaN; nothing was changed"), "{error}");
}

#[test]
fn updates_raise_what_was_rewarded() {
    let model = tiny(1);
    let rows = experiences(&model, 1.0);
    let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 64).unwrap();
    for _ in 0..5 {
        trainer.update(policy_update(&model, None, &rows, &LossConfig::default(), 1.0, 1e-2)).unwrap();
    }
    let after = crate::log_probs(&model, &rows, 1.0, 64).unwrap();
    let gain: f32 = rows
        .iter()
        .zip(&after)
        .map(|(row, after)| row.advantages[0] * (after.iter().sum::<f32>() - row.logprobs.iter().sum::<f32>()))
        .sum();
    assert!(gain > 0.1, "{gain}");
}

#[test]
fn muon_takes_each_matrix_of_a_layer_by_itself() {
    let config = OptimizerConfig { kind: OptimizerKind::Muon, ..OptimizerConfig::default() };
    let muon = |model: &Model| {
        let all = Trainer::new(model, config, 64).unwrap().optimizer.muon();
        let of_the_first = all.into_iter().filter_map(|(name, rows)| {
            Some((name.strip_prefix("model.layers.0.")?.strip_suffix(".weight")?.to_owned(), rows))
        });
        of_the_first.collect::<Vec<_>>()
    };
    let named = |all: &[(&str, &[i64])]| -> Vec<_> {
        all.iter().map(|(name, rows)| ((*name).to_owned(), rows.to_vec())).collect()
    };
    let of_layers: [(&str, &[i64]); 4] = [
        ("mlp.down_proj", &[8]),
        ("mlp.gate_up_proj", &[12, 12]),
        ("self_attn.o_proj", &[8]),
        ("self_attn.qkv_proj", &[8, 4, 4]),
    ];
    assert_eq!(muon(&tiny(1)), named(&of_layers));
    let lora = LoraConfig { rank: 3, target_modules: vec![Module::Query, Module::Value], ..LoraConfig::default() };
    let adapted = tiny(1).adapt(&lora, Path::new("base"), 0).unwrap();
    let of_adapters: [(&str, &[i64]); 3] =
        [("self_attn.q_proj.lora_B", &[8]), ("self_attn.qkv_proj.lora_A", &[3, 3]), ("self_attn.v_proj.lora_B", &[4])];
    assert_eq!(muon(&adapted), named(&of_adapters));
}
