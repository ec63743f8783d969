//! The log-probabilities of given tokens under a model.

use crate::batch::micro_batches;
use crate::config::check;
use crate::error::Result;
use crate::experience::Experience;
use gavel_policy::Model;
use tch::Tensor;

/// The log-probability of every response token under `softmax(logits /
/// temperature)`; 0 for tokens that the loss mask excludes. No gradient is
/// kept. Like an update, it computes micro-batches of at most `max_tokens`
/// tokens.
///
/// # Errors
/// The temperature is not positive, a row is malformed, or the model fails.
pub fn log_probs(
    model: &Model,
    experiences: &[Experience],
    temperature: f64,
    max_tokens: usize,
) -> Result<Vec<Vec<f32>>> {
    let found =
        token_values(model, experiences, temperature, max_tokens, |_, _, logprobs| Ok(logprobs.shallow_clone()))?;
    let narrow = |row: Vec<f64>| row.into_iter().map(|value| value as f32).collect();
    Ok(found.into_iter().map(narrow).collect())
}

/// A value of every response token, from its logits, their normaliser and its log-probability, in 64 bits; otherwise
/// as [`log_probs`].
pub(crate) fn token_values(
    model: &Model,
    experiences: &[Experience],
    temperature: f64,
    max_tokens: usize,
    value: impl Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Vec<Vec<f64>>> {
    check("temperature", temperature, "a number above 0", |value| value > 0.0)?;
    let _guard = tch::no_grad_guard();
    let sequences: Vec<_> = experiences.iter().map(Experience::sequence).collect();
    let mut out: Vec<Vec<f64>> = experiences.iter().map(|row| vec![0.0; row.response.len()]).collect();
    for batch in micro_batches(&sequences, max_tokens, model)? {
        let hidden = model.hidden_packed(&batch.packed)?;
        for chunk in batch.chunks(model)? {
            let logits = chunk.logits(model, &hidden, temperature)?;
            let (logprobs, normaliser) = target_logprobs(&logits, &chunk.targets)?;
            let values = Vec::<f64>::try_from(value(&logits, &normaliser, &logprobs)?.f_to_kind(tch::Kind::Double)?)?;
            for (&(row, at), value) in chunk.tokens.iter().zip(values) {
                out[row][at] = value;
            }
        }
    }
    Ok(out)
}

/// `log softmax(logits)` at `targets`, `[tokens]`, of `logits`, `[tokens,
/// vocab]`, without the normalised matrix; also the normaliser, `[tokens]`.
pub(crate) fn target_logprobs(logits: &Tensor, targets: &Tensor) -> Result<(Tensor, Tensor)> {
    let normaliser = logits.f_logsumexp([-1], false)?;
    let chosen = logits.f_gather(-1, &targets.f_unsqueeze(-1)?, false)?.f_squeeze_dim(-1)?;
    Ok((chosen.f_sub(&normaliser)?, normaliser))
}
