//! Logits in 32 bits from weights of 16, on GPUs. Decoding and training have the same.

use crate::error::{PolicyError, Result};
use crate::fast_paths::{FastPath, Results, is_usable, random_like};
use crate::model::Model;
use gavel_torch::head::{Beside, LogitChanges, Logits, changed_logprobs};
use gavel_torch::scalar::{ScalarOperations, arange};
use tch::{Kind, Tensor};

/// The numbers of tokens that the product is checked with, as in decoding and as in training, and the most of the
/// vocabulary.
const CHECKED: ([i64; 2], i64) = ([8, 512], 16_384);

impl Model {
    /// The logits to draw from, `[rows, vocab]`, of `hidden`, `[rows, hidden]`. With weights of 16 bits on a GPU they
    /// have 32, as they are added up: two tokens whose logits round to the same number of 16 bits are not equally
    /// probable, and no pass over the vocabulary is needed to widen them. Without gradients.
    ///
    /// # Errors
    /// As [`logits`](Self::logits).
    pub(crate) fn logits_to_draw_from(&self, hidden: &Tensor) -> Result<Tensor> {
        if let Some(head) = &self.quantized_head {
            return head.product(&hidden.f_to_kind(Kind::Float)?, None);
        }
        let head = self.language_head()?;
        if can_be_wide(hidden, head) { wide(hidden, head) } else { self.logits(hidden) }
    }
}

/// How the logits that log-probabilities are computed from are computed, where these are changed or are not.
pub(crate) fn how(hidden: &Tensor, head: &Tensor, are_changed: bool) -> Logits {
    match can_be_wide(hidden, head) {
        false => Logits::Narrow,
        true if has_kernels(hidden, head, are_changed) => Logits::ByKernels,
        true => Logits::Wide,
    }
}

/// Whether kernels give the log-probabilities, entropies and gradients that libtorch's operations give from wide logits.
fn has_kernels(hidden: &Tensor, head: &Tensor, are_changed: bool) -> bool {
    let kind = hidden.kind();
    let path = if are_changed { FastPath::FusedChangedHead } else { FastPath::FusedHead };
    let [vocab, width] = <[i64; 2]>::try_from(head.size()).unwrap_or_default();
    kind == Kind::BFloat16
        && head.kind() == kind
        && vocab % 4 == 0
        && is_usable(path, hidden.device(), kind, &[width, vocab], || {
            let (rows, head) = (CHECKED.0[0], head.f_detach()?.f_narrow(0, 0, vocab.min(CHECKED.1))?);
            let targets = arange(0, rows, 1, hidden.device())?.try_mul(head.size()[0] / rows)?;
            // Larger numbers than a norm gives, so that probabilities are far from equal.
            let hidden = random_like(&[rows, width], 1, kind, hidden.device())?.try_mul(4.0)?;
            let vocab = head.size()[0];
            let changes = if are_changed { some_changes(rows, vocab)? } else { LogitChanges::new(vocab) };
            let all = |how| of_logprobs([&hidden, &head, &targets], how, &changes);
            let pairs = all(Logits::ByKernels)?.into_iter().zip(all(Logits::Wide)?);
            Ok(pairs.map(|(fast, plain)| Results { rows: vec![fast.size()[0]], fast, plain }).collect())
        })
}

/// Changes of each kind for the check, in which the target of row `n` of `rows` is token `n · (vocab / rows)`.
fn some_changes(rows: i64, vocab: i64) -> Result<LogitChanges> {
    let mut changes = LogitChanges::new(vocab);
    for row in 0..rows as usize {
        let target = (row as i64 * (vocab / rows)) as u32;
        let third: Vec<u32> = (0..vocab as u32).filter(|token| *token % 3 == row as u32 % 3).collect();
        let others: Vec<u32> = third.iter().copied().filter(|token| *token != target).collect();
        changes.bias(row, &[(target, 1.5)])?;
        changes.penalise(row, &third, 1.25)?;
        match row % 2 {
            0 => changes.keep_only(row, &[&others[..], &[target]].concat())?,
            _ => changes.exclude(row, &others)?,
        }
    }
    Ok(changes)
}

/// The log-probabilities of targets, the entropies, the sums of squared probabilities, and the gradients of a weighted
/// sum of the first two by the hidden states and the head.
fn of_logprobs([hidden, head, targets]: [&Tensor; 3], how: Logits, changes: &LogitChanges) -> Result<Vec<Tensor>> {
    let [hidden, head] = [hidden, head].map(|x| x.f_detach().and_then(|x| x.f_set_requires_grad(true)));
    let (hidden, head) = (hidden?, head?);
    let (found, sum) = tch::with_grad(|| -> Result<_> {
        let found = changed_logprobs(&hidden, &head, targets, 0.7, Beside::Entropies, how, changes)?;
        let weights = random_like(&[2, targets.size()[0]], 2, Kind::Float, head.device())?;
        let both = Tensor::f_stack(&[&found.logprobs, &found.beside], 0)?;
        Ok((found, both.f_mul(&weights)?.f_sum(Kind::Float)?))
    })?;
    sum.f_backward()?;
    let (alone, frozen) = (hidden.f_detach()?, head.f_detach()?);
    let squares = changed_logprobs(&alone, &frozen, targets, 0.7, Beside::SquaredProbabilities, how, changes)?;
    let numbers = [found.logprobs.f_detach()?, found.beside.f_detach()?, squares.beside];
    Ok(numbers.into_iter().chain([hidden.f_grad()?, head.f_grad()?]).collect())
}

/// Whether the logits of hidden states, with this head, can have 32 bits where both have 16.
pub(crate) fn can_be_wide(hidden: &Tensor, head: &Tensor) -> bool {
    let kind = hidden.kind();
    let is_half = matches!(kind, Kind::BFloat16 | Kind::Half) && head.kind() == kind;
    let [vocab, width] = <[i64; 2]>::try_from(head.size()).unwrap_or_default();
    is_half
        && is_usable(FastPath::WideLogits, hidden.device(), kind, &[width, vocab], || {
            let (rows, head) = (CHECKED.0, head.f_detach()?.f_narrow(0, 0, vocab.min(CHECKED.1))?);
            let both = |rows| {
                let hidden = random_like(&[rows, width], 1, kind, hidden.device())?;
                let (fast, plain) = (wide(&hidden, &head)?, hidden.f_linear(&head, None::<&Tensor>)?);
                Ok(Results { fast, plain, rows: vec![rows] })
            };
            rows.into_iter().map(both).collect()
        })
}

/// The product of numbers of 16 bits in 32.
fn wide(hidden: &Tensor, head: &Tensor) -> Result<Tensor> {
    let product = hidden.f_mm_dtype(&head.f_transpose(0, 1)?, Kind::Float)?;
    match product.kind() {
        Kind::Float => Ok(product),
        other => Err(PolicyError::Torch(format!("a product in 32 bits has {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;
    use crate::fast_paths::beyond_rounding;
    use tch::Device;

    #[test]
    fn the_cpu_draws_from_the_logits_that_training_computes() {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":1,"num_attention_heads":2}"#;
        let config: ModelConfig = serde_json::from_str(json).unwrap();
        for kind in [Kind::Float, Kind::BFloat16] {
            let model = Model::noise(config.clone(), kind, Device::Cpu).unwrap();
            let hidden = random_like(&[3, 16], 1, kind, Device::Cpu).unwrap();
            let (drawn, trained) = (model.logits_to_draw_from(&hidden).unwrap(), model.logits(&hidden).unwrap());
            assert!(drawn.kind() == kind && drawn.equal(&trained));
        }
    }

    #[test]
    fn the_check_of_changed_logits_compares_numbers_that_changes_move() {
        let (rows, vocab) = (8, 50);
        let [hidden, head] =
            [rows, vocab].map(|rows| random_like(&[rows, 16], rows, Kind::Float, Device::Cpu).unwrap());
        let targets = arange(0, rows, 1, Device::Cpu).unwrap().try_mul(vocab / rows).unwrap();
        let of = |changes: &LogitChanges| of_logprobs([&hidden, &head, &targets], Logits::Narrow, changes).unwrap();
        let pairs = of(&some_changes(rows, vocab).unwrap()).into_iter().zip(of(&LogitChanges::new(vocab)));
        for (changed, plain) in pairs {
            assert!(beyond_rounding(&changed, &plain, Kind::BFloat16).unwrap().is_some_and(f64::is_finite));
        }
    }

    #[test]
    fn a_product_in_32_bits_is_that_of_16_bits_or_an_error() {
        let random = |rows, seed| random_like(&[rows, 64], seed, Kind::BFloat16, Device::Cpu).unwrap();
        let (hidden, head) = (random(3, 1), random(50, 2));
        match wide(&hidden, &head) {
            Ok(found) => {
                let plain = hidden.linear(&head, None::<&Tensor>);
                assert_eq!(beyond_rounding(&found, &plain, Kind::BFloat16).unwrap(), None);
            }
            // libtorch 2.11 has it for GPUs alone.
            Err(error) => assert!(error.to_string().contains("aten::mm.dtype"), "{error}"),
        }
    }
}
