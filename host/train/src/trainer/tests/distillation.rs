//! The distance from a teacher's whole distributions, over a vocabulary that is small enough to enumerate.

use super::*;
use crate::testing::VOCAB;
use crate::{DistillationConfig, Taught};
use gavel_policy::{Device, Kind, ModelConfig};

const ASKED: Asked = Asked { top_k: VOCAB as usize, vocabulary: VOCAB as i64, temperature: 0.7 };

/// A loss whose other parts are 0 where advantages are.
fn loss(beta: f64) -> LossConfig {
    let distillation = Some(DistillationConfig { beta, ..DistillationConfig::default() });
    LossConfig { distillation, ..LossConfig::default() }
}

/// Rows without advantages, with what `teacher` says of them.
fn taught_rows(model: &Model, teacher: &Model, asked: Asked) -> Vec<Experience> {
    let mut rows = experiences(model, 0.7);
    let taught = Trainer::new(model, BARE, 16).unwrap().taught(teacher, &rows, asked).unwrap();
    for (row, taught) in rows.iter_mut().zip(taught) {
        row.advantages.fill(0.0);
        row.taught = Some(taught);
    }
    rows
}

/// The log-probabilities of the whole vocabulary at each learned token of a row, `[tokens, vocabulary]`.
fn distributions(model: &Model, row: &Experience) -> Tensor {
    let ids: Vec<i64> = row.prompt.iter().chain(&row.response).map(|&id| i64::from(id)).collect();
    let learned = (0..row.response.len()).filter(|&at| row.loss_mask[at]);
    let before: Vec<i64> = learned.map(|at| (row.prompt.len() + at - 1) as i64).collect();
    let hidden = model.hidden(&Tensor::from_slice(&ids).unsqueeze(0)).unwrap().squeeze_dim(0);
    let logits = model.logits(&hidden.index_select(0, &Tensor::from_slice(&before))).unwrap();
    (logits / 0.7).log_softmax(-1, Kind::Double)
}

/// The divergence of a token's distributions in plain loops, of which the teacher's `top_k` most probable tokens count by
/// themselves.
fn plain_divergence(policy: &[f64], teacher: &[f64], beta: f64, top_k: usize) -> f64 {
    let mut order: Vec<usize> = (0..teacher.len()).collect();
    order.sort_by(|one, other| teacher[*other].total_cmp(&teacher[*one]));
    let (top, others) = order.split_at(top_k.min(order.len()));
    let outcomes = |logprobs: &[f64]| -> Vec<f64> {
        let rest = others.iter().map(|token| logprobs[*token].exp()).sum();
        top.iter().map(|token| logprobs[*token].exp()).chain((!others.is_empty()).then_some(rest)).collect()
    };
    let (policy, teacher) = (outcomes(policy), outcomes(teacher));
    let kl = |of: &[f64], from: &[f64]| of.iter().zip(from).map(|(p, q)| p * (p / q).ln()).sum::<f64>();
    let mixture: Vec<f64> = policy.iter().zip(&teacher).map(|(p, t)| beta * t + (1.0 - beta) * p).collect();
    match beta {
        0.0 => kl(&teacher, &policy),
        1.0 => kl(&policy, &teacher),
        _ => beta * kl(&teacher, &mixture) + (1.0 - beta) * kl(&policy, &mixture),
    }
}

/// The mean over the learned tokens of the rows.
fn plain_distance(model: &Model, teacher: &Model, rows: &[Experience], beta: f64, top_k: usize) -> f64 {
    let _guard = tch::no_grad_guard();
    let of_row = |row: &Experience| {
        let [policy, teacher] = [model, teacher].map(|model| values(&distributions(model, row)));
        let pairs = policy.chunks(VOCAB as usize).zip(teacher.chunks(VOCAB as usize));
        pairs.map(|(policy, teacher)| plain_divergence(policy, teacher, beta, top_k)).collect::<Vec<_>>()
    };
    let all: Vec<f64> = rows.iter().flat_map(of_row).collect();
    all.iter().sum::<f64>() / all.len() as f64
}

#[test]
fn the_distance_and_its_gradient_are_those_of_plain_loops_and_finite_differences() {
    let (model, teacher) = (tiny_f64(1), tiny_f64(2));
    for (beta, top_k, max_tokens) in [(0.0, 3, 16), (1.0, 1, 1000), (0.5, 5, 16), (0.2, 99, 1000)] {
        let rows = taught_rows(&model, &teacher, Asked { top_k, ..ASKED });
        let (stats, gradients) = gradients(&model, &teacher, &rows, &loss(beta), max_tokens);
        let expected = plain_distance(&model, &teacher, &rows, beta, top_k);
        for name in ["loss", "distillation"] {
            let found = number(&stats, name);
            assert!(expected > 0.01 && (found - expected).abs() < 1e-6, "{name}, {beta}: {found} is not {expected}");
        }
        // What the teacher says has 32 bits.
        let plain = || plain_distance(&model, &teacher, &rows, beta, top_k);
        assert_slopes(&model, &gradients, 3, [1e-6, 1e-5], &beta.to_string(), plain);
    }
}

#[test]
fn over_the_whole_vocabulary_the_gradient_is_that_of_the_exact_divergence() {
    let (model, teacher) = (tiny_f64(1), tiny_f64(2));
    let rows = taught_rows(&model, &teacher, ASKED);
    for beta in [0.0, 1.0] {
        let (_, found) = gradients(&model, &teacher, &rows, &loss(beta), 16);
        let [policy, teacher] = [&model, &teacher]
            .map(|model| Tensor::cat(&rows.iter().map(|row| distributions(model, row)).collect::<Vec<_>>(), 0));
        let (of, from) = if beta == 0.0 { (teacher.detach(), policy) } else { (policy, teacher.detach()) };
        let divergence = (of.exp() * (&of - from)).sum_dim_intlist([-1i64].as_slice(), false, Kind::Double);
        model.parameters().iter_mut().for_each(|(_, parameter)| parameter.zero_grad());
        divergence.mean(Kind::Double).backward();
        for ((name, parameter), (_, found)) in model.parameters().iter().zip(&found) {
            let expected = values(&parameter.grad());
            let error = expected.iter().zip(found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(error < 1e-6, "{beta}, {name}: {error}");
        }
    }
}

#[test]
fn a_policy_that_is_its_teacher_has_nothing_to_learn() {
    let model = tiny_f64(1);
    for (beta, top_k) in [(0.0, 4), (0.5, VOCAB as usize), (1.0, 4)] {
        let rows = taught_rows(&model, &model, Asked { top_k, ..ASKED });
        let (stats, gradients) = gradients(&model, &model, &rows, &loss(beta), 64);
        assert!(number(&stats, "distillation").abs() < 1e-6, "{beta}: {stats:?}");
        assert!(gradients.iter().flat_map(|(_, gradient)| gradient).all(|slope| slope.abs() < 1e-6), "{beta}");
    }
}

#[test]
fn the_distance_is_added_to_the_loss_of_advantages_by_its_weight() {
    let (model, teacher) = (tiny_f64(1), tiny_f64(2));
    let mut rows = taught_rows(&model, &teacher, Asked { top_k: 4, ..ASKED });
    rows.iter_mut().zip([1.0, -0.5, 2.0, 0.0, 0.3]).for_each(|(row, advantage)| row.advantages.fill(advantage));
    let distillation = Some(DistillationConfig { coefficient: 0.25, ..DistillationConfig::default() });
    let (stats, _) = gradients(&model, &teacher, &rows, &LossConfig { distillation, ..LossConfig::default() }, 16);
    let [all, policy, distance] = ["loss", "policy_loss", "distillation"].map(|name| number(&stats, name));
    assert!(policy.abs() > 0.01 && (all - policy - 0.25 * distance).abs() < 1e-12, "{stats:?}");
}

#[test]
fn a_teacher_with_more_logits_than_tokens_is_compared_over_the_tokens() {
    let model = tiny_f64(1);
    let config = ModelConfig { vocab_size: i64::from(VOCAB) + 3, ..model.config().clone() };
    let teacher = Model::random(config, 2, Device::Cpu).unwrap().to_kind(Kind::Double).unwrap();
    for row in taught_rows(&model, &teacher, ASKED) {
        let Taught { tokens, .. } = row.taught.unwrap();
        for (said, learned) in tokens.iter().zip(&row.loss_mask) {
            let mut ids = said.ids.clone();
            ids.sort_unstable();
            assert_eq!(ids, if *learned { (0..VOCAB).collect() } else { Vec::new() });
            let sum: f32 = said.logprobs.iter().map(|logprob| logprob.exp()).sum();
            assert!(!learned || (sum - 1.0).abs() < 1e-5, "{sum}");
        }
    }
}

#[test]
fn rows_that_were_not_taught_alike_are_refused() {
    let (model, teacher) = (tiny_f64(1), tiny_f64(2));
    let rows = taught_rows(&model, &teacher, ASKED);
    let others = taught_rows(&model, &teacher, Asked { top_k: 4, ..ASKED });
    type Change = fn(&mut Experience, &Experience);
    let error = |change: Change| {
        let mut rows = rows.clone();
        change(&mut rows[1], &others[1]);
        let mut trainer = Trainer::new(&model, BARE, 1000).unwrap();
        trainer.update(policy_update(&model, None, &rows, &loss(0.5), 0.7, 0.0)).unwrap_err().to_string()
    };
    let changes: [(Change, &str); 2] = [
        (|row, _| row.taught = None, "has no log-probabilities of a teacher"),
        (|row, _| row.taught.as_mut().unwrap().tokens.clear(), "has fewer log-probabilities of a teacher than tokens"),
    ];
    for (change, says) in changes {
        assert_eq!(error(change), format!("row 1 of the mini-batch {says}"));
    }
    let found = error(|row, other| row.taught = other.taught.clone());
    assert!(found.ends_with("has log-probabilities of a teacher over other tokens than the rows before"), "{found}");
}
