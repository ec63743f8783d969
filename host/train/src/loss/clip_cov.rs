//! Clip-Cov (Cui et al., 2025, <https://arxiv.org/abs/2505.22617>, equation 11): PPO's clipped surrogate without the
//! gradient of a few tokens, drawn from those with a large covariance of log-probability and advantage.

use super::covariance::{covariances, share};
use super::token_loss::{ClipRange, Context, LearnedToken, Surrogate, TokenLoss, Tokens};
use crate::config::{ConfigError, check};
use std::collections::BTreeSet;
use tch::TchError;

/// Which tokens lose their gradient.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClipCov {
    /// How far from 1 the ratio counts; 0.2 on both sides by default.
    pub range: ClipRange,
    /// The share of all tokens that lose their gradient, at least one token; 0.0002 by default.
    pub clip_cov_ratio: f64,
    /// They are drawn from tokens with a covariance above this; 1 by default.
    pub clip_cov_lb: f64,
    /// They are drawn from tokens with a covariance below this; 5 by default.
    pub clip_cov_ub: f64,
}

impl Default for ClipCov {
    fn default() -> Self {
        let range = ClipRange { clip_low: 0.2, clip_high: 0.2 };
        Self { range, clip_cov_ratio: 2e-4, clip_cov_lb: 1.0, clip_cov_ub: 5.0 }
    }
}

impl Surrogate for ClipCov {
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        let mut keys = self.range.keys();
        keys.push(("clip_cov_ratio", &mut self.clip_cov_ratio));
        keys.push(("clip_cov_lb", &mut self.clip_cov_lb));
        keys.push(("clip_cov_ub", &mut self.clip_cov_ub));
        keys
    }

    fn validate(&self) -> Result<(), ConfigError> {
        self.range.validate()?;
        check("clip_cov_ratio", self.clip_cov_ratio, "above 0 and at most 1", |ratio| ratio > 0.0 && ratio <= 1.0)?;
        check("clip_cov_lb", self.clip_cov_lb, "a number", |_| true)?;
        check("clip_cov_ub", self.clip_cov_ub, "above clip_cov_lb", |bound| bound > self.clip_cov_lb)
    }

    fn context(&self) -> Option<&dyn Context> {
        Some(self)
    }

    /// The clipped surrogate of each token, and 0 for the tokens that were drawn.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let [drawn, kept] = tokens.context()?;
        let mut found = self.range.clipped(&tokens.ratio()?, tokens.advantages, tokens)?;
        found.loss = found.loss.f_mul(kept)?;
        found.statistics.push(("covariance_fraction", drawn.shallow_clone()));
        Ok(found)
    }
}

impl Context for ClipCov {
    /// Whether a token is drawn, and whether it is kept.
    fn of(&self, rows: &[Vec<LearnedToken>]) -> Vec<Vec<[f64; 2]>> {
        let ClipRange { clip_low, clip_high } = self.range;
        let is_clipped = |token: &LearnedToken| {
            let ratio = token.log_ratio().exp();
            (token.advantage > 0.0 && ratio > 1.0 + clip_high) || (token.advantage < 0.0 && ratio < 1.0 - clip_low)
        };
        let covariances = covariances(rows);
        let mut candidates = Vec::new();
        for (row, tokens) in rows.iter().enumerate() {
            for (at, token) in tokens.iter().enumerate() {
                let covariance = covariances[row][at];
                if covariance > self.clip_cov_lb && covariance < self.clip_cov_ub && !is_clipped(token) {
                    candidates.push((token.random, row, at));
                }
            }
        }
        candidates.sort_unstable();
        let drawn: BTreeSet<(usize, usize)> =
            candidates.into_iter().take(share(self.clip_cov_ratio, rows)).map(|(_, row, at)| (row, at)).collect();
        let token = |place| if drawn.contains(&place) { [1.0, 0.0] } else { [0.0, 1.0] };
        rows.iter().enumerate().map(|(row, tokens)| (0..tokens.len()).map(|at| token((row, at))).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::{Given, assert_close, run_rows};

    #[test]
    fn some_tokens_within_the_bounds_of_the_covariance_lose_their_gradient() {
        let token = |logprob: f64, advantage| Given { logprob, old: logprob, advantage };
        // Means −2 and 0; covariances 2, 2, −2 and −2, then 0.
        let rows = [&[token(0.0, 1.0), token(-4.0, -1.0)][..], &[token(-4.0, 1.0), token(0.0, -1.0)]];
        let gradient = |ratio: f64| {
            let loss = ClipCov { clip_cov_ratio: ratio, ..ClipCov::default() };
            run_rows(&loss, &rows).gradient
        };
        // One of four, the first at random; then up to two; and never one without covariance.
        assert_close(&gradient(0.25), &[0.0, 1.0, -1.0, 1.0]);
        assert_close(&gradient(0.5), &[0.0, 0.0, -1.0, 1.0]);
        assert_close(&gradient(1.0), &[0.0, 0.0, -1.0, 1.0]);
        let none = ClipCov { clip_cov_lb: 2.0, ..ClipCov::default() };
        assert_close(&run_rows(&none, &rows).gradient, &[-1.0, 1.0, -1.0, 1.0]);
    }

    #[test]
    fn a_token_that_is_clipped_is_not_drawn() {
        let drifted = Given { logprob: 0.0, old: -1.0, advantage: 1.0 };
        let row = [drifted, Given { logprob: -4.0, old: -4.0, advantage: -1.0 }];
        let out = run_rows(&ClipCov { clip_cov_ratio: 1.0, ..ClipCov::default() }, &[&row]);
        assert_close(out.statistic("covariance_fraction"), &[0.0, 1.0]);
        assert_close(out.statistic("clip_fraction"), &[1.0, 0.0]);
    }
}
