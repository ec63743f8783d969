//! Geometric-mean policy optimization (GMPO: Zhao et al., 2025, <https://arxiv.org/abs/2507.20673>): the ratio of a
//! trajectory is the geometric mean of its tokens' ratios, each of which is clipped first.

use super::aggregation::Aggregation;
use super::token_loss::{ClipRange, Context, LearnedToken, Surrogate, TokenLoss, Tokens, mean};
use crate::config::ConfigError;
use gavel_torch::scalar::ScalarOperations;
use tch::TchError;

/// The bounds of the logarithm of a token's ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoMean {
    /// How far from 0 the logarithm counts; 0.4 on both sides by default, as published.
    pub range: ClipRange,
}

impl Default for GeoMean {
    fn default() -> Self {
        Self { range: ClipRange { clip_low: 0.4, clip_high: 0.4 } }
    }
}

impl GeoMean {
    /// The log-ratio as far as it counts: it is clipped where this lowers the surrogate.
    fn clipped(&self, log_ratio: f64, advantage: f64) -> f64 {
        let clipped = log_ratio.clamp(-self.range.clip_low, self.range.clip_high);
        // The sign of 0 is 0.
        let sign = if advantage == 0.0 { 0.0 } else { advantage.signum() };
        sign * f64::min(sign * log_ratio, sign * clipped)
    }
}

impl Surrogate for GeoMean {
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        self.range.keys()
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.range.validate_high()?;
        crate::config::check("clip_low", self.range.clip_low, "a number of at least 0", |value| value >= 0.0)
    }

    fn aggregation(&self) -> Aggregation {
        Aggregation::SeqMeanTokenMean
    }

    fn context(&self) -> Option<&dyn Context> {
        Some(self)
    }

    /// `−A · G` for each token, with the geometric mean `G` of the trajectory's clipped ratios. The mean of this over
    /// the trajectory has the value and the gradient of equation 4; `A` is the mean over the trajectory.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let [log_mean, advantage] = tokens.context()?;
        let log_ratio = tokens.logprobs.f_sub(tokens.old)?;
        let clipped = log_ratio.try_clamp(-self.range.clip_low, self.range.clip_high)?;
        let sign = tokens.advantages.f_sign()?;
        let counted = log_ratio.f_mul(&sign)?.f_minimum(&clipped.f_mul(&sign)?)?.f_mul(&sign)?;
        let ratio = counted.f_sub(&counted.f_detach()?)?.f_add(log_mean)?.f_exp()?;
        let is_clipped = tokens.indicator(&log_ratio.f_ne_tensor(&clipped)?)?;
        let high = is_clipped.f_mul(&tokens.indicator(&tokens.is_good()?)?)?;
        let low = is_clipped.f_mul(&tokens.indicator(&tokens.advantages.try_lt(0.0)?)?)?;
        Ok(TokenLoss {
            loss: ratio.f_mul(advantage)?.f_neg()?,
            statistics: vec![("clip_fraction_high", high), ("clip_fraction_low", low)],
        })
    }
}

impl Context for GeoMean {
    /// The logarithm of the geometric mean, and the mean advantage.
    fn of(&self, rows: &[Vec<LearnedToken>]) -> Vec<Vec<[f64; 2]>> {
        let row = |row: &Vec<LearnedToken>| {
            let log_mean = mean(row, |token| self.clipped(token.log_ratio(), token.advantage));
            vec![[log_mean, mean(row, |token| token.advantage)]; row.len()]
        };
        rows.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::{Given, assert_close, run_rows};

    #[test]
    fn tokens_are_clipped_before_the_mean_and_only_where_it_lowers_the_surrogate() {
        let token = |log_ratio: f64, advantage| Given { logprob: -2.0 + log_ratio, old: -2.0, advantage };
        // 1 counts as 0.4, and −1 as itself: the mean is −0.3.
        let good = [token(1.0, 2.0), token(-1.0, 2.0)];
        // −1 counts as −0.4, and 1 as itself: the mean is 0.3.
        let bad = [token(-1.0, -2.0), token(1.0, -2.0)];
        let out = run_rows(&GeoMean::default(), &[&good, &bad]);
        let (low, high) = (2.0 * (-0.3f64).exp(), 2.0 * 0.3f64.exp());
        assert_close(&out.loss, &[-low, -low, high, high]);
        assert_close(&out.gradient, &[0.0, -low, 0.0, high]);
    }
}
