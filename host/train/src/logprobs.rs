//! The log-probabilities of given tokens under a model.

use crate::batch::micro_batches;
use crate::config::check;
use crate::error::Result;
use crate::experience::Experience;
use crate::logit_changes::logit_changes;
use gavel_policy::Model;
use gavel_torch::head::{Beside, TokenLogprobs};
use gavel_torch::scalar::ScalarOperations;
use tch::{Kind, Tensor};

/// The log-probability of every response token under `softmax(logits /
/// temperature)`, with the logits and among the tokens that it was drawn from
/// ([`Experience::masks`], [`Experience::drawing`]); 0 for tokens that the loss
/// mask excludes. No gradient is kept. Like an update, it computes
/// micro-batches of at most `max_tokens` tokens.
///
/// # Errors
/// The temperature is not positive, a row is malformed, or the model fails.
pub fn log_probs(
    model: &Model,
    experiences: &[Experience],
    temperature: f64,
    max_tokens: usize,
) -> Result<Vec<Vec<f32>>> {
    let found = token_values(model, experiences, temperature, max_tokens, Beside::Nothing, |of| Ok(of.logprobs))?;
    let narrow = |row: Vec<f64>| row.into_iter().map(|value| value as f32).collect();
    Ok(found.into_iter().map(narrow).collect())
}

/// A value of every response token, from its log-probability and what is computed beside it, in 64 bits; otherwise as
/// [`log_probs`].
pub(crate) fn token_values(
    model: &Model,
    experiences: &[Experience],
    temperature: f64,
    max_tokens: usize,
    beside: Beside,
    value: impl Fn(TokenLogprobs) -> Result<Tensor>,
) -> Result<Vec<Vec<f64>>> {
    check("temperature", temperature, "a number above 0", |value| value > 0.0)?;
    let _guard = tch::no_grad_guard();
    let sequences: Vec<_> = experiences.iter().map(Experience::sequence).collect();
    let mut out: Vec<Vec<f64>> = experiences.iter().map(|row| vec![0.0; row.response.len()]).collect();
    for batch in micro_batches(&sequences, max_tokens, model)? {
        let hidden = model.hidden_packed(&batch.packed)?;
        for chunk in batch.chunks(model)? {
            let changes = logit_changes(experiences, chunk.tokens, model.config().vocab_size)?;
            let values = value(chunk.changed_logprobs(model, &hidden, temperature, beside, &changes)?)?;
            let values = Vec::<f64>::try_from(values.f_to_kind(Kind::Double)?)?;
            for (&(row, at), value) in chunk.tokens.iter().zip(values) {
                out[row][at] = value;
            }
        }
    }
    Ok(out)
}

/// For each token, `1 − 2 p(token) + Σ p²`: the squared norm of the gradient of its log-probability by the logits that it
/// was drawn from, as the optimal token baseline needs it. It is computed from [`Beside::SquaredProbabilities`].
pub(crate) fn gradient_norms(of: TokenLogprobs) -> Result<Tensor> {
    Ok(of.beside.f_sub(&of.logprobs.f_exp()?.try_mul(2.0)?)?.try_add(1.0)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_torch::head::{Logits, token_logprobs};

    #[test]
    fn the_norm_of_the_gradient_is_that_of_one_hot_minus_probabilities() {
        let logits = [0.5f64, 0.25, 0.25].map(f64::ln);
        let (hidden, head) = (Tensor::from_slice(&[1.0]).view([1, 1]), Tensor::from_slice(&logits).view([3, 1]));
        let target = Tensor::from_slice(&[1i64]);
        let found = token_logprobs(&hidden, &head, &target, 1.0, Beside::SquaredProbabilities, Logits::Narrow).unwrap();
        // The squares of −½, ¾ and −¼.
        assert!((gradient_norms(found).unwrap().double_value(&[0]) - 0.875).abs() < 1e-12);
    }
}
