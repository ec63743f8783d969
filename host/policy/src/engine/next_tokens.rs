//! Attention of the rows that decode: one query each.
//!
//! A product over many slots reads as many positions as the longest row in them
//! has. Long rows are in the first slots (`slots.rs`), and the slots are
//! divided into shares, so that short rows do not pay for long ones.

use super::kv_cache::KvCache;
use crate::config::ModelConfig;
use crate::error::Result;
use crate::layer::Projected;
use crate::mask::StepMasks;
use crate::memory::kv_bytes_per_layer;
use crate::model::Model;
use gavel_torch::scalar::ScalarOperations;
use std::ops::Range;
use tch::{Device, Kind, Tensor};

/// The largest number of shares that the slots are divided into.
const SHARES: usize = 4;

/// One token of each of the first slots.
pub(super) struct NextTokens {
    /// Where their keys go.
    places: Tensor,
    shares: Vec<Share>,
}

/// Neighbouring slots.
struct Share {
    first: i64,
    rows: i64,
    /// Positions in use by the longest row, its next token included.
    longest: i64,
    masks: StepMasks,
}

impl NextTokens {
    /// The next tokens at `positions`, `[rows]`; `on_device` has the same numbers on the device.
    pub(super) fn new(model: &Model, cache: &KvCache, positions: &[i64], on_device: Tensor) -> Result<Self> {
        let worth = worth(model.config(), model.kind(), model.device());
        let scores = if is_half(model.kind()) { Kind::Float } else { model.kind() };
        let share = |slots: Range<usize>| -> Result<Share> {
            let longest = longest(&positions[slots.clone()]);
            let (first, rows) = (slots.start as i64, slots.len() as i64);
            let ragged = positions[slots].iter().any(|position| position + 1 != longest);
            let masks = StepMasks::new(model.config(), &on_device.f_narrow(0, first, rows)?, longest, ragged, scores)?;
            Ok(Share { first, rows, longest, masks })
        };
        Ok(Self {
            places: cache.places(&on_device)?,
            shares: divided(positions, worth).into_iter().map(share).collect::<Result<_>>()?,
        })
    }

    /// Stores the keys and values, and attends to all of each row: `[rows,
    /// query_width]`.
    pub(super) fn attend(&self, model: &Model, cache: &mut KvCache, layer: usize, own: &Projected) -> Result<Tensor> {
        let config = model.config();
        cache.append(layer, &self.places, &own.key, &own.value)?;
        let query = match is_half(own.query.kind()) {
            // The scores are scaled instead, which does not round them.
            true => own.query.shallow_clone(),
            false => own.query.try_mul(scale(config))?,
        };
        let attended = |share: &Share| share.attend(config, cache, layer, &query);
        match self.shares.as_slice() {
            [all] => attended(all),
            shares => Ok(Tensor::f_cat(&shares.iter().map(attended).collect::<Result<Vec<_>>>()?, 0)?),
        }
    }
}

impl Share {
    fn attend(&self, config: &ModelConfig, cache: &KvCache, layer: usize, query: &Tensor) -> Result<Tensor> {
        let heads = [config.num_key_value_heads, config.num_attention_heads / config.num_key_value_heads];
        let (keys, values) = cache.read(layer, self.first, self.rows, self.longest)?;
        // One query a row: plain batched products are about three times faster than fused attention
        // on the CPU. The query heads of a group are the rows of one product.
        let query = query.f_narrow(0, self.first, self.rows)?.f_reshape([self.rows * heads[0], heads[1], -1])?;
        let keys = keys.f_transpose(1, 2)?;
        let mut scores = match is_half(query.kind()) {
            true => wide_scores(&query, &keys, scale(config))?,
            false => query.f_bmm(&keys)?,
        };
        if let Some(mask) = self.masks.of(config, layer) {
            let _ = scores.f_view([self.rows, -1, self.longest])?.f_add_(mask)?;
        }
        scores = scores.f_softmax(-1, None)?.f_to_kind(values.kind())?;
        Ok(scores.f_bmm(&values)?.f_view([self.rows, -1])?)
    }
}

/// The scores, in 32 bits, of queries and keys of 16 bits, as fused attention
/// in training computes them. Rounded to 16 bits, a score of 50 would be off by
/// a tenth, and the log-probability with it.
fn wide_scores(query: &Tensor, keys: &Tensor, scale: f64) -> Result<Tensor> {
    let mut scores = match query.device().is_cuda() {
        true => query.f_bmm_dtype(keys, Kind::Float)?,
        // On the CPU, both factors and the product have one kind.
        false => query.f_to_kind(Kind::Float)?.f_bmm(&keys.f_to_kind(Kind::Float)?)?,
    };
    scores.try_mul_(scale)?;
    Ok(scores)
}

/// The factor of the scores.
fn scale(config: &ModelConfig) -> f64 {
    (config.head_dim as f64).sqrt().recip()
}

fn is_half(kind: Kind) -> bool {
    matches!(kind, Kind::BFloat16 | Kind::Half)
}

/// The shares of `rows` slots that come after that of `slot`.
pub(super) fn shares_after(slot: usize, rows: usize) -> impl Iterator<Item = Range<usize>> {
    let size = rows.div_ceil(SHARES);
    ((slot / size + 1) * size..rows).step_by(size).map(move |start| start..rows.min(start + size))
}

/// The shares of slots with these positions. Neighbouring shares are merged if
/// keeping them apart saves fewer than `worth` positions.
fn divided(positions: &[i64], worth: i64) -> Vec<Range<usize>> {
    let size = positions.len().div_ceil(SHARES);
    let read = |share: Range<usize>| longest(&positions[share.clone()]) * share.len() as i64;
    let mut shares: Vec<Range<usize>> = Vec::new();
    for start in (0..positions.len()).step_by(size) {
        let share = start..positions.len().min(start + size);
        match shares.last_mut() {
            Some(last) if read(last.start..share.end) - read(last.clone()) - read(share.clone()) <= worth => {
                last.end = share.end;
            }
            _ => shares.push(share),
        }
    }
    shares
}

/// The number of positions of a layer that can be read in the time that one
/// more share costs. A share costs some operations: on a GPU as much as reading
/// 32 MiB, on a CPU as much as reading 64 KiB.
fn worth(config: &ModelConfig, kind: Kind, device: Device) -> i64 {
    let bytes = if device.is_cuda() { 32 << 20 } else { 64 << 10 };
    bytes / kv_bytes_per_layer(config, kind) as i64
}

/// Positions in use, with the next token.
fn longest(positions: &[i64]) -> i64 {
    positions.iter().max().copied().unwrap_or_default() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_divided_where_it_saves_enough() {
        assert_eq!(divided(&[9; 16], 0), vec![0..16; 1]);
        assert_eq!(divided(&[90, 80, 50, 70, 20, 10, 10, 10], 0), [0..2, 2..4, 4..6, 6..8]);
        assert_eq!(divided(&[90, 80, 50, 70, 20, 10, 10, 10], 60), [0..4, 4..8]);
        // A long row at the end; it moves to the front when others leave.
        assert_eq!(divided(&[50, 45, 10, 70], 5), [0..2, 2..3, 3..4]);
        assert_eq!(divided(&[5, 4, 3, 2, 1], 0), [0..2, 2..4, 4..5]);
    }

    #[test]
    fn later_shares_are_those_behind_the_slot() {
        assert_eq!(shares_after(1, 10).collect::<Vec<_>>(), [3..6, 6..9, 9..10]);
        assert!(shares_after(8, 10).eq(std::iter::once(9..10)));
        assert!(shares_after(9, 10).next().is_none());
        assert!(shares_after(0, 1).next().is_none());
    }
}
