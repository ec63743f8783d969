//! The weights of a mini-batch's tokens: importance sampling, truncated or rejected.

use super::config::{OffPolicyConfig, RolloutIs, RolloutRs};
use crate::experience::Experience;
use crate::ranks::Message;

/// The bound of a ratio's logarithm, the same as in verl.
const MAX_LOG_RATIO: f64 = 20.0;

/// The smallest mean by which weights are divided.
const LEAST_MEAN: f64 = 1e-8;

/// The weights of a mini-batch's tokens, beside their share in the mean.
pub(crate) struct Correction {
    /// For each row and response token, its weight; 0 if it is not learned from.
    pub weights: Vec<Vec<f64>>,
    /// Statistics of the weights, by name.
    pub statistics: Vec<(&'static str, f64)>,
}

/// The logarithms of a row's ratios, `proximal / behaviour`.
pub(crate) struct Ratios {
    /// For each response token; `None` if it is not learned from.
    logs: Vec<Option<f64>>,
    /// The logarithm of the product.
    sum: f64,
    tokens: usize,
}

impl Ratios {
    /// The ratios of a row that has its proximal log-probabilities.
    pub fn of(row: &Experience) -> Self {
        let tokens = row.loss_mask.iter().zip(row.proximal.iter().zip(&row.logprobs));
        let log =
            |(&mask, (&proximal, &drawn)): (&bool, (&f32, &f32))| mask.then(|| f64::from(proximal) - f64::from(drawn));
        Self::new(tokens.map(log).collect())
    }

    fn new(logs: Vec<Option<f64>>) -> Self {
        let (sum, tokens) = (logs.iter().flatten().sum(), logs.iter().flatten().count());
        Self { logs, sum, tokens }
    }

    fn logs(&self) -> impl Iterator<Item = f64> {
        self.logs.iter().copied().flatten()
    }
}

impl Message for Ratios {
    fn write(&self, to: &mut Vec<u8>) {
        self.logs.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Vec::read(from).map(Self::new)
    }
}

fn exp(log: f64) -> f64 {
    log.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
}

fn share(count: usize, of: usize) -> f64 {
    count as f64 / of.max(1) as f64
}

impl Correction {
    /// The correction of a mini-batch whose rows have these ratios.
    pub fn new(config: &OffPolicyConfig, rows: &[Ratios]) -> Self {
        let tokens: usize = rows.iter().map(|row| row.tokens).sum();
        let truncated: Vec<Vec<f64>> = rows.iter().map(|row| truncated(config, row)).collect();
        let kept: Vec<Vec<bool>> = rows.iter().map(|row| kept(config, row)).collect();
        let norm =
            if config.rollout_is_batch_normalize { mean_weight(config.rollout_is, rows, &truncated) } else { 1.0 };
        let weight = |(weight, kept): (&f64, &bool)| if *kept { weight / norm } else { 0.0 };
        let weights: Vec<Vec<f64>> =
            truncated.iter().zip(&kept).map(|(weights, kept)| weights.iter().zip(kept).map(weight).collect()).collect();

        let mut statistics = Vec::new();
        if config.has_weights() {
            let sum: f64 = weights.iter().flatten().sum();
            let squares: f64 = weights.iter().flatten().map(|weight| weight * weight).sum();
            // Kish's effective sample size, over the number of tokens.
            let effective = if squares > 0.0 { sum * sum / (squares * tokens as f64) } else { 0.0 };
            statistics.push(("off_policy/effective_sample_size", effective));
        }
        if config.rollout_is != RolloutIs::None {
            statistics.push(("off_policy/truncated", share(truncated_tokens(config, rows), tokens)));
        }
        if config.rollout_rs != RolloutRs::None || config.rollout_token_veto_threshold.is_some() {
            let rejected = |(row, kept): (&Ratios, &Vec<bool>)| {
                row.logs.iter().zip(kept).filter(|(log, kept)| log.is_some() && !**kept).count()
            };
            let rejected: Vec<usize> = rows.iter().zip(&kept).map(rejected).collect();
            let sequences = rows.iter().filter(|row| row.tokens > 0).count();
            let touched = rejected.iter().filter(|count| **count > 0).count();
            statistics.push(("off_policy/rejected", share(rejected.iter().sum(), tokens)));
            statistics.push(("off_policy/rejected_sequences", share(touched, sequences)));
        }
        statistics.extend(mismatch(rows, tokens));
        Self { weights, statistics }
    }
}

/// For each response token, its weight, at most the threshold; 0 if it is not learned from.
fn truncated(config: &OffPolicyConfig, row: &Ratios) -> Vec<f64> {
    let weight = |log: &Option<f64>| match (config.rollout_is, log) {
        (_, None) => 0.0,
        (RolloutIs::None, Some(_)) => 1.0,
        (RolloutIs::Token, Some(log)) => exp(*log).min(config.rollout_is_threshold),
        (RolloutIs::Sequence, Some(_)) => exp(row.sum).min(config.rollout_is_threshold),
    };
    row.logs.iter().map(weight).collect()
}

/// How many tokens have a weight above the threshold before truncation.
fn truncated_tokens(config: &OffPolicyConfig, rows: &[Ratios]) -> usize {
    let above = |log: f64| exp(log) > config.rollout_is_threshold;
    let count = |row: &Ratios| match config.rollout_is {
        RolloutIs::None => 0,
        RolloutIs::Token => row.logs().filter(|log| above(*log)).count(),
        RolloutIs::Sequence => usize::from(above(row.sum)) * row.tokens,
    };
    rows.iter().map(count).sum()
}

/// For each response token, whether its ratios are within the bounds.
fn kept(config: &OffPolicyConfig, row: &Ratios) -> Vec<bool> {
    let (lower, upper) = config.bounds().unwrap_or((0.0, f64::INFINITY));
    let within = |log: f64| (lower..=upper).contains(&exp(log));
    let vetoed = config.rollout_token_veto_threshold.is_some_and(|least| row.logs().any(|log| log.exp() < least));
    let whole = !vetoed
        && match config.rollout_rs {
            RolloutRs::None | RolloutRs::Token => true,
            RolloutRs::Sequence => within(row.sum),
            RolloutRs::Geometric => within(row.sum / row.tokens.max(1) as f64),
        };
    let token = |log: &Option<f64>| whole && (config.rollout_rs != RolloutRs::Token || log.is_some_and(within));
    row.logs.iter().map(token).collect()
}

/// The mean of the truncated weights over the units that have one: tokens or
/// trajectories.
fn mean_weight(of: RolloutIs, rows: &[Ratios], truncated: &[Vec<f64>]) -> f64 {
    let rows = rows.iter().zip(truncated).filter(|(row, _)| row.tokens > 0);
    let (sum, count) = rows.fold((0.0, 0.0), |(sum, count), (row, weights)| {
        let (total, tokens) = (weights.iter().sum::<f64>(), row.tokens as f64);
        match of {
            RolloutIs::Sequence => (sum + total / tokens, count + 1.0),
            RolloutIs::None | RolloutIs::Token => (sum + total, count + tokens),
        }
    });
    let mean = sum / count;
    if mean > LEAST_MEAN { mean } else { 1.0 }
}

/// How far the proximal policy is from the policy that drew the tokens, with verl's names: two estimates of
/// KL(behaviour ‖ proximal), and χ²(proximal ‖ behaviour) of tokens and of trajectories.
fn mismatch(rows: &[Ratios], tokens: usize) -> [(&'static str, f64); 4] {
    let mean =
        |value: fn(f64) -> f64| rows.iter().flat_map(Ratios::logs).map(value).sum::<f64>() / tokens.max(1) as f64;
    let sequences: Vec<f64> = rows.iter().filter(|row| row.tokens > 0).map(|row| exp(row.sum).powi(2)).collect();
    [
        ("off_policy/kl", mean(|log| -log)),
        ("off_policy/k3_kl", mean(|log| log.exp_m1() - log)),
        ("off_policy/chi2_token", mean(|log| exp(log).powi(2)) - 1.0),
        ("off_policy/chi2_seq", sequences.iter().sum::<f64>() / sequences.len().max(1) as f64 - 1.0),
    ]
}

#[cfg(test)]
mod tests;
