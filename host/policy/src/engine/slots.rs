//! The rows under way, each with a slot of the key-value cache. A row stays in its slot; the slot of a row that is gone
//! is free for another.

use super::kv_cache::KvCache;
use super::prefill::{Prefill, Restored};
use super::regions::Need;
use super::row::Row;
use crate::error::Result;
use crate::out_of_memory::Phase;
use std::collections::{BTreeSet, HashSet};

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
    /// The rows that decode.
    pub(super) rows: Vec<Row>,
    /// It came after them.
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

    /// How many rows are under way.
    pub(super) fn active(&self) -> usize {
        self.rows.len() + usize::from(self.partial.is_some())
    }

    /// The slot of a row under way, by the row's number.
    pub(super) fn slot(&self, row: usize) -> usize {
        // Every row has one after `reserve`.
        self.under_way().nth(row).and_then(|row| row.slot).unwrap_or_default()
    }

    /// The tokens of a row under way but the last, by the row's number.
    pub(super) fn prefix(&self, row: usize) -> usize {
        self.under_way().nth(row).map_or(0, |row| row.tokens() - 1)
    }

    /// Gives every row a slot, and makes room in the cache for the next token of each.
    pub(super) fn reserve(&mut self) -> Result<()> {
        let used: BTreeSet<usize> = self.under_way().filter_map(|row| row.slot).collect();
        let mut free = (0..).filter(|slot| !used.contains(slot));
        let partial = self.partial.as_mut().map(|partial| &mut partial.row);
        for row in self.rows.iter_mut().chain(partial).filter(|row| row.slot.is_none()) {
            row.slot = free.next();
            if let Some(slot) = row.slot {
                self.cache.renew(slot);
            }
        }
        let needs = self.needs(|_| 0);
        self.cache.reserve(&needs)
    }

    /// Gives rows the keys and values that they have from earlier turns of their conversations. These are forgotten where
    /// the rows have all of them.
    pub(super) fn restore(&mut self, prefill: &Prefill) -> Result<()> {
        for Restored { row, tokens, layers } in &prefill.restored {
            self.cache.restore(self.slot(*row), *tokens, layers)?;
        }
        prefill.begun.iter().for_each(|conversation| self.cache.kept.forget(*conversation));
        Ok(())
    }

    /// What the rows under way need, each with so many tokens more, by the row's number.
    pub(super) fn needs(&self, more: impl Fn(usize) -> usize) -> Vec<Need> {
        let partial = self.partial.as_ref().map(|partial| partial.done);
        let need = |(number, row): (usize, &Row)| {
            // Every row has one after `reserve`.
            let slot = row.slot.unwrap_or_default();
            let (region, tokens) = (self.cache.region(slot), row.tokens() + more(number));
            let computed = if number < self.rows.len() { tokens - 1 } else { partial.unwrap_or_default() };
            Need { slot, region, computed: computed.min(region.room), tokens }
        };
        self.under_way().enumerate().map(need).collect()
    }

    /// Remembers that the logits of these requests were not finite. Their keys
    /// and values in the cache may not be finite either.
    pub(super) fn mark_broken(&mut self, requests: Vec<u64>) {
        self.broken.extend(requests);
    }

    /// Clears a slot, unless a row has it or its places.
    pub(super) fn clear_unused(&self, slot: usize) -> Result<()> {
        let region = self.cache.region(slot);
        let mut used = self.under_way().filter_map(|row| row.slot);
        let is_used = used.any(|other| other == slot || self.cache.region(other).overlaps(region));
        if is_used { Ok(()) } else { self.cache.clear(slot) }
    }

    /// Keeps the keys and values of a row for the next turn of its conversation, unless some are of other weights than
    /// those after `changes` changes.
    pub(super) fn keep(&mut self, which: impl Fn(&Row) -> bool, changes: u64) -> Result<()> {
        for row in self.rows.iter().filter(|row| which(row) && row.changes_before == changes) {
            if let (Some(slot), Some(conversation)) = (row.slot, row.request.conversation) {
                self.cache.keep(slot, conversation, row.prefix().collect())?;
            }
        }
        Ok(())
    }

    /// Removes the rows that are `gone` and returns them.
    pub(super) fn remove(&mut self, gone: impl Fn(&Row) -> bool) -> Result<Vec<Row>> {
        if !self.under_way().any(&gone) {
            return Ok(Vec::new());
        }
        let phase = Phase::Rollout { rows: self.rows.len(), prompts: 0 };
        self.clear_broken(&gone).map_err(|error| error.during(phase))?;
        let mut removed: Vec<Row> = self.rows.extract_if(.., |row| gone(row)).collect();
        removed.extend(self.partial.take_if(|partial| gone(&partial.row)).map(|partial| partial.row));
        removed.iter_mut().for_each(|row| row.slot = None);
        Ok(removed)
    }

    /// Clears the slots of rows that are `gone` and may hold values that are
    /// not finite: those that broke, and one whose prompt is partly computed.
    fn clear_broken(&mut self, gone: impl Fn(&Row) -> bool) -> Result<()> {
        let broken = self.rows.iter().filter(|row| gone(row) && self.broken.remove(&row.request.id));
        let partial = self.partial.iter().filter(|partial| partial.done > 0).map(|partial| &partial.row);
        for slot in broken.chain(partial.filter(|row| gone(row))).filter_map(|row| row.slot) {
            self.cache.clear(slot)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;
    use crate::engine::Request;
    use crate::sampling::Sampling;
    use tch::{Device, Kind};

    fn slots() -> Slots {
        let json = r#"{"model_type":"qwen2","vocab_size":50,"hidden_size":16,"intermediate_size":24,"num_hidden_layers":1,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8}"#;
        let config: ModelConfig = serde_json::from_str(json).unwrap();
        // Room for four slots of 64 tokens.
        let bytes = 4 * 64 * 2 * 2 * 8 * 4;
        Slots::new(KvCache::new(&config, Some(bytes), Kind::Float, Device::Cpu).unwrap())
    }

    /// Adds a row of this many tokens, whose keys are its number.
    fn add(slots: &mut Slots, number: u64, tokens: usize) {
        slots.rows.push(Row::new(Request::new(number, vec![1; tokens], Sampling::new(1, vec![]), 0), number));
        slots.reserve().unwrap();
        let [mut keys, _] = slots.cache.row(0, slots.slot(slots.rows.len() - 1), tokens).unwrap();
        let _ = keys.fill_(number as f64);
    }

    fn in_slots(slots: &Slots) -> Vec<(u64, usize)> {
        slots.rows.iter().filter_map(|row| Some((row.request.id, row.slot?))).collect()
    }

    #[test]
    fn a_row_takes_the_first_free_slot() {
        let mut slots = slots();
        (0..4).for_each(|number| add(&mut slots, number, 10));
        slots.remove(|row| [1, 2].contains(&row.request.id)).unwrap();
        add(&mut slots, 4, 10);
        assert_eq!(in_slots(&slots), [(0, 0), (3, 3), (4, 1)]);
    }

    #[test]
    fn rows_move_where_a_longer_one_comes() {
        let mut slots = slots();
        (0..4).for_each(|number| add(&mut slots, number, 10));
        slots.remove(|row| [0, 2].contains(&row.request.id)).unwrap();
        assert_eq!(in_slots(&slots), [(1, 1), (3, 3)]);
        add(&mut slots, 4, 100);
        assert_eq!(in_slots(&slots), [(1, 1), (3, 3), (4, 0)]);
        for (slot, number) in [(1, 1.0), (3, 3.0)] {
            let [keys, _] = slots.cache.row(0, slot, 9).unwrap();
            assert_eq!((keys.min().double_value(&[]), keys.max().double_value(&[])), (number, number));
        }
    }

    #[test]
    fn a_prompt_moves_whose_next_part_has_no_room_yet() {
        let mut slots = slots();
        (0..4).for_each(|number| add(&mut slots, number, 10));
        slots.remove(|row| row.request.id < 3).unwrap();
        let mut row = slots.rows.pop().unwrap();
        row.request.prompt = [1; 200].into();
        slots.partial = Some(PartialPrefill { row, done: 10 });
        slots.reserve().unwrap();
        assert_eq!(slots.cache.region(slots.slot(0)).room, 256);
        let [keys, _] = slots.cache.row(0, slots.slot(0), 10).unwrap();
        assert_eq!(keys.min().double_value(&[]), 3.0);
    }
}
