//! The rows under way, each with a slot of the key-value cache. There are no
//! gaps between slots in use.

use super::kv_cache::KvCache;
use super::next_tokens::shares_after;
use super::row::Row;
use crate::error::Result;
use crate::out_of_memory::Phase;
use std::collections::HashSet;

/// A row whose prompt is partly computed. Tokens that it drew before it was put
/// back count as its prompt.
pub(super) struct PartialPrefill {
    pub(super) row: Row,
    /// Tokens that are in the cache.
    pub(super) done: usize,
}

/// The rows under way and the cache of their keys and values.
pub(super) struct Slots {
    pub(super) cache: KvCache,
    /// The rows that decode: the one in slot `i` is `rows[i]`.
    pub(super) rows: Vec<Row>,
    /// The row in the slot after `rows`; it came after them.
    pub(super) partial: Option<PartialPrefill>,
    /// The requests whose logits were not finite.
    broken: HashSet<u64>,
}

impl Slots {
    /// Slots of `cache`, none in use.
    pub(super) fn new(cache: KvCache) -> Self {
        Self { cache, rows: Vec::new(), partial: None, broken: HashSet::new() }
    }

    /// All rows; the one whose prompt is partly computed is the last.
    pub(super) fn under_way(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().chain(self.partial.iter().map(|partial| &partial.row))
    }

    /// The slots in use, and the tokens of the longest row in them.
    pub(super) fn extent(&self) -> (usize, usize) {
        self.under_way().fold((0, 0), |(rows, longest), row| (rows + 1, longest.max(row.tokens())))
    }

    /// Makes room in the cache for the next token of every row.
    pub(super) fn reserve(&mut self) -> Result<()> {
        let (slots, longest) = self.extent();
        self.cache.reserve(slots, longest)
    }

    /// Remembers that the logits of these requests were not finite. Their keys
    /// and values in the cache may not be finite either.
    pub(super) fn mark_broken(&mut self, requests: Vec<u64>) {
        self.broken.extend(requests);
    }

    /// Keeps the keys and values of a row for the next turn of its conversation, unless some are of other weights than
    /// those of `version`.
    pub(super) fn keep(&mut self, which: impl Fn(&Row) -> bool, version: u64) -> Result<()> {
        let ended = self.rows.iter().enumerate().filter(|(_, row)| which(row) && row.prompt_version == version);
        for (slot, row) in ended {
            if let Some(conversation) = row.request.conversation {
                self.cache.keep(slot, conversation, row.prefix().collect())?;
            }
        }
        Ok(())
    }

    /// Removes the rows that are `gone` and closes the gaps. Returns them in
    /// the order of their slots.
    pub(super) fn remove(&mut self, gone: impl Fn(&Row) -> bool) -> Result<Vec<Row>> {
        if !self.under_way().any(&gone) {
            return Ok(Vec::new());
        }
        let phase = Phase::Rollout { rows: self.rows.len(), prompts: 0 };
        self.clear_broken(&gone).map_err(|error| error.during(phase))?;

        let slots = self.rows.len();
        let is_gone: Vec<bool> = self.rows.iter().map(&gone).collect();
        let tokens: Vec<usize> = self.rows.iter().map(Row::tokens).collect();
        let origins = without_gaps(&is_gone, &tokens);
        let mut before: Vec<Option<Row>> = std::mem::take(&mut self.rows).into_iter().map(Some).collect();
        self.rows = origins.iter().filter_map(|&origin| before[origin].take()).collect();
        let mut removed: Vec<Row> = before.into_iter().flatten().collect();

        // The copies in the cache: pairs of (from, to), and the most tokens of one of them.
        let mut moves: Vec<(usize, usize)> =
            origins.into_iter().enumerate().filter(|(to, from)| from != to).map(|(to, from)| (from, to)).collect();
        let mut longest = moves.iter().map(|&(_, to)| self.rows[to].tokens() - 1).max().unwrap_or_default();
        match self.partial.take_if(|partial| gone(&partial.row)) {
            Some(partial) => removed.push(partial.row),
            None => {
                // It stays in the slot after the rows.
                if let Some(partial) = self.partial.as_ref().filter(|_| self.rows.len() < slots) {
                    moves.push((slots, self.rows.len()));
                    longest = longest.max(partial.done);
                }
            }
        }
        self.cache.copy(&moves, longest).map_err(|error| error.during(phase))?;
        Ok(removed)
    }

    /// Clears the slots of rows that are `gone` and may hold values that are
    /// not finite: those that broke, and one whose prompt is partly computed.
    fn clear_broken(&mut self, gone: impl Fn(&Row) -> bool) -> Result<()> {
        for (slot, row) in self.rows.iter().enumerate() {
            if gone(row) && self.broken.remove(&row.request.id) {
                self.cache.clear(slot)?;
            }
        }
        match &self.partial {
            Some(partial) if partial.done > 0 && gone(&partial.row) => self.cache.clear(self.rows.len()),
            _ => Ok(()),
        }
    }
}

/// The origin of each slot's row after the rows that are gone are removed. A gap is filled with the longest row of the
/// next share of slots. The gap left there is filled from the share after it, and so on to the last share, where the
/// last row fills it. So the rows of one share have similar lengths, and the longest come first.
fn without_gaps(is_gone: &[bool], tokens: &[usize]) -> Vec<usize> {
    let mut origins: Vec<usize> = (0..tokens.len()).collect();
    for slot in (0..tokens.len()).rev().filter(|&slot| is_gone[slot]) {
        let mut gap = slot;
        for share in shares_after(slot, origins.len()) {
            if let Some(longest) = share.max_by_key(|&slot| tokens[origins[slot]]) {
                origins[gap] = origins[longest];
                gap = longest;
            }
        }
        origins.swap_remove(gap);
    }
    origins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_filled_from_one_share_after_another() {
        let tokens = [90, 80, 70, 60, 50, 40, 30, 20];
        let after = |gone: &[usize]| {
            let is_gone: Vec<bool> = (0..8).map(|slot| gone.contains(&slot)).collect();
            without_gaps(&is_gone, &tokens)
        };
        assert_eq!(after(&[]), [0, 1, 2, 3, 4, 5, 6, 7]);
        // Shares of two: the longest of each moves up, and the last row fills the last gap.
        assert_eq!(after(&[0]), [2, 1, 4, 3, 6, 5, 7]);
        assert_eq!(after(&[7]), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(after(&[6]), [0, 1, 2, 3, 4, 5, 7]);
        assert_eq!(after(&[0, 1, 2, 3, 4, 5, 6, 7]), Vec::<usize>::new());
        // Among rows of equal length in a share, the last one moves.
        let is_gone = [true, false, false, false, false, false, false, false];
        assert_eq!(without_gaps(&is_gone, &[5; 8]), [3, 1, 2, 5, 4, 7, 6]);
    }
}
