//! How the losses of tokens become one number.

use serde::{Deserialize, Serialize};

/// How the losses of tokens become one number. Each of them is a weighted sum
/// whose weights depend on the mini-batch only through counts, so a mini-batch
/// can be split in any way without changing its gradient.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregation {
    /// The mean over all tokens (DAPO).
    #[default]
    TokenMean,
    /// The mean over responses of their sums.
    SeqMeanTokenSum,
    /// The mean over responses of their means (GRPO as published).
    SeqMeanTokenMean,
    /// The mean over responses of their sums, divided by a constant (Dr. GRPO).
    SeqMeanTokenSumNorm,
}

impl Aggregation {
    /// The weight of a token for each row, from the number of tokens that each
    /// row of the mini-batch is learned from. Rows without any count nowhere.
    /// `norm_tokens` is the constant of `seq-mean-token-sum-norm`.
    pub(crate) fn token_weights(self, trained: &[usize], norm_tokens: usize) -> Vec<f64> {
        let tokens = trained.iter().sum::<usize>() as f64;
        let rows = trained.iter().filter(|&&count| count > 0).count() as f64;
        let weight = |&count: &usize| match (self, count) {
            (_, 0) => 0.0,
            (Self::TokenMean, _) => 1.0 / tokens,
            (Self::SeqMeanTokenSum, _) => 1.0 / rows,
            (Self::SeqMeanTokenMean, count) => 1.0 / (rows * count as f64),
            (Self::SeqMeanTokenSumNorm, _) => 1.0 / (rows * norm_tokens as f64),
        };
        trained.iter().map(weight).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights() {
        let weights = |name: &str| {
            let aggregation: Aggregation = serde::Deserialize::deserialize(toml::Value::from(name)).unwrap();
            aggregation.token_weights(&[1, 0, 4], 8)
        };
        assert_eq!(weights("token-mean"), [0.2, 0.0, 0.2]);
        assert_eq!(weights("seq-mean-token-sum"), [0.5, 0.0, 0.5]);
        assert_eq!(weights("seq-mean-token-mean"), [0.5, 0.0, 0.125]);
        assert_eq!(weights("seq-mean-token-sum-norm"), [0.0625, 0.0, 0.0625]);
    }
}
