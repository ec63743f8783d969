//! Rows of different lengths → padded micro-batches.

use crate::error::{Result, TrainError};
use gavel_policy::{Model, Padding};
use tch::{Device, Kind, Tensor};

/// A row, as far as the forward pass is concerned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence<'a> {
    pub prompt: &'a [u32],
    pub response: &'a [u32],
    /// For each response token whether it is learned from; absent for all.
    pub loss_mask: Option<&'a [bool]>,
}

impl Sequence<'_> {
    fn is_trained(&self, at: usize) -> bool {
        self.loss_mask.is_none_or(|mask| mask[at])
    }

    /// The number of tokens that are learned from.
    pub fn trained(&self) -> usize {
        (0..self.response.len()).filter(|&at| self.is_trained(at)).count()
    }

    /// How many tokens the model must read to predict the last token that is
    /// learned from: that token and what follows it are not read.
    fn input_len(&self) -> usize {
        let last = (0..self.response.len()).rev().find(|&at| self.is_trained(at));
        last.map_or(0, |last| self.prompt.len() + last)
    }

    fn check(&self, index: usize, vocab_size: i64) -> Result<()> {
        let wrong = |what: String| Err(TrainError::Row { index, what });
        if self.prompt.is_empty() {
            return wrong("has an empty prompt: the first response token has nothing to follow from".into());
        }
        if let Some(mask) = self.loss_mask.filter(|mask| mask.len() != self.response.len()) {
            return wrong(format!("has a loss mask of {} for {} response tokens", mask.len(), self.response.len()));
        }
        let foreign = self.prompt.iter().chain(self.response).find(|&&id| i64::from(id) >= vocab_size);
        match foreign {
            Some(id) => wrong(format!("has token id {id}, but the model's vocabulary has {vocab_size}")),
            None => Ok(()),
        }
    }
}

/// Some rows of a mini-batch, padded on the right to the longest of them.
#[derive(Debug)]
pub(crate) struct MicroBatch {
    /// `[rows, time]`
    ids: Tensor,
    /// `[tokens]`: where in the flattened `ids` the hidden state stands that
    /// predicts each token that is learned from.
    positions: Tensor,
    /// `[tokens]`: those tokens.
    pub targets: Tensor,
    /// For each of those tokens, its row in the mini-batch and its position in
    /// the response.
    pub tokens: Vec<(usize, usize)>,
}

impl MicroBatch {
    fn new(rows: &[usize], sequences: &[Sequence], device: Device) -> Result<Self> {
        let time = rows.iter().map(|&row| sequences[row].input_len()).max().unwrap_or_default();
        let mut ids = vec![0i64; rows.len() * time];
        let (mut positions, mut targets, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
        for (line, &row) in rows.iter().enumerate() {
            let sequence = &sequences[row];
            let read = sequence.prompt.iter().chain(sequence.response).take(sequence.input_len());
            for (slot, &id) in ids[line * time..].iter_mut().zip(read) {
                *slot = i64::from(id);
            }
            for at in (0..sequence.response.len()).filter(|&at| sequence.is_trained(at)) {
                positions.push((line * time + sequence.prompt.len() + at - 1) as i64);
                targets.push(i64::from(sequence.response[at]));
                tokens.push((row, at));
            }
        }
        let tensor = |values: &[i64]| Tensor::f_from_slice(values)?.f_to_device(device);
        Ok(Self {
            ids: tensor(&ids)?.f_view([rows.len() as i64, time as i64])?,
            positions: tensor(&positions)?,
            targets: tensor(&targets)?,
            tokens,
        })
    }

    /// The logits, `[tokens, vocab]`, that predict [`targets`](Self::targets),
    /// in at least 32 bits. Only these positions pass through the head.
    pub fn logits(&self, model: &Model) -> Result<Tensor> {
        let hidden = model.hidden(&self.ids, &Padding::Right)?.f_flatten(0, 1)?;
        let logits = model.logits(&hidden.f_index_select(0, &self.positions)?)?;
        let wide = matches!(logits.f_kind()?, Kind::Float | Kind::Double);
        Ok(if wide { logits } else { logits.f_to_kind(Kind::Float)? })
    }

    /// A value for each token that is learned from, `[tokens]`, on the device
    /// and of the kind of `like`.
    pub fn values(&self, like: &Tensor, value: impl Fn(usize, usize) -> f64) -> Result<Tensor> {
        let values: Vec<f64> = self.tokens.iter().map(|&(row, at)| value(row, at)).collect();
        Ok(Tensor::f_from_slice(&values)?.f_to_kind(like.f_kind()?)?.f_to_device(like.device())?)
    }

    #[cfg(test)]
    pub fn shape(&self) -> Vec<i64> {
        self.ids.size()
    }
}

/// Packs the rows that have something to learn from into micro-batches of at
/// most `max_tokens` tokens, padding included; a longer row stands alone. Rows
/// of similar length meet, so that little is padded. The order depends on
/// nothing but the lengths.
pub(crate) fn micro_batches(sequences: &[Sequence], max_tokens: usize, model: &Model) -> Result<Vec<MicroBatch>> {
    for (index, sequence) in sequences.iter().enumerate() {
        sequence.check(index, model.config().vocab_size)?;
    }
    plan(sequences, max_tokens).iter().map(|rows| MicroBatch::new(rows, sequences, model.device())).collect()
}

fn plan(sequences: &[Sequence], max_tokens: usize) -> Vec<Vec<usize>> {
    let lengths: Vec<usize> = sequences.iter().map(Sequence::input_len).collect();
    let mut order: Vec<usize> = (0..sequences.len()).filter(|&row| lengths[row] > 0).collect();
    order.sort_by_key(|&row| lengths[row]);
    let mut plan: Vec<Vec<usize>> = Vec::new();
    for row in order {
        match plan.last_mut() {
            // In rising order this row is the longest of the micro-batch.
            Some(rows) if (rows.len() + 1) * lengths[row] <= max_tokens => rows.push(row),
            _ => plan.push(vec![row]),
        }
    }
    plan
}

/// `log softmax(logits)` at `targets`, `[tokens]`, of `logits`, `[tokens,
/// vocab]`, without the normalised matrix; also the normaliser, `[tokens]`.
pub(crate) fn target_logprobs(logits: &Tensor, targets: &Tensor) -> Result<(Tensor, Tensor)> {
    let normaliser = logits.f_logsumexp([-1], false)?;
    let chosen = logits.f_gather(-1, &targets.f_unsqueeze(-1)?, false)?.f_squeeze_dim(-1)?;
    Ok((chosen.f_sub(&normaliser)?, normaliser))
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
        assert_eq!(batch.shape(), [2, 4]);
        assert_eq!(ints(&batch.ids), [20, 21, 22, 0, 10, 11, 12, 13]);
        assert_eq!(ints(&batch.positions), [0, 2, 5, 6, 7]);
        assert_eq!(ints(&batch.targets), [21, 23, 12, 13, 14]);
        assert_eq!(batch.tokens, [(1, 0), (1, 2), (0, 0), (0, 1), (0, 2)]);
    }

    #[test]
    fn rows_are_packed_by_length_within_the_budget() {
        let tokens = [1u32; 64];
        let lengths = [9usize, 2, 30, 3, 8, 2];
        // The last response token is never read.
        let rows: Vec<_> = lengths.iter().map(|&length| sequence(&tokens[..1], &tokens[..length], None)).collect();
        assert_eq!(plan(&rows, 16), vec![vec![1, 5, 3], vec![4], vec![0], vec![2]]);
        assert_eq!(plan(&rows, 1000).len(), 1);
        let silent = [sequence(&[1], &[], None), sequence(&[1], &[2], Some(&[false]))];
        assert!(plan(&silent, 16).is_empty());
    }

    #[test]
    fn broken_rows_are_named() {
        let error = |row: Sequence| row.check(3, 50).unwrap_err().to_string();
        assert!(error(sequence(&[], &[1], None)).starts_with("row 3 of the mini-batch has an empty prompt"));
        assert!(error(sequence(&[1], &[1], Some(&[]))).contains("a loss mask of 0 for 1 response tokens"));
        assert!(error(sequence(&[1], &[50], None)).contains("token id 50, but the model's vocabulary has 50"));
    }
}
