//! IcePop (Ling team, "Every step evolves", 2025, <https://arxiv.org/abs/2510.18855>): the
//! ratio is a weight, and tokens whose ratio is out of bounds on either side are not learned from.

use super::token_loss::{Surrogate, TokenLoss, Tokens};
use crate::config::{ConfigError, check};
use gavel_torch::scalar::ScalarOperations;
use tch::TchError;

/// The bounds of the ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IcePop {
    /// The lowest ratio that is learned from; 0.5 by default.
    pub mask_low: f64,
    /// The highest; 5 by default.
    pub mask_high: f64,
}

impl Default for IcePop {
    fn default() -> Self {
        Self { mask_low: 0.5, mask_high: 5.0 }
    }
}

impl Surrogate for IcePop {
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        vec![("mask_low", &mut self.mask_low), ("mask_high", &mut self.mask_high)]
    }

    fn validate(&self) -> Result<(), ConfigError> {
        check("mask_low", self.mask_low, "from 0 to 1", |value| (0.0..=1.0).contains(&value))?;
        check("mask_high", self.mask_high, "a number of at least 1", |value| value >= 1.0)
    }

    /// `−sg(M(ratio)) · A · log p` for each token, with `M` the ratio within the bounds and 0 outside.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let ratio = tokens.ratio()?.f_detach()?;
        let low = tokens.indicator(&ratio.try_lt(self.mask_low)?)?;
        let high = tokens.indicator(&ratio.try_gt(self.mask_high)?)?;
        let masked = low.f_add(&high)?;
        let weight = ratio.f_mul(&masked.f_neg()?.try_add(1.0)?)?;
        let loss = weight.f_mul(tokens.advantages)?.f_mul(tokens.logprobs)?.f_neg()?;
        Ok(TokenLoss {
            loss,
            statistics: vec![("mask_fraction", masked), ("mask_fraction_high", high), ("mask_fraction_low", low)],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::{Given, assert_close, run};

    #[test]
    fn both_sides_are_masked_whatever_the_advantage() {
        let ratios = [6.0, 6.0, 0.4, 2.0, 0.6];
        let out = run(&IcePop::default(), &ratios.map(|ratio| Given::ratio(ratio, -1.0)));
        assert_close(&out.gradient, &[0.0, 0.0, 0.0, 2.0, 0.6]);
        assert_close(&out.loss[..3], &[0.0; 3]);
        assert_close(&out.loss[3..], &[2.0 * (2f64.ln() - 1.0), 0.6 * (0.6f64.ln() - 1.0)]);
        assert_close(out.statistic("mask_fraction_low"), &[0.0, 0.0, 1.0, 0.0, 0.0]);
    }
}
