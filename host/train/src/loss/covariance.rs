//! The covariance of log-probability and advantage, token by token, which drives the entropy down (Cui et al., "The
//! entropy mechanism of reinforcement learning", 2025, <https://arxiv.org/abs/2505.22617>).

use super::token_loss::{LearnedToken, mean};

/// For each token, its share of the covariance over the mini-batch: `(A − mean A) · (log p − mean log p)`.
pub(super) fn covariances(rows: &[Vec<LearnedToken>]) -> Vec<Vec<f64>> {
    let all = || rows.iter().flatten();
    let (advantage, logprob) = (mean(all(), |token| token.advantage), mean(all(), |token| token.logprob));
    let covariance = |token: &LearnedToken| (token.advantage - advantage) * (token.logprob - logprob);
    rows.iter().map(|row| row.iter().map(covariance).collect()).collect()
}

/// How many tokens the share `ratio` of all tokens is, at least 1.
pub(super) fn share(ratio: f64, rows: &[Vec<LearnedToken>]) -> usize {
    ((rows.iter().map(Vec::len).sum::<usize>() as f64 * ratio) as usize).max(1)
}
