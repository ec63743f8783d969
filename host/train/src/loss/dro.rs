//! Direct reward optimisation (DRO: Richemond et al., 2024, <https://arxiv.org/abs/2405.19107>), token by token: the
//! policy gradient, and a quadratic penalty on the distance from the policy that drew the token.

use super::token_loss::{Surrogate, TokenLoss, Tokens};
use crate::config::{ConfigError, check};
use gavel_torch::scalar::ScalarOperations;
use tch::TchError;

/// The weight of the penalty.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dro {
    /// Above 0; 0.1 by default.
    pub dro_beta: f64,
}

impl Default for Dro {
    fn default() -> Self {
        Self { dro_beta: 0.1 }
    }
}

impl Surrogate for Dro {
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        vec![("dro_beta", &mut self.dro_beta)]
    }

    fn validate(&self) -> Result<(), ConfigError> {
        check("dro_beta", self.dro_beta, "a number above 0", |value| value > 0.0)
    }

    /// `−(A · log p − β / 2 · (log p − log p(old))²)` for each token.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let penalty = tokens.logprobs.f_sub(tokens.old)?.f_square()?.try_mul(0.5 * self.dro_beta)?;
        let loss = penalty.f_sub(&tokens.logprobs.f_mul(tokens.advantages)?)?;
        Ok(TokenLoss { loss, statistics: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::{Given, assert_close, run};

    #[test]
    fn the_penalty_pulls_back() {
        let out = run(&Dro { dro_beta: 0.5 }, &[Given { logprob: -1.0, old: -3.0, advantage: 2.0 }]);
        // 2 + ¼ · 4, and −2 + ½ · 2.
        assert_close(&out.loss, &[3.0]);
        assert_close(&out.gradient, &[-1.0]);
    }
}
