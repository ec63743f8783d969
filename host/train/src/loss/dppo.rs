//! Divergence PPO (DPPO, 2026,
//! <https://arxiv.org/abs/2602.04879>): a token that would move the policy further away is masked by the divergence of
//! the distributions, estimated from the token against all others, instead of by the ratio.

use super::token_loss::{ClipRange, Surrogate, TokenLoss, Tokens};
use crate::config::{ConfigError, check};
use gavel_torch::scalar::ScalarOperations;
use tch::{TchError, Tensor};

/// Added to probabilities before a logarithm, the same as in verl.
const EPSILON: f64 = 1e-8;

/// The distance of two distributions of which only the probability of one token is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Divergence {
    /// Total variation: the difference of the probabilities.
    TotalVariation,
    /// KL(old ‖ current) of the token against all others.
    Kl,
}

/// The bounds of the divergence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dppo {
    /// The divergence.
    pub divergence: Divergence,
    /// The most that the probability of a token may have fallen (`clip_low`) or risen (`clip_high`), as a divergence;
    /// 0.2 by default.
    pub range: ClipRange,
    /// The highest ratio that is a weight; 20 by default.
    pub clip_ratio_c: f64,
}

impl Dppo {
    /// The loss with verl's bounds.
    pub fn new(divergence: Divergence) -> Self {
        Self { divergence, range: ClipRange { clip_low: 0.2, clip_high: 0.2 }, clip_ratio_c: 20.0 }
    }

    /// Where a token is within the bounds or moves back to them.
    fn is_kept(&self, tokens: &Tokens) -> Result<Tensor, TchError> {
        let (now, old) = (tokens.logprobs.f_detach()?.f_exp()?, tokens.old.f_exp()?);
        let moved = now.f_sub(&old)?;
        let ClipRange { clip_low, clip_high } = self.range;
        let (if_good, if_bad) = match self.divergence {
            Divergence::TotalVariation => (moved.try_le(clip_high)?, moved.try_ge(-clip_low)?),
            Divergence::Kl => {
                let rest = |probability: &Tensor| probability.f_neg()?.try_add(1.0 + EPSILON)?.f_log();
                let others = rest(&old)?.f_sub(&rest(&now)?)?.f_mul(&old.f_neg()?.try_add(1.0)?)?;
                let kl = tokens.old.f_sub(&tokens.logprobs.f_detach()?)?.f_mul(&old)?.f_add(&others)?;
                (
                    kl.try_le(clip_high)?.f_logical_or(&moved.try_le(0.0)?)?,
                    kl.try_le(clip_low)?.f_logical_or(&moved.try_ge(0.0)?)?,
                )
            }
        };
        if_good.f_where_self(&tokens.is_good()?, &if_bad)
    }
}

impl Surrogate for Dppo {
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        let mut keys = self.range.keys();
        keys.push(("clip_ratio_c", &mut self.clip_ratio_c));
        keys
    }

    fn validate(&self) -> Result<(), ConfigError> {
        check("clip_low", self.range.clip_low, "a number of at least 0", |value| value >= 0.0)?;
        self.range.validate_high()?;
        check("clip_ratio_c", self.clip_ratio_c, "above 1", |value| value > 1.0)
    }

    /// `−sg(M · min(ratio, c)) · A · log p` for each token, with `M` 1 where the token is kept and 0 elsewhere.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let ratio = tokens.ratio()?.f_detach()?;
        let kept = tokens.indicator(&self.is_kept(tokens)?)?;
        let truncated = tokens.indicator(&ratio.try_gt(self.clip_ratio_c)?)?.f_mul(&kept)?;
        let weight = ratio.try_clamp(0.0, self.clip_ratio_c)?.f_mul(&kept)?;
        let loss = weight.f_mul(tokens.advantages)?.f_mul(tokens.logprobs)?.f_neg()?;
        let masked = kept.f_neg()?.try_add(1.0)?;
        Ok(TokenLoss { loss, statistics: vec![("mask_fraction", masked), ("truncated_fraction", truncated)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::{Given, assert_close, run};

    fn token(old: f64, now: f64, advantage: f64) -> Given {
        Given { logprob: now.ln(), old: old.ln(), advantage }
    }

    #[test]
    fn what_moves_the_policy_further_away_is_masked() {
        let tokens = [
            token(0.1, 0.4, 1.0),
            token(0.4, 0.1, 1.0),
            token(0.4, 0.1, -1.0),
            token(0.1, 0.4, -1.0),
            token(0.001, 0.1, 1.0),
        ];
        for divergence in [Divergence::TotalVariation, Divergence::Kl] {
            let out = run(&Dppo::new(divergence), &tokens);
            // KL of 0.1 to 0.4 is 0.1 · ln ¼ + 0.9 · ln 1.5 = 0.226; of 0.4 to 0.1, 0.4 · ln 4 + 0.6 · ln ⅔ = 0.311; of
            // 0.001 to 0.1, 0.001 · ln 0.01 + 0.999 · ln 1.11 = 0.100, whatever the ratio.
            assert_close(&out.gradient, &[0.0, -0.25, 0.0, 4.0, -20.0]);
            assert_close(out.statistic("mask_fraction"), &[1.0, 0.0, 1.0, 0.0, 0.0]);
            assert_close(out.statistic("truncated_fraction"), &[0.0, 0.0, 0.0, 0.0, 1.0]);
        }
    }
}
