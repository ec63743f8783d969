//! Some rows of a mini-batch as packed tensors, and the log-probabilities and
//! values computed from their hidden states.

use super::plan::has_shared_prompt;
use super::sequence::Sequence;
use crate::error::Result;
use gavel_policy::{Model, ModelConfig, Packed, PackedRow, take_rows};
use gavel_torch::head::{Beside, LogitChanges, TokenLogprobs};
use gavel_torch::scalar::ScalarOperations;
use std::collections::HashMap;
use std::ops::Range;
use tch::{Device, Kind, Tensor};

/// The memory that the logits of a micro-batch may take at a time, in 32 bits. A GPU needs larger products to be busy, and
/// waits for the host at fewer chunks. With twice as much, a 7B model in eight ranks by layer would need more than half of a
/// GPU of 80 GB.
fn logit_bytes(device: Device) -> usize {
    if device.is_cuda() { 1 << 30 } else { 256 << 20 }
}

/// How many tokens' logits are computed at a time.
pub fn tokens_per_chunk(sizes: &ModelConfig, device: Device) -> usize {
    (logit_bytes(device) / (4 * sizes.vocab_size as usize)).max(1)
}

/// Some rows of a mini-batch, packed: a prompt that several of them have
/// appears once.
#[derive(Debug)]
pub(crate) struct MicroBatch {
    pub packed: Packed,
    /// `[tokens]`: for each token that is learned from, the place in `packed`
    /// of the hidden state that predicts it.
    positions: Tensor,
    /// `[tokens]`: those tokens.
    targets: Tensor,
    /// For each of those tokens, its row in the mini-batch and its position in
    /// the response.
    pub tokens: Vec<(usize, usize)>,
}

/// Some of the tokens of a micro-batch, as many as their logits have room for.
pub(crate) struct Chunk<'a> {
    /// `[tokens]`: the tokens.
    pub targets: Tensor,
    positions: Tensor,
    /// Row and position of each, as in [`MicroBatch::tokens`].
    pub tokens: &'a [(usize, usize)],
    /// Where they are among the tokens of the micro-batch.
    pub(super) place: Range<i64>,
}

impl MicroBatch {
    /// The rows with these numbers.
    pub(super) fn new(rows: &[usize], sequences: &[Sequence], device: Device) -> Result<Self> {
        let mut sharing: HashMap<&[u32], usize> = HashMap::new();
        for &row in rows {
            *sharing.entry(sequences[row].prompt).or_default() += usize::from(has_shared_prompt(&sequences[row]));
        }
        let mut packed: Vec<PackedRow> = Vec::new();
        let mut prompts: HashMap<&[u32], usize> = HashMap::new();
        // For each row, which packed row has the end of its prompt and which its response.
        let mut homes = Vec::new();
        for &row in rows {
            let Sequence { prompt, response, .. } = sequences[row];
            let read = &response[..sequences[row].read().unwrap_or_default()];
            if sharing[prompt] < 2 || !has_shared_prompt(&sequences[row]) {
                homes.push((packed.len(), None));
                packed.push(PackedRow { after: None, tokens: [prompt, read].concat() });
                continue;
            }
            let after = *prompts.entry(prompt).or_insert_with(|| {
                packed.push(PackedRow { after: None, tokens: prompt.to_vec() });
                packed.len() - 1
            });
            homes.push((after, Some(packed.len())));
            if !read.is_empty() {
                packed.push(PackedRow { after: Some(after), tokens: read.to_vec() });
            }
        }
        let packed = Packed::new(&packed, device)?;
        let (mut positions, mut targets, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        for (&row, &(prompt, response)) in rows.iter().zip(&homes) {
            let sequence = &sequences[row];
            for at in (0..sequence.response.len()).filter(|&at| sequence.is_trained(at)) {
                positions.push(match response.filter(|_| at > 0) {
                    Some(response) => packed.start(response) + at - 1,
                    None => packed.start(prompt) + sequence.prompt.len() + at - 1,
                } as i64);
                targets.push(i64::from(sequence.response[at]));
                tokens.push((row, at));
            }
        }
        let tensor = |values: &[i64]| Tensor::f_from_slice(values)?.f_to_device(device);
        Ok(Self { packed, positions: tensor(&positions)?, targets: tensor(&targets)?, tokens })
    }

    /// The tokens that are learned from, in chunks of [`tokens_per_chunk`].
    pub fn chunks(&self, model: &Model) -> Result<Vec<Chunk<'_>>> {
        self.chunks_of(tokens_per_chunk(model.config(), model.device()))
    }

    /// The same in chunks of `size` tokens.
    pub(super) fn chunks_of(&self, size: usize) -> Result<Vec<Chunk<'_>>> {
        let chunk = |(index, tokens)| {
            let (start, length) = ((index * size) as i64, <[_]>::len(tokens) as i64);
            Ok(Chunk {
                targets: self.targets.f_narrow(0, start, length)?,
                positions: self.positions.f_narrow(0, start, length)?,
                tokens,
                place: start..start + length,
            })
        };
        self.tokens.chunks(size).enumerate().map(chunk).collect()
    }

    /// The tokens that are learned from, all together, for a head that is small.
    pub fn whole(&self) -> Chunk<'_> {
        let (targets, positions) = (self.targets.shallow_clone(), self.positions.shallow_clone());
        Chunk { targets, positions, tokens: &self.tokens, place: 0..self.tokens.len() as i64 }
    }
}

impl Chunk<'_> {
    /// The log-probabilities of [`targets`](Self::targets) under the softmax of the logits over `temperature`, from the
    /// micro-batch's hidden states. Only these positions pass through the head.
    pub fn logprobs(&self, model: &Model, hidden: &Tensor, temperature: f64, beside: Beside) -> Result<TokenLogprobs> {
        self.changed_logprobs(model, hidden, temperature, beside, &LogitChanges::default())
    }

    /// The same of logits after `changes`, whose rows are the tokens of the chunk.
    pub fn changed_logprobs(
        &self,
        model: &Model,
        hidden: &Tensor,
        temperature: f64,
        beside: Beside,
        changes: &LogitChanges,
    ) -> Result<TokenLogprobs> {
        let hidden = take_rows(hidden, &self.positions)?;
        Ok(model.changed_logprobs_of(&hidden, &self.targets, temperature, beside, changes)?)
    }

    /// The log-probabilities before [`targets`](Self::targets) of the first `vocabulary` tokens, `[tokens, vocabulary]`
    /// and in at least 32 bits, among these.
    pub fn all_logprobs(&self, model: &Model, hidden: &Tensor, temperature: f64, vocabulary: i64) -> Result<Tensor> {
        let logits = model.logits(&take_rows(hidden, &self.positions)?)?.f_narrow(-1, 0, vocabulary)?;
        let kind = if logits.f_kind()? == Kind::Double { Kind::Double } else { Kind::Float };
        let logits = logits.f_to_kind(kind)?;
        let logits = if temperature == 1.0 { logits } else { logits.try_div(temperature)? };
        Ok(logits.f_log_softmax(-1, None::<Kind>)?)
    }

    /// The scores, `[tokens]` and in at least 32 bits, that a classifier with one label gives to the rows that end
    /// before [`targets`](Self::targets).
    pub fn scores(&self, model: &Model, hidden: &Tensor) -> Result<Tensor> {
        let scores = model.scores_of_last(&take_rows(hidden, &self.positions)?)?.f_flatten(0, 1)?;
        let wide = matches!(scores.f_kind()?, Kind::Float | Kind::Double);
        Ok(if wide { scores } else { scores.f_to_kind(Kind::Float)? })
    }

    /// The values, `[tokens]` and in at least 32 bits, that a critic gives before [`targets`](Self::targets).
    pub fn critic_values(&self, model: &Model, hidden: &Tensor) -> Result<Tensor> {
        let values = model.values(&take_rows(hidden, &self.positions)?)?.f_flatten(0, -1)?;
        let wide = matches!(values.f_kind()?, Kind::Float | Kind::Double);
        Ok(if wide { values } else { values.f_to_kind(Kind::Float)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence<'a>(prompt: &'a [u32], response: &'a [u32], loss_mask: Option<&'a [bool]>) -> Sequence<'a> {
        Sequence { prompt, response, loss_mask }
    }

    fn ints(tensor: &Tensor) -> Vec<i64> {
        tensor.flatten(0, -1).try_into().unwrap()
    }

    #[test]
    fn only_what_predicts_a_trained_token_is_read_and_picked() {
        let rows = [
            sequence(&[10, 11], &[12, 13, 14], None),
            sequence(&[20], &[21, 22, 23, 24], Some(&[true, false, true, false])),
        ];
        let batch = MicroBatch::new(&[1, 0], &rows, Device::Cpu).unwrap();
        // 20 21 22 and 10 11 12 13
        assert_eq!(batch.packed.tokens(), 7);
        assert_eq!(ints(&batch.positions), [0, 2, 4, 5, 6]);
        assert_eq!(ints(&batch.targets), [21, 23, 12, 13, 14]);
        assert_eq!(batch.tokens, [(1, 0), (1, 2), (0, 0), (0, 1), (0, 2)]);
    }

    #[test]
    fn a_shared_prompt_is_read_once() {
        let rows = [
            sequence(&[10, 11], &[12, 13, 14], None),
            sequence(&[10, 11], &[15], None),
            sequence(&[20], &[21, 22], None),
            sequence(&[10, 11], &[16, 17], None),
        ];
        let batch = MicroBatch::new(&[0, 1, 2, 3], &rows, Device::Cpu).unwrap();
        // 10 11, 20 21, 16 and 12 13
        assert_eq!(batch.packed.tokens(), 7);
        assert_eq!(ints(&batch.positions), [1, 5, 6, 1, 2, 3, 1, 4]);
        assert_eq!(ints(&batch.targets), [12, 13, 14, 15, 21, 22, 16, 17]);
    }

    #[test]
    fn a_prompt_is_not_shared_where_the_mask_would_cost_more_than_it_saves() {
        let (prompt, short, long) = ([1; 10], [2; 50], vec![2; 3000]);
        let rows = [&short[..], &long, &short, &long].map(|response| sequence(&prompt, response, None));
        let batch = MicroBatch::new(&[0, 1, 2, 3], &rows, Device::Cpu).unwrap();
        assert_eq!(batch.packed.tokens(), 10 + 2 * 49 + 2 * (10 + 2999));
    }
}
