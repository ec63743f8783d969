//! Group policy gradient (GPG: Chu et al., 2025, <https://arxiv.org/abs/2504.02546>): REINFORCE, without a ratio and
//! without a clip.

use super::token_loss::{Surrogate, TokenLoss, Tokens};
use crate::config::ConfigError;
use tch::TchError;

/// The policy gradient itself; it has no keys.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Gpg;

impl Surrogate for Gpg {
    fn keys(&mut self) -> Vec<(&'static str, &mut f64)> {
        Vec::new()
    }

    fn validate(&self) -> Result<(), ConfigError> {
        Ok(())
    }

    /// `−A · log p` for each token.
    fn token_loss(&self, tokens: &Tokens) -> Result<TokenLoss, TchError> {
        let loss = tokens.logprobs.f_mul(tokens.advantages)?.f_neg()?;
        Ok(TokenLoss { loss, statistics: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::testing::{Given, assert_close, run};

    #[test]
    fn the_ratio_does_not_matter() {
        let token = |old| Given { logprob: -2.0, old, advantage: 1.5 };
        let out = run(&Gpg, &[token(-2.0), token(-9.0)]);
        assert_close(&out.loss, &[3.0, 3.0]);
        assert_close(&out.gradient, &[-1.5, -1.5]);
    }
}
