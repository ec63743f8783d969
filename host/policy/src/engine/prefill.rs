//! The parts of prompts that a step computes, beside the next tokens of the
//! rows whose prompts are computed. Rows are named by their number among those under
//! way.

use super::kept::KeptLayers;
use super::row::Row;
use std::iter::repeat_n;

/// The parts of prompts that a step computes.
#[derive(Default)]
pub(super) struct Prefill {
    pub(super) parts: Vec<PrefillPart>,
    /// Rows that copy the prompt of another row, or its beginning, computed in
    /// this pass or before.
    pub(super) copies: Vec<Copied>,
    /// The keys and values that rows have from earlier turns of their
    /// conversations.
    pub(super) restored: Vec<Restored>,
    /// The conversations of which rows have everything that is kept, once it is restored and copied.
    pub(super) begun: Vec<u64>,
}

/// The tokens of one row from `start` to `end`, which another has too.
pub(super) struct Copied {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The first `tokens` tokens of a row, which an earlier turn computed.
pub(super) struct Restored {
    pub(super) row: usize,
    pub(super) tokens: usize,
    pub(super) layers: KeptLayers,
}

/// The first tokens of a row, if their keys and values are there already.
pub(super) enum Beginning {
    /// In an earlier turn.
    Kept { tokens: usize, layers: KeptLayers },
    /// In the row of this number.
    Copied { from: usize, tokens: usize },
}

impl Beginning {
    pub(super) fn tokens(&self) -> usize {
        match self {
            Self::Kept { tokens, .. } | Self::Copied { tokens, .. } => *tokens,
        }
    }
}

impl Prefill {
    /// Gives a row the beginning that it has.
    pub(super) fn begin(&mut self, row: usize, beginning: Beginning) {
        match beginning {
            Beginning::Kept { tokens, layers } => self.restored.push(Restored { row, tokens, layers }),
            Beginning::Copied { from, tokens } => self.copy(from, row, tokens),
        }
    }

    /// Copies the first `tokens` tokens of a row. All copies of a step read before one is written. So what the row itself
    /// copies in this step comes from where the row has it from.
    pub(super) fn copy(&mut self, from: usize, to: usize, tokens: usize) {
        let own = self.copies.iter().filter(|of| of.to == from && of.start < tokens);
        let mut copies: Vec<Copied> =
            own.map(|of| Copied { from: of.from, to, start: of.start, end: of.end.min(tokens) }).collect();
        let start = copies.last().map_or(0, |of| of.end);
        if start < tokens {
            copies.push(Copied { from, to, start, end: tokens });
        }
        self.copies.extend(copies);
    }

    /// Whether there is nothing to compute.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.copies.is_empty() && self.restored.is_empty()
    }

    /// The tokens that are computed, padding included.
    pub(super) fn tokens(&self) -> usize {
        self.parts.iter().map(|part| part.ids.len()).sum()
    }
}

/// The tokens from `start` on of some rows, padded on the right.
pub(super) struct PrefillPart {
    pub(super) rows: Vec<usize>,
    pub(super) start: usize,
    pub(super) time: usize,
    /// `[rows * time]`
    pub(super) ids: Vec<i64>,
}

impl PrefillPart {
    /// At most `time` tokens of each row, which comes with its number.
    pub(super) fn new<'a>(numbered: impl Iterator<Item = (usize, &'a Row)>, start: usize, time: usize) -> Self {
        let (mut rows, mut ids) = (Vec::new(), Vec::new());
        for (number, row) in numbered {
            rows.push(number);
            ids.extend(row.prefix().skip(start).take(time).map(i64::from));
            ids.resize(rows.len() * time, 0);
        }
        Self { rows, start, time, ids }
    }

    /// The row and the position of each of `ids`.
    pub(super) fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        self.rows.iter().flat_map(|&row| repeat_n(row, self.time).zip(self.start..))
    }
}
