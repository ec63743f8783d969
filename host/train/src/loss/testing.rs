//! Losses of a few tokens, for the tests of each loss.

use super::token_loss::{LearnedToken, Surrogate, Tokens};
use tch::{Kind, Tensor};

/// A token: its log-probabilities and its advantage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given {
    pub logprob: f64,
    pub old: f64,
    pub advantage: f64,
}

impl Given {
    /// A token with this ratio of probabilities.
    pub fn ratio(ratio: f64, advantage: f64) -> Self {
        Self { logprob: -1.0 + ratio.ln(), old: -1.0, advantage }
    }
}

/// The loss of each token, its derivative by the log-probability, and the statistics.
#[derive(Debug)]
pub(super) struct Found {
    pub loss: Vec<f64>,
    pub gradient: Vec<f64>,
    statistics: Vec<(&'static str, Vec<f64>)>,
}

impl Found {
    pub fn statistic(&self, name: &str) -> &[f64] {
        &self.statistics.iter().find(|(known, _)| *known == name).unwrap().1
    }
}

/// The loss of the tokens of one row.
pub(super) fn run(loss: &dyn Surrogate, row: &[Given]) -> Found {
    run_rows(loss, &[row])
}

/// The loss of the tokens of several rows, one after the other.
pub(super) fn run_rows(loss: &dyn Surrogate, rows: &[&[Given]]) -> Found {
    let all: Vec<Given> = rows.concat();
    let of = |value: fn(&Given) -> f64| Tensor::from_slice(&all.iter().map(value).collect::<Vec<_>>());
    let logprobs = of(|token| token.logprob).set_requires_grad(true);
    let (old, advantages) = (of(|token| token.old), of(|token| token.advantage));
    let context = loss.context().map(|context| {
        let drawn = |(row, tokens): (usize, &&[Given])| {
            let drawn = |(at, token): (usize, &Given)| LearnedToken {
                logprob: token.logprob,
                old: token.old,
                advantage: token.advantage,
                random: (row * 100 + at) as u64,
            };
            tokens.iter().enumerate().map(drawn).collect()
        };
        let found = context.of(&rows.iter().enumerate().map(drawn).collect::<Vec<_>>());
        [0, 1]
            .map(|which| Tensor::from_slice(&found.iter().flatten().map(|numbers| numbers[which]).collect::<Vec<_>>()))
    });
    let tokens = Tokens { logprobs: &logprobs, old: &old, advantages: &advantages, context: context.as_ref() };
    let out = loss.token_loss(&tokens).unwrap();
    out.loss.sum(Kind::Double).backward();
    let values = |tensor: &Tensor| Vec::<f64>::try_from(tensor.detach()).unwrap();
    Found {
        loss: values(&out.loss),
        gradient: values(&logprobs.grad()),
        statistics: out.statistics.iter().map(|(name, of)| (*name, values(of))).collect(),
    }
}

pub(super) fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-9, "{found:?} is not {expected:?}");
    }
}
