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
use gavel_torch::attention::FlashRows;
use rows::{before, check, seen};
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
}

impl Packed {
    /// Lays out `rows`.
    ///
    /// # Errors
    /// There are no rows, a row is empty, or a row follows one that it cannot
    /// follow.
    pub fn new(rows: &[PackedRow], device: Device) -> Result<Self> {
        check(rows)?;
        // Rows that others follow come first; then rows by length, so that the rows of a bucket are neighbours.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&row| (rows[row].after.is_some(), seen(rows, row), rows[row].tokens.len()));
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

    /// The rows for attention of all of them at once; `None` if a row follows another.
    fn flash_rows(&self) -> Result<Option<FlashRows>> {
        if self.buckets.iter().any(|bucket| bucket.before != [0]) {
            return Ok(None);
        }
        // The rows are next to each other.
        let mut starts: Vec<i32> = self.starts.iter().map(|&start| start as i32).collect();
        starts.sort_unstable();
        starts.push(self.tokens() as i32);
        let starts = Tensor::f_from_slice(&starts)?.f_to_device(self.device())?;
        let longest = self.lengths.iter().max().copied().unwrap_or_default() as i64;
        Ok(Some(FlashRows {
            first_queries: starts.shallow_clone(),
            starts,
            lengths: None,
            most_queries: longest,
            most_keys: longest,
        }))
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
}
