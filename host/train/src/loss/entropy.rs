//! The entropy of the distributions that the tokens are drawn from.

use crate::error::Result;
use gavel_torch::scalar::ScalarOperations;
use tch::{Kind, Tensor};

/// Rows of the logits whose entropy is computed at once: it needs two
/// temporaries of their size.
const CHUNK: i64 = 1024;

/// The sum over tokens of the entropy of `softmax(logits)`, without gradients: `log Z − Σ p · z`.
pub(super) fn total_entropy(logits: &Tensor, normaliser: &Tensor) -> Result<Tensor> {
    let (logits, normaliser) = (logits.f_detach()?, normaliser.f_detach()?);
    let mut total = normaliser.f_sum(Kind::Double)?;
    for (z, log_z) in logits.f_split(CHUNK, 0)?.iter().zip(normaliser.f_split(CHUNK, 0)?) {
        total = total.f_sub(&mean_logit(z, &log_z)?.f_sum(Kind::Double)?)?;
    }
    Ok(total)
}

/// The entropy for each token, `[tokens]`, through which gradients flow.
pub(super) fn entropies(logits: &Tensor, normaliser: &Tensor) -> Result<Tensor> {
    Ok(normaliser.f_sub(&mean_logit(logits, normaliser)?)?)
}

/// `Σ p · z`, `[tokens]`.
fn mean_logit(logits: &Tensor, normaliser: &Tensor) -> Result<Tensor> {
    let probabilities = logits.f_sub(&normaliser.f_unsqueeze(-1)?)?.f_exp()?;
    Ok(probabilities.f_mul(logits)?.f_sum_dim_intlist([-1i64].as_slice(), false, None)?)
}

/// For each token, `1 − 2 p(token) + Σ p²`: the squared norm of the gradient of its log-probability by the logits, as
/// the optimal token baseline needs it.
pub(crate) fn gradient_norms(logits: &Tensor, normaliser: &Tensor, logprobs: &Tensor) -> Result<Tensor> {
    let mut found = Vec::new();
    for (z, log_z) in logits.f_split(CHUNK, 0)?.iter().zip(normaliser.f_split(CHUNK, 0)?) {
        let squares = z.f_sub(&log_z.f_unsqueeze(-1)?)?.try_mul(2.0)?.f_exp()?;
        found.push(squares.f_sum_dim_intlist([-1i64].as_slice(), false, None)?);
    }
    Ok(Tensor::f_cat(&found, 0)?.f_sub(&logprobs.f_exp()?.try_mul(2.0)?)?.try_add(1.0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entropy_and_its_gradient_are_those_of_the_distribution() {
        let probabilities = [0.5f64, 0.25, 0.25];
        let logits = Tensor::from_slice(&probabilities.map(|p| p.ln() + 3.0)).view([1, 3]).set_requires_grad(true);
        let normaliser = logits.logsumexp([-1], false);
        let expected: f64 = -probabilities.iter().map(|p| p * p.ln()).sum::<f64>();
        let each = entropies(&logits, &normaliser).unwrap();
        assert!((each.double_value(&[0]) - expected).abs() < 1e-12);
        let total = total_entropy(&logits, &normaliser).unwrap();
        assert!((total.double_value(&[]) - expected).abs() < 1e-12 && !total.requires_grad());
        each.sum(Kind::Double).backward();
        // −p · (ln p + H)
        for (at, p) in probabilities.iter().enumerate() {
            assert!((logits.grad().double_value(&[0, at as i64]) + p * (p.ln() + expected)).abs() < 1e-12);
        }
    }

    #[test]
    fn the_norm_of_the_gradient_is_that_of_one_hot_minus_probabilities() {
        let probabilities = [0.5f64, 0.25, 0.25];
        let logits = Tensor::from_slice(&probabilities.map(f64::ln)).view([1, 3]);
        let logprobs = Tensor::from_slice(&[0.25f64.ln()]);
        let found = gradient_norms(&logits, &logits.logsumexp([-1], false), &logprobs).unwrap();
        // The squares of −½, ¾ and −¼.
        assert!((found.double_value(&[0]) - 0.875).abs() < 1e-12);
    }
}
