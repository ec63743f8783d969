//! PPO's clipped surrogate (Schulman et al., "Proximal policy optimization
//! algorithms", 2017, equation 7), with a separate bound on each side (DAPO's clip-higher) and a third one for very
//! unlikely tokens with a negative advantage (dual clip: Ye et al., "Mastering complex control in MOBA games", 2019).

use super::token_loss::{ClipRange, Surrogate, TokenLoss, Tokens};
use crate::config::ConfigError;
use gavel_torch::scalar::ScalarOperations;
use tch::TchError;

/// The bounds of the ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PpoClip {
    /// How far from 1 the ratio counts; 0.2 on both sides by default.
    pub range: ClipRange,
    /// The highest ratio that counts where the advantage is negative, above 1; no limit by default.
    pub clip_ratio_c: f64,
}

impl Default for PpoClip {
    fn default() -> Self {
        Self { range: ClipRange { clip_low: 0.2, clip_high: 0.2 }, clip_ratio_c: f64::INFINITY }
    }
}

impl PpoClip {
    /// The clip with these bounds, on one side only where the advantage is negative.
    pub fn new(clip_low: f64, clip_high: f64) -> Self {
        Self { range: ClipRange { clip_low, clip_high }, ..Self::default() }
    }
}

impl Surrogate for PpoClip {
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        let mut keys = self.range.keys();
        keys.push(("clip_ratio_c", &mut self.clip_ratio_c));
        keys
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.range.validate()?;
        match self.clip_ratio_c > 1.0 {
            true => Ok(()),
            false => Err(ConfigError::new("clip_ratio_c", "above 1", self.clip_ratio_c)),
        }
    }

    /// `−min(ratio · A, clip(ratio, 1 − low, 1 + high) · A)` for each token, with `ratio = p / p(old)`, and at most
    /// `−c · A` where `A < 0`; also whether a bound removed its gradient.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let mut found = self.range.clipped(&tokens.ratio()?, tokens.advantages, tokens)?;
        if self.clip_ratio_c.is_finite() {
            // Where the advantage is not negative, the bound is not above 0 and the loss is at most 0: no limit.
            let bound = tokens.advantages.try_mul(-self.clip_ratio_c)?;
            let is_bad = tokens.advantages.try_lt(0.0)?;
            let beyond = found.loss.f_gt_tensor(&bound)?.f_logical_and(&is_bad)?;
            found.statistics.push(("clip_fraction_dual", tokens.indicator(&beyond)?));
            found.loss = found.loss.f_minimum(&bound)?.f_where_self(&is_bad, &found.loss)?;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::{Given, run};
    use tch::{Kind, Tensor};

    /// Loss, gradient with respect to the log-probability, and which side was
    /// clipped, of one token.
    fn token(ratio: f64, advantage: f64) -> (f64, f64, (bool, bool)) {
        let out = run(&PpoClip::new(0.2, 0.3), &[Given::ratio(ratio, advantage)]);
        let is_clipped = |name| out.statistic(name)[0] == 1.0;
        let sides = (is_clipped("clip_fraction_low"), is_clipped("clip_fraction_high"));
        assert_eq!(is_clipped("clip_fraction"), sides.0 || sides.1);
        (out.loss[0], out.gradient[0], sides)
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
    fn the_dual_clip_bounds_what_a_bad_token_costs() {
        let dual = PpoClip { clip_ratio_c: 3.0, ..PpoClip::default() };
        let tokens = [(5.0, -2.0), (2.0, -2.0), (5.0, 2.0), (5.0, 0.0)];
        let out = run(&dual, &tokens.map(|(ratio, advantage)| Given::ratio(ratio, advantage)));
        // 3 · 2 instead of 5 · 2, and no gradient; within the bound nothing changes.
        let expected = [(6.0, 0.0), (4.0, 4.0), (-2.4, 0.0), (0.0, 0.0)];
        for (at, (loss, gradient)) in expected.into_iter().enumerate() {
            assert!(
                (out.loss[at] - loss).abs() < 1e-12 && (out.gradient[at] - gradient).abs() < 1e-12,
                "{at}: {out:?}"
            );
        }
        assert_eq!(out.statistic("clip_fraction_dual"), [1.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn a_ratio_beyond_floating_point_keeps_the_gradient_finite() {
        let logprob = Tensor::from_slice(&[-0.5f32]).set_requires_grad(true);
        let (old, advantages) = (Tensor::from_slice(&[-200f32]), Tensor::from_slice(&[1f32]));
        let tokens = Tokens { logprobs: &logprob, old: &old, advantages: &advantages, context: None };
        let out = PpoClip::default().token_loss(&tokens).unwrap();
        out.loss.sum(Kind::Float).backward();
        assert!((out.loss.double_value(&[0]) + 1.2).abs() < 1e-6);
        assert_eq!(logprob.grad().double_value(&[0]), 0.0);
    }
}
