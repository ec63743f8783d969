//! The critic of PPO: a model that says before each token which return it expects.

use crate::batch::{Columns, micro_batches};
use crate::config::{ConfigError, check};
use crate::error::{Result, TrainError};
use crate::experience::Experience;
use crate::loss::Aggregation;
use crate::statistics::{ChunkSums, Reduction};
use crate::trainer::{Trainer, UpdateStats};
use gavel_policy::{Model, Phase};
use gavel_torch::scalar::ScalarOperations;
use serde::{Deserialize, Serialize};
use tch::Tensor;

/// The settings of the value loss.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ValueLossConfig {
    /// How far an update may move a value from that before the step; 0.5 by default.
    pub cliprange_value: f64,
}

impl Default for ValueLossConfig {
    fn default() -> Self {
        Self { cliprange_value: 0.5 }
    }
}

impl ValueLossConfig {
    /// Refuses values that are not valid, naming the key.
    pub fn validate(&self) -> std::result::Result<(), ConfigError> {
        check("cliprange_value", self.cliprange_value, "a number above 0", |value| value > 0.0)
    }

    /// `max((V − R)², (clip(V, V(old) − c, V(old) + c) − R)²) / 2` for each token (Schulman et al., "Proximal policy
    /// optimization algorithms", 2017, as in OpenAI's baselines and verl), and where the clip counts.
    pub(crate) fn loss(&self, values: &Tensor, old: &Tensor, returns: &Tensor) -> Result<[Tensor; 2]> {
        let clip = self.cliprange_value;
        let clipped = values.f_sub(old)?.try_clamp(-clip, clip)?.f_add(old)?;
        let square = |values: &Tensor| -> Result<Tensor> { Ok(values.f_sub(returns)?.f_square()?) };
        let (plain, clipped) = (square(values)?, square(&clipped)?);
        let counts = clipped.f_gt_tensor(&plain)?.f_to_kind(values.f_kind()?)?;
        Ok([plain.f_maximum(&clipped)?.try_mul(0.5)?, counts])
    }
}

impl Trainer {
    /// The values that the critic `model` gives before each response token of the rows; 0 for tokens that the loss mask
    /// excludes.
    ///
    /// # Errors
    /// A row is malformed, or the model fails or is not a critic.
    pub fn values(&self, model: &Model, rows: &[Experience]) -> Result<Vec<Vec<f32>>> {
        let _guard = tch::no_grad_guard();
        let tokens = self.max_tokens;
        let sequences: Vec<_> = rows.iter().map(Experience::sequence).collect();
        let mut out: Vec<Vec<f32>> = rows.iter().map(|row| vec![0.0; row.response.len()]).collect();
        for batch in micro_batches(&sequences, tokens, model)? {
            let found = || -> Result<Vec<f32>> {
                let hidden = model.hidden_packed(&batch.packed)?;
                let values = batch.whole().critic_values(model, &hidden)?;
                Ok(Vec::try_from(values.f_to_kind(tch::Kind::Float)?)?)
            };
            let found = found().map_err(|error| error.during(Phase::MicroBatch { tokens }))?;
            for (&(row, at), value) in batch.tokens.iter().zip(found) {
                out[row][at] = value;
            }
        }
        Ok(out)
    }

    /// One optimiser step of the critic `model` with the learning rate `lr` over `mini_batch`, which has the values from
    /// before the step and the returns.
    ///
    /// # Errors
    /// A row is malformed, there is nothing to learn from, or the loss or its gradient is not finite. The parameters are
    /// then unchanged.
    pub fn value_step(
        &mut self,
        model: &Model,
        mini_batch: &[Experience],
        config: &ValueLossConfig,
        lr: f64,
    ) -> Result<UpdateStats> {
        config.validate()?;
        for (index, row) in mini_batch.iter().enumerate() {
            for (what, numbers) in [("values", &row.values), ("returns", &row.returns)] {
                if numbers.len() != row.response.len() || numbers.iter().any(|number| !number.is_finite()) {
                    let what = format!("has no finite {what} for its {} response tokens", row.response.len());
                    return Err(TrainError::Row { index, what });
                }
            }
        }
        let sequences: Vec<_> = mini_batch.iter().map(Experience::sequence).collect();
        let batches = micro_batches(&sequences, self.max_tokens, model);
        let rows = mini_batch.iter().zip(&sequences).map(|(row, sequence)| (row.sample, sequence.trained()));
        let (batches, weights) = self.weighted(batches, rows, Aggregation::TokenMean, 1)?;
        let mut columns = Columns::default();
        let given = [
            columns.add(|row, at| f64::from(mini_batch[row].values[at])),
            columns.add(|row, at| f64::from(mini_batch[row].returns[at])),
            columns.add(|row, _| weights[row]),
        ];
        let (mut statistics, tokens) = self.accumulate(model, None, &batches, mini_batch.len(), |batch, states| {
            let chunk = batch.whole();
            let values = chunk.critic_values(model, states.policy)?;
            let numbers = batch.values(&columns, states.policy)?;
            let [old, returns, weights] = given.map(|column| numbers.of(column, &chunk));
            let (old, returns, weights) = (old?, returns?, weights?);
            let [losses, counts] = config.loss(&values, &old, &returns)?;
            let loss = losses.f_mul(&weights)?.f_sum(None)?;
            loss.f_backward()?;
            let mut sums = ChunkSums::new(&loss)?;
            sums.add("clip_fraction", Reduction::TokenMean, &counts)?;
            sums.add("value", Reduction::TokenMean, &values)?;
            sums.add("return", Reduction::TokenMean, &returns)?;
            Ok(vec![sums])
        })?;
        let grad_norm = self.finish(statistics.loss(), lr)?;
        statistics.insert_before("clip_fraction", "grad_norm", grad_norm);
        Ok(UpdateStats { tokens, statistics })
    }
}

/// The share of the variance of the returns that the values explain: 1 for a perfect critic, 0 for a constant one, and
/// below 0 for one that is worse than that. Nothing where the returns are all the same.
pub fn explained_variance<'a>(rows: impl IntoIterator<Item = &'a Experience>) -> Option<f64> {
    let pairs: Vec<(f64, f64)> = rows
        .into_iter()
        .flat_map(|row| {
            let numbers = row.values.iter().zip(&row.returns);
            row.loss_mask.iter().zip(numbers).filter(|(learned, _)| **learned).map(|(_, pair)| pair)
        })
        .map(|(value, target)| (f64::from(*value), f64::from(*target)))
        .collect();
    let variance = |of: &dyn Fn(&(f64, f64)) -> f64| {
        let mean = pairs.iter().map(of).sum::<f64>() / pairs.len().max(1) as f64;
        pairs.iter().map(|pair| (of(pair) - mean).powi(2)).sum::<f64>()
    };
    let total = variance(&|(_, target)| *target);
    (total > 0.0).then(|| 1.0 - variance(&|(value, target)| target - value) / total)
}

#[cfg(test)]
mod tests;
