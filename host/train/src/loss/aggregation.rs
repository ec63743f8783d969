//! How the losses of tokens become one number.

use crate::experience::SampleId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the losses of tokens become one number. Each of them is a weighted sum
/// whose weights depend on the mini-batch only through counts, so a mini-batch
/// can be split in any way without changing its gradient.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregation {
    /// The mean over all tokens (DAPO).
    #[default]
    TokenMean,
    /// The sum over all tokens: a larger batch takes a larger step.
    TokenSum,
    /// The mean over responses of their sums.
    SeqMeanTokenSum,
    /// The mean over responses of their means (GRPO as published).
    SeqMeanTokenMean,
    /// The mean over responses of their sums, divided by a constant (Dr. GRPO).
    SeqMeanTokenSumNorm,
}

impl Aggregation {
    /// The weight of a token in each row of the mini-batch. `rows` has the sample of each row and the number of its
    /// tokens that are learned from. The rows of a sample are one response, and each of them counts equally; rows
    /// without such tokens are not counted. `norm_tokens` is the constant of `seq-mean-token-sum-norm`.
    pub(crate) fn token_weights(self, rows: &[(SampleId, usize)], norm_tokens: usize) -> Vec<f64> {
        // Of each sample, its tokens and its rows.
        let mut of_sample: BTreeMap<SampleId, (usize, usize)> = BTreeMap::new();
        for &(sample, count) in rows.iter().filter(|(_, count)| *count > 0) {
            let (tokens, rows) = of_sample.entry(sample).or_default();
            *tokens += count;
            *rows += 1;
        }
        let tokens = of_sample.values().map(|&(tokens, rows)| tokens as f64 / rows as f64).sum::<f64>();
        let responses = of_sample.len() as f64;
        let weight = |(sample, count): &(SampleId, usize)| {
            let (own, rows) = match of_sample.get(sample) {
                Some(&(tokens, rows)) if *count > 0 => (tokens as f64, rows as f64),
                _ => return 0.0,
            };
            match self {
                Self::TokenMean => 1.0 / (tokens * rows),
                Self::TokenSum => 1.0 / rows,
                Self::SeqMeanTokenSum => 1.0 / (responses * rows),
                Self::SeqMeanTokenMean => 1.0 / (responses * own),
                Self::SeqMeanTokenSumNorm => 1.0 / (responses * rows * norm_tokens as f64),
            }
        };
        rows.iter().map(weight).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The weights of rows of these samples with these numbers of tokens.
    fn weights(name: &str, rows: &[(usize, usize)]) -> Vec<f64> {
        let aggregation: Aggregation = serde::Deserialize::deserialize(toml::Value::from(name)).unwrap();
        let row = |&(index, count): &(usize, usize)| (SampleId { group: 0, index, trajectory: 0 }, count);
        aggregation.token_weights(&rows.iter().map(row).collect::<Vec<_>>(), 8)
    }

    #[test]
    fn each_response_has_its_weight() {
        let rows = [(0, 1), (1, 0), (2, 4)];
        assert_eq!(weights("token-mean", &rows), [0.2, 0.0, 0.2]);
        assert_eq!(weights("token-sum", &rows), [1.0, 0.0, 1.0]);
        assert_eq!(weights("seq-mean-token-sum", &rows), [0.5, 0.0, 0.5]);
        assert_eq!(weights("seq-mean-token-mean", &rows), [0.5, 0.0, 0.125]);
        assert_eq!(weights("seq-mean-token-sum-norm", &rows), [0.0625, 0.0, 0.0625]);
    }

    #[test]
    fn the_trajectories_of_a_sample_are_one_response() {
        let rows = [(0, 1), (1, 3), (1, 1)];
        assert_eq!(weights("token-mean", &rows), [1.0 / 3.0, 1.0 / 6.0, 1.0 / 6.0]);
        assert_eq!(weights("token-sum", &rows), [1.0, 0.5, 0.5]);
        assert_eq!(weights("seq-mean-token-sum", &rows), [0.5, 0.25, 0.25]);
        assert_eq!(weights("seq-mean-token-mean", &rows), [0.5, 0.125, 0.125]);
        assert_eq!(weights("seq-mean-token-sum-norm", &rows), [0.0625, 0.03125, 0.03125]);
    }
}
