//! A step whose tokens the host has not read. While the host waits for them, the device can compute the next step.

use super::decoding::Decoding;
use super::drawn::{Drawn, Pick, pairs};
use super::row::Row;
use super::slots::Slots;
use crate::error::Result;
use gavel_torch::cuda::transfer::{Receiving, receive};
use tch::Tensor;

/// A step that the device computes, maybe still, and its tokens.
pub(super) struct UnreadStep {
    /// In the order of the tokens that it draws.
    rows: Vec<UnreadRow>,
    /// `[rows, 1]`, on the device.
    pub(super) tokens: Tensor,
    /// [`Drawn::pairs`] on the way to the host.
    pairs: Receiving,
    pub(super) weights: Weights,
}

/// A row of such a step.
struct UnreadRow {
    /// The order of its arrival, and its tokens before: no other step has both.
    id: (u64, usize),
    slot: usize,
}

/// The weights that a step was computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weights {
    /// How often they had changed.
    pub(super) changes: u64,
    /// [`Model::addresses`](crate::Model), for graphs.
    pub(super) addresses: u64,
}

impl UnreadStep {
    /// A step of these rows, which was started and draws `drawn`.
    pub(super) fn new(slots: &Slots, rows: &[Decoding], drawn: &Drawn, weights: Weights) -> Result<Self> {
        let row =
            |of: &Decoding| UnreadRow { id: (of.row(slots).arrival, of.tokens(slots)), slot: slots.slot(of.number) };
        let rows = rows.iter().map(row).collect();
        Ok(Self { rows, tokens: drawn.tokens.shallow_clone(), pairs: receive(&drawn.pairs)?, weights })
    }

    /// The places of these rows among its tokens. `None` if there are no rows, if one of them was not in this step or has
    /// other tokens now, or if the weights have changed.
    pub(super) fn places(&self, rows: &[Row], weights: Weights) -> Option<Vec<usize>> {
        // Rows leave, and keep their order.
        let mut own = self.rows.iter().zip(0..);
        let mut place = |row: &Row| Some(own.find(|(own, _)| own.id == (row.arrival, row.tokens()))?.1);
        let places: Option<Vec<usize>> = rows.iter().map(&mut place).collect();
        places.filter(|places| !places.is_empty() && self.weights == weights)
    }

    /// What it drew at these places. It has also computed keys and values of rows that are gone: their slots are cleared
    /// where these may not be finite.
    pub(super) fn read(self, slots: &Slots, places: &[usize]) -> Result<Vec<Pick>> {
        let all = pairs(&self.pairs.wait()?)?;
        let broken = self.rows.iter().zip(&all).filter(|(_, (_, logprob))| !logprob.is_finite());
        broken.map(|(row, _)| row.slot).try_for_each(|slot| slots.clear_unused(slot))?;
        let of = places.iter().filter_map(|&place| all.get(place));
        Ok(of.copied().map(Pick::new).collect())
    }
}
