//! CISPO (MiniMax, "MiniMax-M1", 2025, <https://arxiv.org/abs/2506.13585>, equations 4 and 5): the ratio is a weight
//! with a bound, and no token loses its gradient.

use super::token_loss::{ClipRange, Surrogate, TokenLoss, Tokens};
use crate::config::{ConfigError, check};
use gavel_torch::scalar::ScalarOperations;
use tch::TchError;

/// The bounds of the weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cispo {
    /// How far from 1 the weight may be; by default up to 0.2 above, and any number below, as published.
    pub range: ClipRange,
}

impl Default for Cispo {
    fn default() -> Self {
        Self { range: ClipRange { clip_low: 1.0, clip_high: 0.2 } }
    }
}

impl Surrogate for Cispo {
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        self.range.keys()
    }

    fn validate(&self) -> Result<(), ConfigError> {
        check("clip_low", self.range.clip_low, "from 0 to 1", |value| (0.0..=1.0).contains(&value))?;
        self.range.validate_high()
    }

    /// `−sg(clip(ratio)) · A · log p` for each token.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let ratio = tokens.ratio()?.f_detach()?;
        let weight = ratio.try_clamp(1.0 - self.range.clip_low, 1.0 + self.range.clip_high)?;
        let clipped = tokens.indicator(&ratio.f_ne_tensor(&weight)?)?;
        let loss = weight.f_mul(tokens.advantages)?.f_mul(tokens.logprobs)?.f_neg()?;
        Ok(TokenLoss { loss, statistics: vec![("clip_fraction", clipped)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::{Given, assert_close, run};

    #[test]
    fn a_clipped_token_keeps_its_gradient() {
        let tokens = [Given::ratio(2.0, 1.0), Given::ratio(0.25, -1.0), Given::ratio(2.0, -1.0)];
        let out = run(&Cispo::default(), &tokens);
        assert_close(&out.gradient, &[-1.2, 0.25, 1.2]);
        let logprob = |ratio: f64| ratio.ln() - 1.0;
        assert_close(&out.loss, &[-1.2 * logprob(2.0), 0.25 * logprob(0.25), 1.2 * logprob(2.0)]);
        assert_close(out.statistic("clip_fraction"), &[1.0, 0.0, 1.0]);
    }
}
