//! Supervised fine-tuning: the next token of given responses.

use crate::batch::{Chunk, MicroBatch, Sequence, micro_batches};
use crate::error::Result;
use crate::statistics::{ChunkSums, Reduction};
use crate::trainer::Trainer;
use gavel_policy::Model;
use gavel_torch::head::{Beside, TokenLogprobs};
use gavel_torch::scalar::ScalarOperations;
use tch::{Kind, Tensor};

const TOKEN_ACCURACY: &str = "token_accuracy";

/// A prompt and the response to learn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SftRow {
    /// Token ids of the prompt; at least one.
    pub prompt: Vec<u32>,
    /// Token ids of the response, the end-of-turn token included.
    pub response: Vec<u32>,
}

impl SftRow {
    pub(crate) fn sequence(&self) -> Sequence<'_> {
        Sequence { prompt: &self.prompt, response: &self.response, loss_mask: None }
    }
}

/// The result of a step of supervised fine-tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct SftStats {
    /// The mean cross-entropy of the response tokens, in nats.
    pub loss: f64,
    /// The 2-norm of the gradient before clipping.
    pub grad_norm: f64,
    /// How many response tokens there were.
    pub tokens: usize,
    /// The share of response tokens that were the model's most probable token.
    pub token_accuracy: f64,
    /// The mean cross-entropy of the response tokens of each row, in nats; of several ranks, of the rows of this one.
    pub row_losses: Vec<f64>,
}

/// The cross-entropies of rows, summed on the device that computes them.
struct RowLosses {
    /// `[rows]`.
    sums: Tensor,
    tokens: Vec<usize>,
}

impl RowLosses {
    fn new(model: &Model, rows: &[SftRow]) -> Result<Self> {
        let sums = Tensor::f_zeros([rows.len() as i64], (Kind::Double, model.device()))?;
        Ok(Self { sums, tokens: rows.iter().map(|row| row.response.len()).collect() })
    }

    /// Adds the `logprobs` of the tokens of a chunk.
    fn add(&mut self, chunk: &Chunk, logprobs: &Tensor) -> Result<()> {
        let rows: Vec<i64> = chunk.tokens.iter().map(|(row, _)| *row as i64).collect();
        let rows = Tensor::f_from_slice(&rows)?.f_to_device(self.sums.device())?;
        let losses = logprobs.f_detach()?.f_neg()?.f_to_kind(Kind::Double)?;
        self.sums = self.sums.f_index_add_(0, &rows, &losses)?;
        Ok(())
    }

    fn means(self) -> Result<Vec<f64>> {
        let sums = Vec::<f64>::try_from(self.sums)?;
        Ok(sums.iter().zip(self.tokens).map(|(sum, tokens)| sum / tokens.max(1) as f64).collect())
    }
}

impl Trainer {
    /// One optimiser step with the learning rate `lr` towards the responses of
    /// `rows`: cross-entropy, the mean over all response tokens.
    ///
    /// # Errors
    /// A row is malformed, there is no response token, or the loss or its
    /// gradient is not finite. The parameters are then unchanged.
    pub fn sft_step(&mut self, model: &Model, rows: &[SftRow], lr: f64) -> Result<SftStats> {
        let sequences: Vec<_> = rows.iter().map(SftRow::sequence).collect();
        let prepared = micro_batches(&sequences, self.max_tokens, model)
            .and_then(|batches| Ok((batches, RowLosses::new(model, rows)?)));
        let tokens =
            |(batches, _): &(Vec<MicroBatch>, RowLosses)| [batches.iter().map(|batch| batch.tokens.len()).sum()];
        let ((batches, mut row_losses), [total]) = self.counted(prepared, tokens)?;
        let (statistics, tokens) = self.accumulate(model, None, &batches, rows.len(), |batch, states| {
            batch.backward(model, |chunk| {
                let TokenLogprobs { logprobs, beside: right } =
                    chunk.logprobs(model, states.policy, 1.0, Beside::AreMostProbable)?;
                row_losses.add(chunk, &logprobs)?;
                let loss = logprobs.f_sum(None)?.f_neg()?.try_div(total as f64)?;
                let mut sums = ChunkSums::new(&loss)?;
                sums.add(TOKEN_ACCURACY, Reduction::TokenMean, &right)?;
                Ok((loss, sums))
            })
        })?;
        let loss = statistics.loss();
        let grad_norm = self.finish(loss, lr)?;
        let token_accuracy = statistics.get(TOKEN_ACCURACY).unwrap_or(f64::NAN);
        Ok(SftStats { loss, grad_norm, tokens, token_accuracy, row_losses: row_losses.means()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{tiny, tokens};
    use crate::{Experience, OptimizerConfig, log_probs};

    fn rows() -> Vec<SftRow> {
        [(3, 4), (1, 1), (2, 7)]
            .iter()
            .map(|&(prompt, response)| SftRow {
                prompt: tokens(prompt as u64, prompt),
                response: tokens(50 + prompt as u64, response),
            })
            .collect()
    }

    #[test]
    fn the_loss_is_the_mean_over_response_tokens_and_falls() {
        let model = tiny(1);
        let experiences: Vec<_> = rows()
            .into_iter()
            .map(|row| Experience {
                loss_mask: vec![true; row.response.len()],
                prompt: row.prompt,
                response: row.response,
                ..Default::default()
            })
            .collect();
        let logprobs = log_probs(&model, &experiences, 1.0, 100).unwrap();
        let expected = -logprobs.iter().flatten().sum::<f32>() / 12.0;
        let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 8).unwrap();
        let first = trainer.sft_step(&model, &rows(), 2e-2).unwrap();
        assert_eq!(first.tokens, 12);
        let of_row = |logprobs: &Vec<f32>| -f64::from(logprobs.iter().sum::<f32>()) / logprobs.len() as f64;
        let row_losses: Vec<f64> = logprobs.iter().map(of_row).collect();
        assert_eq!(first.row_losses.len(), row_losses.len());
        let are_close =
            first.row_losses.iter().zip(&row_losses).all(|(found, expected)| (found - expected).abs() < 1e-5);
        assert!(are_close, "{:?} are not {row_losses:?}", first.row_losses);
        assert!((first.loss - f64::from(expected)).abs() < 1e-5, "{} is not {expected}", first.loss);
        let last = (0..150).map(|_| trainer.sft_step(&model, &rows(), 2e-2).unwrap()).last().unwrap();
        assert!(last.loss < 0.1 && last.token_accuracy == 1.0, "{last:?}");
        assert!(first.token_accuracy < 0.5, "{first:?}");
    }

    #[test]
    fn the_split_changes_only_rounding() {
        let step = |max_tokens: usize| {
            let model = tiny(1);
            Trainer::new(&model, OptimizerConfig::default(), max_tokens)
                .unwrap()
                .sft_step(&model, &rows(), 1e-3)
                .unwrap()
        };
        let (whole, split) = (step(1000), step(1));
        assert!((whole.loss - split.loss).abs() < 1e-5 && (whole.grad_norm - split.grad_norm).abs() < 1e-4);
        assert_eq!((whole.tokens, whole.token_accuracy), (split.tokens, split.token_accuracy));
    }

    #[test]
    fn a_row_without_a_prompt_is_an_error() {
        let model = tiny(1);
        let mut trainer = Trainer::new(&model, OptimizerConfig::default(), 8).unwrap();
        let error = trainer.sft_step(&model, &[SftRow { prompt: vec![], response: vec![1] }], 0.1).unwrap_err();
        assert!(error.to_string().starts_with("row 0 of the mini-batch has an empty prompt"), "{error}");
    }
}
