//! Sequences side by side, without padding, as training reads them. Sequences
//! with the same beginning, such as the responses to one prompt, share it: it
//! is computed once, and the gradients of all of them flow into it.

mod attention;
mod bucket;
mod cut;
mod indices;
mod rows;

pub(crate) use attention::PackedAttention;
pub use cut::MASK_NUMBERS;
pub use indices::take_rows;
pub use rows::PackedRow;

use crate::config::ModelConfig;
use crate::error::{PolicyError, Result};
use crate::layer::Projected;
use crate::mask::Masks;
use bucket::{Bucket, Layout};
use gavel_torch::attention::{FlashRows, SharedRows};
use rows::{SharedPrompt, before, by_length, by_prompt, check, shared_prompts};
use tch::{Device, Tensor};

/// Rows of tokens, laid out for [`Model::hidden_packed`](crate::Model::hidden_packed).
#[derive(Debug)]
pub struct Packed {
    /// `[tokens]`
    pub(crate) ids: Tensor,
    /// `[tokens]`: how many tokens stand before each.
    pub(crate) positions: Tensor,
    /// Where each row begins in `ids`.
    starts: Vec<usize>,
    /// The tokens of each row.
    lengths: Vec<usize>,
    /// In the order of `ids`.
    buckets: Vec<Bucket>,
    /// In the order of `ids`, if all rows after a prompt are neighbours.
    prompts: Option<Vec<SharedPrompt>>,
}

/// The order of rows in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// For buckets with little padding.
    ByLength,
    /// For attention to each prompt of all rows after it at once.
    ByPrompt,
}

impl Packed {
    /// Lays out `rows`.
    ///
    /// # Errors
    /// There are no rows, a row is empty, or a row follows one that it cannot
    /// follow.
    pub fn new(rows: &[PackedRow], device: Device) -> Result<Self> {
        Self::arranged(rows, if device.is_cuda() { Order::ByPrompt } else { Order::ByLength }, device)
    }

    fn arranged(rows: &[PackedRow], arrangement: Order, device: Device) -> Result<Self> {
        check(rows)?;
        let order = match arrangement {
            Order::ByLength => by_length(rows),
            Order::ByPrompt => by_prompt(rows),
        };
        let mut starts = vec![0; rows.len()];
        let (mut ids, mut positions) = (Vec::new(), Vec::new());
        for &row in &order {
            starts[row] = ids.len();
            let before = before(rows, row);
            ids.extend(rows[row].tokens.iter().map(|&id| i64::from(id)));
            positions.extend((before..before + rows[row].tokens.len()).map(|position| position as i64));
        }
        let layout = Layout { rows, starts: &starts, device };
        let buckets =
            cut::cut(rows, &order).into_iter().map(|members| layout.bucket(members)).collect::<Result<_>>()?;
        Ok(Self {
            ids: indices::on_device(&ids, device)?,
            positions: indices::on_device(&positions, device)?,
            starts,
            lengths: rows.iter().map(|row| row.tokens.len()).collect(),
            buckets,
            prompts: (arrangement == Order::ByPrompt).then(|| shared_prompts(rows, &order)),
        })
    }

    /// How many tokens there are.
    pub fn tokens(&self) -> i64 {
        self.ids.size()[0]
    }

    /// Where the tokens of a row begin among all.
    pub fn start(&self, row: usize) -> usize {
        self.starts[row]
    }

    /// Where tokens of rows are among all: of each row those at these places, from 0.
    pub(crate) fn places(&self, places: &[Vec<usize>]) -> Result<Vec<i64>> {
        if places.len() != self.starts.len() {
            return Err(PolicyError::Input(format!("places for {} rows of {}", places.len(), self.starts.len())));
        }
        let mut all = Vec::new();
        for (row, places) in places.iter().enumerate() {
            let length = self.lengths[row];
            if let Some(place) = places.iter().find(|place| **place >= length) {
                return Err(PolicyError::Input(format!("row {row} has {length} tokens, and none at {place}")));
            }
            all.extend(places.iter().map(|place| (self.starts[row] + place) as i64));
        }
        Ok(all)
    }

    pub(crate) fn device(&self) -> Device {
        self.ids.device()
    }

    /// Whether a row follows another.
    fn has_shared_prompts(&self) -> bool {
        self.buckets.iter().any(|bucket| bucket.before != [0])
    }

    /// The rows for attention within each of them, all at once.
    fn flash_rows(&self) -> Result<FlashRows> {
        // The rows are next to each other.
        let mut starts: Vec<i32> = self.starts.iter().map(|&start| start as i32).collect();
        starts.sort_unstable();
        starts.push(self.tokens() as i32);
        let starts = Tensor::f_from_slice(&starts)?.f_to_device(self.device())?;
        let longest = self.lengths.iter().max().copied().unwrap_or_default() as i64;
        Ok(FlashRows {
            first_queries: starts.shallow_clone(),
            starts,
            lengths: None,
            most_queries: longest,
            most_keys: longest,
        })
    }

    /// The rows for attention of all of them at once where some follow others; `None` if the rows after a prompt may not
    /// be neighbours.
    fn shared_rows(&self) -> Result<Option<SharedRows>> {
        let Some(prompts) = &self.prompts else { return Ok(None) };
        let keys: Vec<usize> = prompts.iter().map(|prompt| prompt.tokens).collect();
        let queries: Vec<usize> = prompts.iter().map(|prompt| prompt.follower_tokens).collect();
        let most = |counts: &[usize]| counts.iter().max().copied().unwrap_or_default() as i64;
        let sum = |counts: &[usize]| counts.iter().sum::<usize>() as i64;
        let rows = self.flash_rows()?;
        Ok(Some(SharedRows {
            starts: rows.starts,
            longest: rows.most_keys,
            prompts: FlashRows {
                first_queries: self.firsts(&queries)?,
                starts: self.firsts(&keys)?,
                lengths: None,
                most_queries: most(&queries),
                most_keys: most(&keys),
            },
            prompt_tokens: sum(&keys),
            follower_tokens: sum(&queries),
        }))
    }

    /// How many there are before each, and in all.
    fn firsts(&self, counts: &[usize]) -> Result<Tensor> {
        let mut firsts = vec![0];
        for count in counts {
            firsts.push(firsts[firsts.len() - 1] + *count as i32);
        }
        Ok(Tensor::f_from_slice(&firsts)?.f_to_device(self.device())?)
    }

    /// Attention by bucket; gives `[tokens, heads * head_dim]`.
    fn attend(&self, config: &ModelConfig, layer: usize, projected: &Projected, masks: &[Masks]) -> Result<Tensor> {
        let flat = |x: &Tensor| x.f_flatten(1, 2);
        let (query, key, value) = (flat(&projected.query)?, flat(&projected.key)?, flat(&projected.value)?);
        let sizes: Vec<i64> = self.buckets.iter().map(|bucket| bucket.tokens).collect();
        let queries = query.f_split_with_sizes(sizes, 0)?;
        let attended = self
            .buckets
            .iter()
            .zip(&queries)
            .zip(masks)
            .map(|((bucket, query), masks)| bucket.attend(config, query, &key, &value, masks.of(config, layer)));
        let attended = attended.collect::<Result<Vec<_>>>()?;
        match attended.as_slice() {
            [one] => Ok(one.shallow_clone()),
            many => Ok(Tensor::f_cat(many, 0)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pack of rows, each with the row that it follows, if any, and its
    /// number of tokens.
    fn pack(rows: &[(Option<usize>, usize)]) -> Packed {
        let row = |&(after, length): &(Option<usize>, usize)| PackedRow { after, tokens: vec![1; length] };
        Packed::new(&rows.iter().map(row).collect::<Vec<_>>(), Device::Cpu).unwrap()
    }

    fn keys(packed: &Packed) -> usize {
        packed.buckets.iter().filter_map(|bucket| Some(bucket.keys.as_ref()?.numel())).sum()
    }

    #[test]
    fn a_long_prompt_does_not_make_others_look_further() {
        let prompts = (0..8).map(|_| (None, 10)).chain([(None, 1000)]);
        let responses = (0..9).flat_map(|prompt| [(Some(prompt), 20); 2]);
        let packed = pack(&prompts.chain(responses).collect::<Vec<_>>());
        assert_eq!(keys(&packed), 16 * 30 + 2 * 1020);
        // Prompts of both lengths, and responses after them.
        assert_eq!(packed.buckets.len(), 4);
    }

    #[test]
    fn long_rows_after_prompts_of_different_lengths_do_not_share_masks() {
        let packed = pack(&[(None, 1500), (None, 1501), (Some(0), 2600), (Some(1), 2600)]);
        let responses: Vec<_> = packed.buckets.iter().filter(|bucket| bucket.before != [0]).collect();
        assert_eq!(responses.iter().map(|bucket| bucket.before.as_slice()).collect::<Vec<_>>(), [[1500], [1501]]);
        let packed = pack(&[(None, 15), (None, 16), (Some(0), 26), (Some(1), 26)]);
        assert_eq!(packed.buckets.last().unwrap().before, [15, 16]);
    }

    #[test]
    fn buckets_of_rows_by_prompt_keep_their_limits() {
        // The last row follows the longer prompt, but sees less than the row before it.
        let rows: Vec<PackedRow> = [(None, 10), (None, 300), (Some(0), 1300), (Some(0), 2500), (Some(1), 1300)]
            .map(|(after, length)| PackedRow { after, tokens: vec![1; length] })
            .into();
        let cuts = |order| -> Vec<Vec<i64>> {
            let packed = Packed::arranged(&rows, order, Device::Cpu).unwrap();
            packed.buckets.iter().map(|bucket| bucket.before.clone()).collect()
        };
        assert_eq!(cuts(Order::ByPrompt), [[0], [0], [10], [300]]);
        assert_eq!(cuts(Order::ByLength), [vec![0], vec![0], vec![10, 300], vec![10]]);
    }
}
