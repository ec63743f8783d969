//! Direct preference optimisation (Rafailov et al., "Direct preference optimization: your language model is secretly a
//! reward model", 2023): a policy learns pairs of responses without a reward model.

use super::pair_statistics::{PairStats, pair_sums};
use super::reward_model::tokens;
use crate::batch::{Columns, MicroBatch, pair_micro_batches};
use crate::config::{ConfigError, check};
use crate::error::{Result, TrainError};
use crate::sft::SftRow;
use crate::statistics::{ChunkSums, Reduction};
use crate::trainer::{Trainer, frozen_hidden, frozen_logprobs};
use gavel_policy::Model;
use gavel_torch::head::{Beside, LogitChanges};
use gavel_torch::scalar::ScalarOperations;
use std::collections::BTreeMap;
use tch::{Kind, Tensor};

/// The settings of the loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DpoConfig {
    /// How strongly the policy is held to the reference; 0.1 by default.
    pub beta: f64,
    /// The share of pairs whose preference is taken to be wrong (Mitchell, "A note on DPO with noisy preferences",
    /// 2023); 0 by default.
    pub label_smoothing: f64,
}

impl Default for DpoConfig {
    fn default() -> Self {
        Self { beta: 0.1, label_smoothing: 0.0 }
    }
}

impl DpoConfig {
    /// Refuses values that are not valid, naming the key.
    pub fn validate(&self) -> std::result::Result<(), ConfigError> {
        check("beta", self.beta, "a number above 0", |value| value > 0.0)?;
        check("label_smoothing", self.label_smoothing, "at least 0 and below 0.5", |value| (0.0..0.5).contains(&value))
    }

    /// The implicit rewards of the responses, `[pairs, 2]`: `β (log p(policy) − log p(reference))`.
    fn rewards(&self, policy: &Tensor, reference: &Tensor) -> Result<Tensor> {
        Ok(policy.f_sub(reference)?.try_mul(self.beta)?)
    }

    /// The loss of each pair, `[pairs]`: `−(1 − s) log σ(d) − s log σ(−d)`, where d is the difference of the rewards of
    /// a pair, `[pairs, 2]`, and s is the smoothing.
    fn loss(&self, rewards: &Tensor) -> Result<Tensor> {
        let difference = rewards.f_select(1, 0)?.f_sub(&rewards.f_select(1, 1)?)?;
        let right = difference.f_log_sigmoid()?.try_mul(self.label_smoothing - 1.0)?;
        if self.label_smoothing == 0.0 {
            return Ok(right);
        }
        Ok(right.f_sub(&difference.f_neg()?.f_log_sigmoid()?.try_mul(self.label_smoothing)?)?)
    }
}

/// Two responses to a prompt, of which one is preferred. Both have at least one token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponsePair {
    /// The prompt with the better response.
    pub chosen: SftRow,
    /// The prompt with the other.
    pub rejected: SftRow,
}

impl Trainer {
    /// One optimiser step of the policy with the learning rate `lr`. The loss is the mean over `pairs`.
    ///
    /// # Errors
    /// A pair is malformed, there is none, or the loss or its gradient is not finite. The parameters are then
    /// unchanged.
    pub fn dpo_step(
        &mut self,
        model: &Model,
        reference: &Model,
        pairs: &[ResponsePair],
        config: &DpoConfig,
        lr: f64,
    ) -> Result<PairStats> {
        let counts = |batches: &Vec<MicroBatch>| [pairs.len(), tokens(batches)];
        let (batches, [total, tokens]) = self.counted(self.batches_of_responses(model, pairs), counts)?;
        let (statistics, _) = self.accumulate(model, Some(reference), &batches, 2 * pairs.len(), |batch, states| {
            let frozen = states.reference.as_ref().ok_or(TrainError::NoReference)?;
            let policy = Logps::of(model, states.policy, batch)?;
            let learned = learn_from(&policy, &Logps::of(reference, frozen, batch)?, config, total)?;
            // The logits of all tokens together would take too much memory, so they are computed again, chunk by chunk.
            let mut columns = Columns::default();
            let weights = columns.add(|row, _| learned.weights.get(&row).copied().unwrap_or_default());
            let values = batch.values(&columns, states.policy)?;
            for chunk in batch.chunks(model)? {
                let found = chunk.logprobs(model, states.policy, 1.0, Beside::Nothing)?;
                found.logprobs.f_dot(&values.of(weights, &chunk)?)?.f_backward()?;
            }
            Ok(vec![learned.sums])
        })?;
        let grad_norm = Some(self.finish(statistics.loss(), lr)?);
        Ok(PairStats::new(statistics, total, grad_norm, tokens))
    }

    /// The same numbers for held-out pairs, from which nothing is learned.
    ///
    /// # Errors
    /// As [`dpo_step`](Self::dpo_step).
    pub fn dpo_stats(
        &self,
        model: &Model,
        reference: &Model,
        pairs: &[ResponsePair],
        config: &DpoConfig,
    ) -> Result<PairStats> {
        let counts = |batches: &Vec<MicroBatch>| [pairs.len(), tokens(batches)];
        let (batches, [total, tokens]) = self.counted(self.batches_of_responses(model, pairs), counts)?;
        let logps = |model: &Model, batch: &MicroBatch| Logps::of(model, &frozen_hidden(model, batch)?, batch);
        let statistics = self.measured(&batches, |batch| {
            Ok(learn_from(&logps(model, batch)?, &logps(reference, batch)?, config, total)?.sums)
        })?;
        Ok(PairStats::new(statistics, total, None, tokens))
    }

    fn batches_of_responses(&self, model: &Model, pairs: &[ResponsePair]) -> Result<Vec<MicroBatch>> {
        let is_empty = |pair: &ResponsePair| pair.chosen.response.is_empty() || pair.rejected.response.is_empty();
        if let Some(index) = pairs.iter().position(is_empty) {
            return Err(TrainError::Row { index, what: "has a response without tokens".into() });
        }
        let sequences: Vec<_> =
            pairs.iter().flat_map(|pair| [pair.chosen.sequence(), pair.rejected.sequence()]).collect();
        pair_micro_batches(&sequences, self.max_tokens, model)
    }
}

/// The log-probabilities of the responses in a micro-batch, by row number.
struct Logps(BTreeMap<usize, f64>);

impl Logps {
    /// The log-probabilities under `model`, whose hidden states are `hidden`. No gradient is kept.
    fn of(model: &Model, hidden: &Tensor, batch: &MicroBatch) -> Result<Self> {
        let mut sums = BTreeMap::new();
        for chunk in batch.chunks(model)? {
            let logprobs =
                frozen_logprobs(model, hidden, &chunk, 1.0, &LogitChanges::default())?.f_to_kind(Kind::Double)?;
            for (&(row, _), logprob) in chunk.tokens.iter().zip(Vec::<f64>::try_from(logprobs)?) {
                *sums.entry(row).or_default() += logprob;
            }
        }
        Ok(Self(sums))
    }

    /// `[pairs, 2]`: the rows of a pair follow each other.
    fn pairs(&self) -> Result<Tensor> {
        Ok(Tensor::f_from_slice(&self.0.values().copied().collect::<Vec<_>>())?.f_view([-1, 2])?)
    }
}

/// What is learned from the pairs of a micro-batch.
struct Learned {
    /// The derivative of the loss with respect to the log-probability of each response, by the number of its row.
    weights: BTreeMap<usize, f64>,
    sums: ChunkSums,
}

/// What is learned from pairs with these log-probabilities, of `total` pairs in all.
fn learn_from(policy: &Logps, reference: &Logps, config: &DpoConfig, total: usize) -> Result<Learned> {
    let logps = policy.pairs()?.f_set_requires_grad(true)?;
    let rewards = config.rewards(&logps, &reference.pairs()?)?;
    let loss = config.loss(&rewards)?.f_sum(None)?.try_div(total as f64)?;
    loss.f_backward()?;
    let derivatives = Vec::<f64>::try_from(logps.f_grad()?.f_flatten(0, 1)?)?;
    let weights = policy.0.keys().copied().zip(derivatives).collect();
    let (rewards, logps) = (rewards.f_detach()?, logps.f_detach()?);
    let mut sums = pair_sums(&loss, &rewards.f_select(1, 0)?, &rewards.f_select(1, 1)?)?;
    sums.add("logps/chosen", Reduction::Sum, &logps.f_select(1, 0)?)?;
    sums.add("logps/rejected", Reduction::Sum, &logps.f_select(1, 1)?)?;
    Ok(Learned { weights, sums })
}

#[cfg(test)]
mod tests;
