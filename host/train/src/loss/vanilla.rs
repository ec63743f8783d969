//! PPO's clipped surrogate (Schulman et al., "Proximal policy optimization
//! algorithms", 2017, equation 7), with a bound of its own on each side.

use tch::{TchError, Tensor};

/// Beyond this the ratio has no meaning and its exponential no gradient in 32
/// bits.
const MAX_LOG_RATIO: f64 = 20.0;

/// What each token contributes, all `[tokens]`.
pub struct TokenLoss {
    /// The loss.
    pub loss: Tensor,
    /// 1 where the lower bound took the gradient away, else 0.
    pub clipped_low: Tensor,
    /// 1 where the upper bound took the gradient away, else 0.
    pub clipped_high: Tensor,
}

/// `−min(ratio · A, clip(ratio, 1 − low, 1 + high) · A)` for each token, with
/// `ratio = p / p(old)`. All tensors are `[tokens]`; gradients flow through
/// `logprobs` alone.
pub fn vanilla(
    logprobs: &Tensor,
    old: &Tensor,
    advantages: &Tensor,
    clip_low: f64,
    clip_high: f64,
) -> Result<TokenLoss, TchError> {
    let ratio = logprobs.f_sub(old)?.f_clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)?.f_exp()?;
    let clipped = ratio.f_clamp(1.0 - clip_low, 1.0 + clip_high)?;
    let surrogate = ratio.f_mul(advantages)?.f_minimum(&clipped.f_mul(advantages)?)?;
    let both = |a: Tensor, b: Tensor| a.f_logical_and(&b)?.f_to_kind(logprobs.f_kind()?);
    Ok(TokenLoss {
        loss: surrogate.f_neg()?,
        clipped_low: both(ratio.f_lt(1.0 - clip_low)?, advantages.f_lt(0.0)?)?,
        clipped_high: both(ratio.f_gt(1.0 + clip_high)?, advantages.f_gt(0.0)?)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Kind;

    /// Loss, gradient with respect to the log-probability, and which side was
    /// clipped, of one token.
    fn token(ratio: f64, advantage: f64) -> (f64, f64, (bool, bool)) {
        let logprob = Tensor::from_slice(&[-1.0 + ratio.ln()]).set_requires_grad(true);
        let (old, advantage) = (Tensor::from_slice(&[-1.0]), Tensor::from_slice(&[advantage]));
        let out = vanilla(&logprob, &old, &advantage, 0.2, 0.3).unwrap();
        out.loss.sum(Kind::Double).backward();
        let value = |tensor: &Tensor| tensor.double_value(&[0]);
        (value(&out.loss), value(&logprob.grad()), (value(&out.clipped_low) == 1.0, value(&out.clipped_high) == 1.0))
    }

    fn assert_token(found: (f64, f64, (bool, bool)), expected: (f64, f64, (bool, bool))) {
        assert!((found.0 - expected.0).abs() < 1e-12, "loss {found:?} is not {expected:?}");
        assert!((found.1 - expected.1).abs() < 1e-12, "gradient {found:?} is not {expected:?}");
        assert_eq!(found.2, expected.2);
    }

    #[test]
    fn each_side_is_clipped_only_where_it_would_help() {
        // d(−ratio · A)/d(log p) = −ratio · A where it is not clipped.
        assert_token(token(1.1, 2.0), (-2.2, -2.2, (false, false)));
        assert_token(token(1.5, 2.0), (-2.6, 0.0, (false, true)));
        assert_token(token(0.5, 2.0), (-1.0, -1.0, (false, false)));
        assert_token(token(0.5, -2.0), (1.6, 0.0, (true, false)));
        assert_token(token(1.5, -2.0), (3.0, 3.0, (false, false)));
        assert_token(token(0.5, 0.0), (0.0, 0.0, (false, false)));
    }

    #[test]
    fn a_ratio_beyond_floating_point_keeps_the_gradient_finite() {
        let logprob = Tensor::from_slice(&[-0.5f32]).set_requires_grad(true);
        let out = vanilla(&logprob, &Tensor::from_slice(&[-200f32]), &Tensor::from_slice(&[1f32]), 0.2, 0.2).unwrap();
        out.loss.sum(Kind::Float).backward();
        assert!((out.loss.double_value(&[0]) + 1.2).abs() < 1e-6);
        assert_eq!(logprob.grad().double_value(&[0]), 0.0);
    }
}
