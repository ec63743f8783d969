//! One optimiser step of a reward model over pairs of conversations.

use super::bradley_terry::BradleyTerryConfig;
use super::pair_statistics::{PairStats, pair_sums};
use crate::batch::{Columns, MicroBatch, Sequence, pair_micro_batches};
use crate::error::{Result, TrainError};
use crate::statistics::ChunkSums;
use crate::trainer::{Trainer, frozen_hidden};
use gavel_policy::{Model, score_place};
use gavel_torch::scalar::ScalarOperations;
use tch::Tensor;

/// A placeholder after each conversation, where the score is read. The model does not read it.
const PLACE: u32 = 0;

/// Two conversations, of which one is preferred.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationPair {
    /// Token ids of the better conversation; at least one.
    pub chosen: Vec<u32>,
    /// Token ids of the other; at least one.
    pub rejected: Vec<u32>,
    /// By how much the score of the better one should be higher; 0 if that is not known.
    pub margin: f64,
}

/// A conversation with the place of its score.
struct ScoredRow {
    tokens: Vec<u32>,
    /// The tokens that it has in common with the other conversation of its pair; at least one.
    prompt: usize,
    mask: Vec<bool>,
}

impl ScoredRow {
    fn new(conversation: &[u32], prompt: usize) -> Self {
        let tokens = [conversation, &[PLACE]].concat();
        let mut mask = vec![false; conversation.len() - prompt];
        mask.push(true);
        Self { tokens, prompt, mask }
    }

    fn sequence(&self) -> Sequence<'_> {
        let (prompt, response) = self.tokens.split_at(self.prompt);
        Sequence { prompt, response, loss_mask: Some(&self.mask) }
    }
}

impl ConversationPair {
    fn rows(&self, index: usize, pad: Option<u32>) -> Result<[ScoredRow; 2]> {
        let Self { chosen, rejected, margin } = self;
        // Tokens after the score do not change it.
        let read = |conversation: &'_ Vec<u32>| score_place(conversation, pad).map(|place| place + 1);
        let (Some(of_chosen), Some(of_rejected)) = (read(chosen), read(rejected)) else {
            return Err(TrainError::Row { index, what: "has an empty conversation".into() });
        };
        let (chosen, rejected) = (&chosen[..of_chosen], &rejected[..of_rejected]);
        if !margin.is_finite() {
            return Err(TrainError::Row { index, what: format!("has the margin {margin}") });
        }
        let common = chosen.iter().zip(rejected).take_while(|(a, b)| a == b).count().max(1);
        Ok([chosen, rejected].map(|conversation| ScoredRow::new(conversation, common)))
    }
}

impl Trainer {
    /// One optimiser step of the reward model `model`, a classifier with one label, with the learning rate `lr`. The
    /// loss is the mean over `pairs`. The common beginning of a pair is computed once. Scores are read where
    /// `transformers` reads them: at the last token that is not the model's padding.
    ///
    /// # Errors
    /// A pair is malformed, there is none, or the loss or its gradient is not finite. The parameters are then
    /// unchanged.
    pub fn reward_model_step(
        &mut self,
        model: &Model,
        pairs: &[ConversationPair],
        config: &BradleyTerryConfig,
        lr: f64,
    ) -> Result<PairStats> {
        let counts = |batches: &Vec<MicroBatch>| [pairs.len(), tokens(batches)];
        let (batches, [total, tokens]) = self.counted(self.batches_of_conversations(model, pairs), counts)?;
        let (statistics, _) = self.accumulate(model, None, &batches, 2 * pairs.len(), |batch, states| {
            let (loss, sums) = batch_loss(model, states.policy, batch, pairs, total, config)?;
            loss.f_backward()?;
            Ok(vec![sums])
        })?;
        let grad_norm = Some(self.finish(statistics.loss(), lr)?);
        Ok(PairStats::new(statistics, total, grad_norm, tokens))
    }

    /// The same numbers for held-out pairs, from which nothing is learned.
    ///
    /// # Errors
    /// As [`reward_model_step`](Self::reward_model_step).
    pub fn reward_model_stats(
        &self,
        model: &Model,
        pairs: &[ConversationPair],
        config: &BradleyTerryConfig,
    ) -> Result<PairStats> {
        let _guard = tch::no_grad_guard();
        let counts = |batches: &Vec<MicroBatch>| [pairs.len(), tokens(batches)];
        let (batches, [total, tokens]) = self.counted(self.batches_of_conversations(model, pairs), counts)?;
        let statistics = self.measured(&batches, |batch| {
            Ok(batch_loss(model, &frozen_hidden(model, batch)?, batch, pairs, total, config)?.1)
        })?;
        Ok(PairStats::new(statistics, total, None, tokens))
    }

    fn batches_of_conversations(&self, model: &Model, pairs: &[ConversationPair]) -> Result<Vec<MicroBatch>> {
        let pad = model.config().pad_token_id;
        let rows = pairs.iter().enumerate().map(|(index, pair)| pair.rows(index, pad)).collect::<Result<Vec<_>>>()?;
        let sequences: Vec<_> = rows.iter().flatten().map(ScoredRow::sequence).collect();
        pair_micro_batches(&sequences, self.max_tokens, model)
    }
}

/// How many tokens the model reads.
pub(super) fn tokens(batches: &[MicroBatch]) -> usize {
    batches.iter().map(|batch| batch.packed.tokens() as usize).sum()
}

/// The contribution of a micro-batch, with these hidden states, to the mean loss of `total` pairs and to the numbers.
fn batch_loss(
    model: &Model,
    hidden: &Tensor,
    batch: &MicroBatch,
    pairs: &[ConversationPair],
    total: usize,
    config: &BradleyTerryConfig,
) -> Result<(Tensor, ChunkSums)> {
    let places = batch.whole();
    let scores = places.scores(model, hidden)?;
    let mut columns = Columns::default();
    let margins = columns.add(|row, _| pairs[row / 2].margin);
    let margins = batch.values(&columns, hidden)?.of(margins, &places)?;
    // Each row has one place, and the rows of a pair follow each other.
    let side = |values: &Tensor, side: i64| values.f_view([-1, 2])?.f_select(1, side);
    let (chosen, rejected) = (side(&scores, 0)?, side(&scores, 1)?);
    let loss = config.loss(&chosen, &rejected, &side(&margins, 0)?)?.f_sum(None)?.try_div(total as f64)?;
    let sums = pair_sums(&loss, &chosen, &rejected)?;
    Ok((loss, sums))
}

#[cfg(test)]
mod tests;
