//! Soft adaptive policy optimization (Gao et al., 2025, <https://arxiv.org/abs/2511.20347>): instead of a clip, a
//! sigmoid takes the gradient away as the ratio leaves 1.

use super::aggregation::Aggregation;
use super::token_loss::{Surrogate, TokenLoss, Tokens};
use crate::config::{ConfigError, check};
use gavel_torch::scalar::ScalarOperations;
use tch::TchError;

/// How steep the sigmoid is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sapo {
    /// Where the advantage is positive; 1 by default.
    pub tau_pos: f64,
    /// Where it is not; 1.05 by default.
    pub tau_neg: f64,
}

impl Default for Sapo {
    fn default() -> Self {
        Self { tau_pos: 1.0, tau_neg: 1.05 }
    }
}

impl Surrogate for Sapo {
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        vec![("tau_pos", &mut self.tau_pos), ("tau_neg", &mut self.tau_neg)]
    }

    fn validate(&self) -> Result<(), ConfigError> {
        check("tau_pos", self.tau_pos, "a number above 0", |value| value > 0.0)?;
        check("tau_neg", self.tau_neg, "a number above 0", |value| value > 0.0)
    }

    fn aggregation(&self) -> Aggregation {
        Aggregation::SeqMeanTokenMean
    }

    /// `−A · 4 / τ · sigmoid(τ · (ratio − 1))` for each token: equation 6.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let is_good = tokens.indicator(&tokens.is_good()?)?;
        let tau = is_good.try_mul(self.tau_pos - self.tau_neg)?.try_add(self.tau_neg)?;
        let gate = tokens.ratio()?.try_sub(1.0)?.f_mul(&tau)?.f_sigmoid()?.try_mul(4.0)?.f_div(&tau)?;
        Ok(TokenLoss { loss: gate.f_mul(tokens.advantages)?.f_neg()?, statistics: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::{Given, assert_close, run};

    #[test]
    fn the_gradient_falls_as_the_ratio_leaves_1() {
        let loss = Sapo { tau_pos: 1.0, tau_neg: 2.0 };
        let tokens = [Given::ratio(1.0, 3.0), Given::ratio(1.0, -3.0), Given::ratio(2.0, 3.0)];
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let out = run(&loss, &tokens);
        // At 1 the sigmoid is ½ and its slope ¼: −3 · 4 · ½ and −3; with τ = 2, 3 · 2 · ½ and 3 · 2 · ¼ · 2.
        assert_close(&out.loss, &[-6.0, 3.0, -12.0 * sigmoid(1.0)]);
        let slope = sigmoid(1.0) * (1.0 - sigmoid(1.0));
        assert_close(&out.gradient, &[-3.0, 3.0, -12.0 * slope * 2.0]);
    }
}
