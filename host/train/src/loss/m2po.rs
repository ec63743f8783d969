//! Second-moment trust policy optimization (M2PO: Zheng et al., "Prosperity before collapse", 2025,
//! <https://arxiv.org/abs/2510.01161>): instead of a clip, the tokens with the largest `(log ratio)²` are masked until
//! its mean is within a budget.

use super::token_loss::{Context, LearnedToken, Surrogate, TokenLoss, Tokens};
use crate::config::{ConfigError, check};
use tch::TchError;

/// The budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct M2po {
    /// The highest mean of `(log ratio)²` over the tokens that are kept of those that move the policy further away;
    /// 0.04 by default, as published.
    pub m2_budget: f64,
}

impl Default for M2po {
    fn default() -> Self {
        Self { m2_budget: 0.04 }
    }
}

impl Surrogate for M2po {
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        vec![("m2_budget", &mut self.m2_budget)]
    }

    fn validate(&self) -> Result<(), ConfigError> {
        check("m2_budget", self.m2_budget, "a number above 0", |value| value > 0.0)
    }

    fn context(&self) -> Option<&dyn Context> {
        Some(self)
    }

    /// `−M · ratio · A` for each token, with `M` 0 where it is masked and 1 elsewhere.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let [masked, kept] = tokens.context()?;
        let loss = tokens.ratio()?.f_mul(tokens.advantages)?.f_mul(kept)?.f_neg()?;
        Ok(TokenLoss { loss, statistics: vec![("mask_fraction", masked.shallow_clone())] })
    }
}

impl Context for M2po {
    /// Whether a token is masked, and whether it is kept.
    fn of(&self, rows: &[Vec<LearnedToken>]) -> Vec<Vec<[f64; 2]>> {
        let moves_away = |token: &&LearnedToken| token.log_ratio() * token.advantage > 0.0;
        let mut moments: Vec<f64> =
            rows.iter().flatten().filter(moves_away).map(|token| token.log_ratio().powi(2)).collect();
        moments.sort_unstable_by(f64::total_cmp);
        // The most of them, the smallest first, whose mean is within the budget.
        let mut sum = 0.0;
        let within = |(at, moment): (usize, &f64)| {
            sum += moment;
            sum / (at + 1) as f64 <= self.m2_budget
        };
        let count = moments.iter().enumerate().map(within).take_while(|within| *within).count();
        let highest = count.checked_sub(1).map_or(f64::NEG_INFINITY, |last| moments[last]);
        let token = |token: &LearnedToken| match moves_away(&token) && token.log_ratio().powi(2) > highest {
            true => [1.0, 0.0],
            false => [0.0, 1.0],
        };
        rows.iter().map(|row| row.iter().map(token).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::{Given, assert_close, run_rows};

    #[test]
    fn the_largest_moments_are_masked_until_the_mean_is_within_the_budget() {
        let token = |log_ratio: f64, advantage| Given { logprob: -2.0 + log_ratio, old: -2.0, advantage };
        // Moments of what moves away: 0.01, 0.04, 0.09 and 1. The mean of the first three is 0.0467, of two 0.025.
        let first = [token(0.1, 1.0), token(1.0, 1.0), token(-1.0, 1.0)];
        let second = [token(-0.2, -2.0), token(-0.3, -2.0), token(2.0, 0.0)];
        let out = run_rows(&M2po::default(), &[&first, &second]);
        assert_close(out.statistic("mask_fraction"), &[0.0, 1.0, 0.0, 0.0, 1.0, 0.0]);
        let gradient = [-0.1f64.exp(), 0.0, -(-1.0f64).exp(), 2.0 * (-0.2f64).exp(), 0.0, 0.0];
        assert_close(&out.gradient, &gradient);
        assert_close(&out.loss, &gradient);
    }
}
