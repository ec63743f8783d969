//! PPO's clipped surrogate (Schulman et al., "Proximal policy optimization
//! algorithms", 2017, equation 7), with a separate bound on each side.

use super::token_loss::{TokenLoss, Tokens};
use crate::config::{ConfigError, check};
use gavel_torch::scalar::ScalarOperations;
use tch::{TchError, Tensor};

/// Beyond this the ratio has no meaning and its exponential no gradient in 32
/// bits.
const MAX_LOG_RATIO: f64 = 20.0;

/// The bounds of the ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PpoClip {
    /// How far below 1 the ratio counts; 0.2 by default.
    pub clip_low: f64,
    /// How far above 1 the ratio counts; 0.2 by default.
    pub clip_high: f64,
}

impl Default for PpoClip {
    fn default() -> Self {
        Self { clip_low: 0.2, clip_high: 0.2 }
    }
}

impl PpoClip {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        check("clip_low", self.clip_low, "at least 0 and below 1", |value| (0.0..1.0).contains(&value))?;
        check("clip_high", self.clip_high, "a number of at least 0", |value| value >= 0.0)
    }

    /// `−min(ratio · A, clip(ratio, 1 − low, 1 + high) · A)` for each token, with `ratio = p / p(old)`; also whether a
    /// bound removed its gradient.
    pub(super) fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let Tokens { logprobs, old, advantages } = tokens;
        let [low, high] = [1.0 - self.clip_low, 1.0 + self.clip_high];
        let ratio = logprobs.f_sub(old)?.try_clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)?.f_exp()?;
        let clipped = ratio.try_clamp(low, high)?;
        let surrogate = ratio.f_mul(advantages)?.f_minimum(&clipped.f_mul(advantages)?)?;

        let both = |a: Tensor, b: Tensor| a.f_logical_and(&b)?.f_to_kind(logprobs.f_kind()?);
        let clipped_low = both(ratio.try_lt(low)?, advantages.try_lt(0.0)?)?;
        let clipped_high = both(ratio.try_gt(high)?, advantages.try_gt(0.0)?)?;
        Ok(TokenLoss {
            loss: surrogate.f_neg()?,
            statistics: vec![
                ("clip_fraction", clipped_low.f_add(&clipped_high)?),
                ("clip_fraction_high", clipped_high),
                ("clip_fraction_low", clipped_low),
            ],
        })
    }
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
        let tokens = Tokens { logprobs: &logprob, old: &old, advantages: &advantage };
        let out = PpoClip { clip_low: 0.2, clip_high: 0.3 }.token_loss(&tokens).unwrap();
        out.loss.sum(Kind::Double).backward();
        let value = |tensor: &Tensor| tensor.double_value(&[0]);
        let is_clipped = |name| out.statistics.iter().any(|(known, of)| *known == name && value(of) == 1.0);
        let sides = (is_clipped("clip_fraction_low"), is_clipped("clip_fraction_high"));
        assert_eq!(is_clipped("clip_fraction"), sides.0 || sides.1);
        (value(&out.loss), value(&logprob.grad()), sides)
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
        let (old, advantages) = (Tensor::from_slice(&[-200f32]), Tensor::from_slice(&[1f32]));
        let tokens = Tokens { logprobs: &logprob, old: &old, advantages: &advantages };
        let out = PpoClip::default().token_loss(&tokens).unwrap();
        out.loss.sum(Kind::Float).backward();
        assert!((out.loss.double_value(&[0]) + 1.2).abs() < 1e-6);
        assert_eq!(logprob.grad().double_value(&[0]), 0.0);
    }
}
