//! Rows of different lengths → packed micro-batches.

use crate::error::{Result, TrainError};
use gavel_policy::{Model, Packed, PackedRow, take_rows};
use std::collections::HashMap;
use tch::{Device, Kind, Tensor};

/// How many keys attention may look at for each token of a forward pass: they
/// take a small part of what a token's other activations do.
pub const KEYS_PER_TOKEN: usize = 4;

/// The memory that the logits of a micro-batch may take at a time, in 32 bits.
pub const LOGIT_BYTES: usize = 256 << 20;

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

    /// How many tokens of the response the model must read to predict the last
    /// one that is learned from: that one and what follows it are not read.
    /// Absent where nothing is learned.
    fn read(&self) -> Option<usize> {
        (0..self.response.len()).rev().find(|&at| self.is_trained(at))
    }

    fn shares_prompt(&self) -> bool {
        shares_prompt(self.prompt.len(), self.read().unwrap_or_default())
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

/// Whether a prompt of so many tokens is computed once for a response, of which
/// so many are read, and others. One that is short beside the response saves
/// little, and the mask that sharing needs grows with the square of the
/// response.
pub fn shares_prompt(prompt: usize, read: usize) -> bool {
    read <= 8 * prompt || read.saturating_mul(prompt + read) <= 1 << 22
}

/// Some rows of a mini-batch, packed: a prompt that several of them have is
/// there once.
#[derive(Debug)]
pub(crate) struct MicroBatch {
    pub packed: Packed,
    /// `[tokens]`: where in `packed` the hidden state stands that predicts each
    /// token that is learned from.
    positions: Tensor,
    /// `[tokens]`: those tokens.
    targets: Tensor,
    /// For each of those tokens, its row in the mini-batch and its position in
    /// the response.
    pub tokens: Vec<(usize, usize)>,
}

/// Some of the tokens of a micro-batch, as many as have room for their logits.
pub(crate) struct Chunk<'a> {
    /// `[tokens]`: the tokens.
    pub targets: Tensor,
    positions: Tensor,
    /// Row and position of each, as in [`MicroBatch::tokens`].
    pub tokens: &'a [(usize, usize)],
}

impl MicroBatch {
    fn new(rows: &[usize], sequences: &[Sequence], device: Device) -> Result<Self> {
        let mut sharing: HashMap<&[u32], usize> = HashMap::new();
        for &row in rows {
            *sharing.entry(sequences[row].prompt).or_default() += usize::from(sequences[row].shares_prompt());
        }
        let mut packed: Vec<PackedRow> = Vec::new();
        let mut prompts: HashMap<&[u32], usize> = HashMap::new();
        // For each row, which packed row has the end of its prompt and which its response.
        let mut homes = Vec::new();
        for &row in rows {
            let Sequence { prompt, response, .. } = sequences[row];
            let read = &response[..sequences[row].read().unwrap_or_default()];
            if sharing[prompt] < 2 || !sequences[row].shares_prompt() {
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

    /// The tokens that are learned from, so many at a time that the logits of
    /// `model` fit into [`LOGIT_BYTES`].
    pub fn chunks(&self, model: &Model) -> Result<Vec<Chunk<'_>>> {
        let size = (LOGIT_BYTES / (4 * model.config().vocab_size as usize)).max(1);
        let chunk = |(index, tokens)| {
            let (start, length) = ((index * size) as i64, <[_]>::len(tokens) as i64);
            Ok(Chunk {
                targets: self.targets.f_narrow(0, start, length)?,
                positions: self.positions.f_narrow(0, start, length)?,
                tokens,
            })
        };
        self.tokens.chunks(size).enumerate().map(chunk).collect()
    }
}

impl Chunk<'_> {
    /// The logits, `[tokens, vocab]`, that predict [`targets`](Self::targets),
    /// over `temperature` and in at least 32 bits, from the micro-batch's
    /// hidden states. Only these positions pass through the head.
    pub fn logits(&self, model: &Model, hidden: &Tensor, temperature: f64) -> Result<Tensor> {
        let logits = model.logits(&take_rows(hidden, &self.positions)?)?;
        let wide = matches!(logits.f_kind()?, Kind::Float | Kind::Double);
        let logits = if wide { logits } else { logits.f_to_kind(Kind::Float)? };
        Ok(if temperature == 1.0 { logits } else { logits.f_div_scalar(temperature)? })
    }

    /// A value for each token, `[tokens]`, on the device and of the kind of `like`.
    pub fn values(&self, like: &Tensor, value: impl Fn(usize, usize) -> f64) -> Result<Tensor> {
        let values: Vec<f64> = self.tokens.iter().map(|&(row, at)| value(row, at)).collect();
        Ok(Tensor::f_from_slice(&values)?.f_to_kind(like.f_kind()?)?.f_to_device(like.device())?)
    }
}

/// Packs the rows that have something to learn from into micro-batches of at
/// most `max_tokens` tokens; a longer row stands alone. Rows with the same
/// prompt stay together where they fit, and rows of similar length meet. Each
/// row has keys and values of its own of a prompt that is computed once: of all
/// rows they are at most [`KEYS_PER_TOKEN`] times `max_tokens`. The order
/// depends on nothing but prompts and lengths.
pub(crate) fn micro_batches(sequences: &[Sequence], max_tokens: usize, model: &Model) -> Result<Vec<MicroBatch>> {
    for (index, sequence) in sequences.iter().enumerate() {
        sequence.check(index, model.config().vocab_size)?;
    }
    plan(sequences, max_tokens).iter().map(|rows| MicroBatch::new(rows, sequences, model.device())).collect()
}

fn plan(sequences: &[Sequence], max_tokens: usize) -> Vec<Vec<usize>> {
    let mut known: HashMap<&[u32], usize> = HashMap::new();
    let mut groups: Vec<Vec<(usize, usize)>> = Vec::new();
    for (row, sequence) in sequences.iter().enumerate() {
        if let Some(read) = sequence.read() {
            let group = *known.entry(sequence.prompt).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push((read, row));
        }
    }
    groups.iter_mut().for_each(|rows| rows.sort_unstable());
    let length = |&(read, row): &(usize, usize)| sequences[row].prompt.len() + read;
    groups.sort_by_key(|rows| rows.last().map(length));

    let mut plan: Vec<Vec<usize>> = Vec::new();
    let (mut tokens, mut keys) = (0, 0);
    for group in &groups {
        let mut prompt_is_there = false;
        for &(read, row) in group {
            let whole = sequences[row].prompt.len() + read;
            let shares = sequences[row].shares_prompt();
            let more = if prompt_is_there && shares { read } else { whole };
            match plan.last_mut() {
                Some(rows) if tokens + more <= max_tokens && keys + whole <= KEYS_PER_TOKEN * max_tokens => {
                    rows.push(row);
                    (tokens, keys) = (tokens + more, keys + whole);
                    prompt_is_there |= shares;
                }
                _ => {
                    plan.push(vec![row]);
                    (tokens, keys) = (whole, whole);
                    prompt_is_there = shares;
                }
            }
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
    fn rows_are_packed_within_the_budget() {
        let tokens: Vec<u32> = (0..64).collect();
        let lengths = [9usize, 2, 30, 3, 8, 2];
        // Each has a prompt of its own, and the last response token is never read.
        let rows: Vec<_> = lengths
            .iter()
            .enumerate()
            .map(|(row, &length)| sequence(&tokens[row..=row], &tokens[..length], None))
            .collect();
        assert_eq!(plan(&rows, 16), vec![vec![1, 5, 3, 4], vec![0], vec![2]]);
        assert_eq!(plan(&rows, 1000).len(), 1);
        let silent = [sequence(&[1], &[], None), sequence(&[1], &[2], Some(&[false]))];
        assert!(plan(&silent, 16).is_empty());
    }

    #[test]
    fn rows_with_one_prompt_stay_together_where_they_fit() {
        let (a, b) = ([1; 10], [2; 10]);
        let response = [3; 5];
        let rows: Vec<_> = [&a, &b, &a, &b, &a].iter().map(|prompt| sequence(*prompt, &response, None)).collect();
        // 10 + 3 × 4 and 10 + 2 × 4 tokens
        assert_eq!(plan(&rows, 22), vec![vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(plan(&rows, 18), vec![vec![0, 2], vec![4], vec![1, 3]]);
        assert_eq!(plan(&rows, 1).len(), 5);
    }

    #[test]
    fn a_shared_prompt_does_not_let_keys_grow_without_bound() {
        // Together 200 + 40 × 2 tokens, but 202 keys for each response.
        let (prompt, response) = ([1; 200], [2; 3]);
        let rows: Vec<_> = (0..40).map(|_| sequence(&prompt, &response, None)).collect();
        let plan = plan(&rows, 300);
        assert!(plan.iter().all(|rows| rows.len() * 202 <= 4 * 300), "{plan:?}");
        assert_eq!(plan.concat(), (0..40).collect::<Vec<_>>());
        assert_eq!(plan.len(), 8);
    }

    #[test]
    fn a_prompt_is_not_shared_where_the_mask_would_cost_more_than_it_saves() {
        let (prompt, short, long) = ([1; 10], [2; 50], vec![2; 3000]);
        let rows = [&short[..], &long, &short, &long].map(|response| sequence(&prompt, response, None));
        let batch = MicroBatch::new(&[0, 1, 2, 3], &rows, Device::Cpu).unwrap();
        assert_eq!(batch.packed.tokens(), 10 + 2 * 49 + 2 * (10 + 2999));
    }

    #[test]
    fn broken_rows_are_named() {
        let error = |row: Sequence| row.check(3, 50).unwrap_err().to_string();
        assert!(error(sequence(&[], &[1], None)).starts_with("row 3 of the mini-batch has an empty prompt"));
        assert!(error(sequence(&[1], &[1], Some(&[]))).contains("a loss mask of 0 for 1 response tokens"));
        assert!(error(sequence(&[1], &[50], None)).contains("token id 50, but the model's vocabulary has 50"));
    }
}
