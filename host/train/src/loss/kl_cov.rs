//! KL-Cov (Cui et al., 2025, <https://arxiv.org/abs/2505.22617>, equation 13): the policy gradient with a penalty on
//! the change of the tokens with the largest covariance of log-probability and advantage.

use super::covariance::{covariances, share};
use super::token_loss::{Context, LearnedToken, Surrogate, TokenLoss, Tokens};
use crate::config::{ConfigError, check};
use gavel_torch::scalar::ScalarOperations;
use tch::TchError;

/// Which tokens have the penalty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KlCov {
    /// The share of all tokens that have the penalty, at least one token; 0.0002 by default.
    pub kl_cov_ratio: f64,
    /// The weight of the penalty; 1 by default, as published.
    pub ppo_kl_coef: f64,
}

impl Default for KlCov {
    fn default() -> Self {
        Self { kl_cov_ratio: 2e-4, ppo_kl_coef: 1.0 }
    }
}

impl Surrogate for KlCov {
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        vec![("kl_cov_ratio", &mut self.kl_cov_ratio), ("ppo_kl_coef", &mut self.ppo_kl_coef)]
    }

    fn validate(&self) -> Result<(), ConfigError> {
        check("kl_cov_ratio", self.kl_cov_ratio, "above 0 and at most 1", |ratio| ratio > 0.0 && ratio <= 1.0)?;
        check("ppo_kl_coef", self.ppo_kl_coef, "a number of at least 0", |value| value >= 0.0)
    }

    fn context(&self) -> Option<&dyn Context> {
        Some(self)
    }

    /// `−ratio · A` for each token, and `c · |log ratio|` more for the tokens with the penalty.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let [penalised, _] = tokens.context()?;
        let log_ratio = tokens.log_ratio()?;
        let penalty = log_ratio.f_abs()?.f_mul(penalised)?.try_mul(self.ppo_kl_coef)?;
        let loss = penalty.f_sub(&log_ratio.f_exp()?.f_mul(tokens.advantages)?)?;
        Ok(TokenLoss { loss, statistics: vec![("covariance_fraction", penalised.shallow_clone())] })
    }
}

impl Context for KlCov {
    /// Whether a token has the penalty; the second number is not used.
    fn of(&self, rows: &[Vec<LearnedToken>]) -> Vec<Vec<[f64; 2]>> {
        let mut found: Vec<Vec<[f64; 2]>> = rows.iter().map(|row| vec![[0.0; 2]; row.len()]).collect();
        let mut places = Vec::new();
        for (row, covariances) in covariances(rows).into_iter().enumerate() {
            places.extend(covariances.into_iter().enumerate().map(|(at, covariance)| (covariance, row, at)));
        }
        // The largest first; equal ones in a random order.
        let random = |&(_, row, at): &(f64, usize, usize)| rows[row][at].random;
        places.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| random(a).cmp(&random(b))));
        for (_, row, at) in places.into_iter().take(share(self.kl_cov_ratio, rows)) {
            found[row][at][0] = 1.0;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::{Given, assert_close, run_rows};

    #[test]
    fn the_largest_covariances_have_the_penalty() {
        // Means −2 and 0: covariances 4, 2, −2 and −4 of log-probabilities 0, −4, −4 and 0.
        let token = |logprob: f64, advantage| Given { logprob, old: logprob - 0.5, advantage };
        let rows = [&[token(0.0, 2.0), token(-4.0, -1.0)][..], &[token(-4.0, 1.0), token(0.0, -2.0)]];
        let loss = |ratio: f64| run_rows(&KlCov { kl_cov_ratio: ratio, ppo_kl_coef: 3.0 }, &rows);
        let ratio = 0.5f64.exp();
        let plain = [-2.0 * ratio, ratio, -ratio, 2.0 * ratio];
        // The penalty 3 · 0.5, with the gradient 3.
        assert_close(&loss(0.25).loss, &[plain[0] + 1.5, plain[1], plain[2], plain[3]]);
        assert_close(&loss(0.5).gradient, &[plain[0] + 3.0, plain[1] + 3.0, plain[2], plain[3]]);
        assert_close(loss(1e-4).statistic("covariance_fraction"), &[1.0, 0.0, 0.0, 0.0]);
    }
}
