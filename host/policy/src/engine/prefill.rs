//! The parts of prompts that a step computes, beside the next tokens of the
//! rows whose prompts are computed.

use super::kept::KeptLayers;
use super::row::Row;

/// The parts of prompts that a step computes.
#[derive(Default)]
pub(super) struct Prefill {
    pub(super) parts: Vec<PrefillPart>,
    /// Slots that copy the prompt of another slot, computed in this pass or
    /// before: pairs of (from, to).
    pub(super) copies: Vec<(usize, usize)>,
    /// The longest of these prompts, in tokens.
    pub(super) copied: usize,
    /// The keys and values that rows have from earlier turns of their
    /// conversations.
    pub(super) restored: Vec<Restored>,
}

/// The first `tokens` tokens of a row, which an earlier turn computed.
pub(super) struct Restored {
    pub(super) slot: usize,
    pub(super) tokens: usize,
    pub(super) layers: KeptLayers,
}

impl Prefill {
    /// The tokens that are computed, padding included.
    pub(super) fn tokens(&self) -> usize {
        self.parts.iter().map(|part| part.ids.len()).sum()
    }
}

/// The tokens from `start` on of some rows, padded on the right. The places of
/// padding in the cache are overwritten as the rows grow.
pub(super) struct PrefillPart {
    pub(super) slots: Vec<i64>,
    pub(super) start: usize,
    pub(super) time: usize,
    /// `[slots * time]`
    pub(super) ids: Vec<i64>,
}

impl PrefillPart {
    /// At most `time` tokens of each row, with its slot.
    pub(super) fn new<'a>(rows: impl Iterator<Item = (usize, &'a Row)>, start: usize, time: usize) -> Self {
        let (mut slots, mut ids) = (Vec::new(), Vec::new());
        for (slot, row) in rows {
            slots.push(slot as i64);
            ids.extend(row.prefix().skip(start).take(time).map(i64::from));
            ids.resize(slots.len() * time, 0);
        }
        Self { slots, start, time, ids }
    }

    /// The positions of `ids`.
    pub(super) fn positions(&self) -> impl Iterator<Item = i64> {
        let positions = self.start as i64..(self.start + self.time) as i64;
        std::iter::repeat_n(positions, self.slots.len()).flatten()
    }
}
