//! Behaviour, proximal and current policy apart.

use super::*;
use crate::{OffPolicyConfig, RolloutIs, RolloutRs};

/// Rows that `behaviour` drew, with the proximal log-probabilities of `proximal`.
fn rows(behaviour: &Model, proximal: &Model) -> Vec<Experience> {
    let mut rows = off_policy(experiences(behaviour, 0.7));
    Trainer::new(proximal, BARE, 16).unwrap().set_proximal(proximal, &mut rows, 0.7).unwrap();
    rows
}

fn decoupled(off_policy: OffPolicyConfig) -> LossConfig {
    LossConfig {
        old_logprobs: Some(OldLogProbs::Proximal),
        off_policy: Some(off_policy),
        kl: None,
        ..config(Aggregation::SeqMeanTokenMean)
    }
}

/// The loss of decoupled PPO as written by Hilton et al., with a truncated weight, in plain loops over a model's own
/// log-probabilities: the mean over responses of their means.
fn plain_decoupled(model: &Model, proximal: &Model, rows: &[Experience], off_policy: &OffPolicyConfig) -> f64 {
    let mut means = Vec::new();
    for row in rows {
        let (now, before) = (plain_logprobs(model, row, 0.7), plain_logprobs(proximal, row, 0.7));
        let written: Vec<usize> = (0..row.response.len()).filter(|&at| row.loss_mask[at]).collect();
        let log_weight = |at: usize| before[at] - f64::from(row.logprobs[at]);
        let product: f64 = written.iter().map(|&at| log_weight(at)).sum();
        let loss = |&at: &usize| {
            let ratio = (now[at] - before[at]).exp();
            let advantage = f64::from(row.advantages[at]);
            let surrogate = (ratio * advantage).min(ratio.clamp(0.8, 1.3) * advantage);
            let log = if off_policy.rollout_is == RolloutIs::Sequence { product } else { log_weight(at) };
            let kept = match off_policy.rollout_rs {
                RolloutRs::Token => (0.5..=2.0).contains(&log_weight(at).exp()),
                _ => true,
            };
            if kept { -surrogate * log.exp().min(off_policy.rollout_is_threshold) } else { 0.0 }
        };
        if !written.is_empty() {
            means.push(written.iter().map(loss).sum::<f64>() / written.len() as f64);
        }
    }
    means.iter().sum::<f64>() / means.len() as f64
}

#[test]
fn the_decoupled_loss_and_its_gradient_are_those_of_plain_loops_and_finite_differences() {
    let (behaviour, proximal, model) = (tiny_f64(1), tiny_f64(1), tiny_f64(1));
    for (other, scale) in [(&proximal, 0.97), (&model, 1.04)] {
        let _guard = tch::no_grad_guard();
        for (_, mut parameter) in other.parameters() {
            let _ = parameter.g_mul_scalar_(scale);
        }
    }
    let rows = rows(&behaviour, &proximal);
    let plain = OffPolicyConfig { rollout_is_threshold: 1.2, ..Default::default() };
    let cases = [
        plain,
        OffPolicyConfig { rollout_is: RolloutIs::Sequence, ..plain },
        OffPolicyConfig { rollout_rs: RolloutRs::Token, ..plain },
    ];
    for off_policy in cases {
        let (stats, gradients) = gradients(&model, &model, &rows, &decoupled(off_policy), 16);
        let expected = plain_decoupled(&model, &proximal, &rows, &off_policy);
        // The proximal log-probabilities are 32-bit numbers.
        assert!((number(&stats, "loss") - expected).abs() < 1e-6, "{off_policy:?}: {stats:?} is not {expected}");
        assert!(number(&stats, "clip_fraction") > 0.0 && number(&stats, "off_policy/truncated") > 0.0);
        let rejected = stats.statistics.get("off_policy/rejected");
        assert_eq!(rejected.is_some_and(|share| share > 0.0), off_policy.rollout_rs == RolloutRs::Token);
        let plain = || plain_decoupled(&model, &proximal, &rows, &off_policy);
        assert_slopes(&model, &gradients, 3, [1e-5, 1e-5], &format!("{off_policy:?}"), plain);
    }
}

#[test]
fn before_the_first_update_the_proximal_policy_is_the_current_one_to_the_last_bit() {
    for model in [tiny(1), tiny(1).to_kind(tch::Kind::BFloat16).unwrap()] {
        let mut rows = off_policy(experiences(&model, 0.7));
        let by = |old: OldLogProbs, rows: &[Experience]| {
            gradients(&model, &model, rows, &LossConfig { old_logprobs: Some(old), ..Default::default() }, 16)
        };
        let current = by(OldLogProbs::Current, &rows);
        Trainer::new(&model, BARE, 16).unwrap().set_proximal(&model, &mut rows, 0.7).unwrap();
        assert_eq!(by(OldLogProbs::Proximal, &rows), current);
    }
}

#[test]
fn weights_of_1_change_nothing_to_the_last_bit() {
    let model = tiny(1);
    let mut rows = off_policy(experiences(&model, 0.7));
    // Rows that the policy itself drew.
    Trainer::new(&model, BARE, 16).unwrap().set_proximal(&model, &mut rows, 0.7).unwrap();
    rows.iter_mut().for_each(|row| row.logprobs.clone_from(&row.proximal));
    let by = |config: LossConfig| gradients(&model, &model, &rows, &config, 16);
    let (plain, plain_gradients) = by(LossConfig::default());
    let strict = OffPolicyConfig { rollout_rs: RolloutRs::Geometric, ..Default::default() };
    let (stats, found) =
        by(LossConfig { aggregation: Aggregation::TokenMean, policy: PolicyLoss::default(), ..decoupled(strict) });
    assert_eq!(found, plain_gradients);
    for (name, value) in plain.statistics.iter() {
        assert_eq!(number(&stats, name), value, "{name}");
    }
    let numbers = ["effective_sample_size", "truncated", "rejected", "kl", "chi2_token", "chi2_seq"];
    let found = numbers.map(|name| number(&stats, &format!("off_policy/{name}")));
    assert_eq!(found, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn a_mini_batch_that_is_rejected_as_a_whole_changes_nothing() {
    let model = tiny(1);
    let rows = rows(&tiny(2), &model);
    let none = OffPolicyConfig {
        rollout_rs: RolloutRs::Sequence,
        rollout_rs_threshold: Some(1.0),
        rollout_token_veto_threshold: Some(0.999),
        ..Default::default()
    };
    let (stats, _) = gradients(&model, &model, &rows, &decoupled(none), 16);
    assert_eq!((number(&stats, "grad_norm"), number(&stats, "off_policy/rejected")), (0.0, 1.0));
    assert_eq!(number(&stats, "off_policy/effective_sample_size"), 0.0);
}

#[test]
fn rows_without_what_the_loss_needs_are_named() {
    let model = tiny(1);
    let mut rows = experiences(&model, 1.0);
    let mut trainer = Trainer::new(&model, BARE, 64).unwrap();
    let mut error = |rows: &[Experience], config: &LossConfig| {
        trainer.update(policy_update(&model, None, rows, config, 1.0, 0.0)).unwrap_err().to_string()
    };
    let config = decoupled(OffPolicyConfig::default());
    assert_eq!(error(&rows, &config), "row 0 of the mini-batch has 0 proximal log-probabilities for 5 response tokens");
    let twice = LossConfig { old_logprobs: None, ..config };
    assert!(error(&rows, &twice).starts_with("off_policy.rollout_is must be \"none\" with old_logprobs = \"rollout\""));
    rows.iter_mut().for_each(|row| row.proximal = vec![f32::NAN; row.response.len()]);
    assert_eq!(
        error(&rows, &config),
        "row 0 of the mini-batch has the proximal log-probability NaN at response token 0"
    );
}

#[test]
fn a_model_works_as_if_it_had_other_parameters_and_has_its_own_again() {
    let (model, other) = (tiny_f64(1), tiny_f64(2));
    let rows = experiences(&model, 0.7);
    let found = |model: &Model| plain_logprobs(model, &rows[0], 0.7);
    let before = found(&model);
    let parameters = other.parameters();
    let seen = model.with_parameters(&parameters, found).unwrap();
    assert_eq!(seen, found(&other));
    assert_ne!(seen, before);
    assert_eq!(found(&model), before);
    assert!(model.with_parameters(&parameters[1..], found).is_err());
    assert_eq!(found(&model), before);
}
