//! Which rows a step computes. Requests are admitted in the order of their
//! arrival. If the cache is full, the rows that came last are put back to the
//! waiting requests and keep the tokens that they have drawn.

use super::prefill::{Beginning, Prefill, PrefillPart};
use super::request::{EngineConfig, Request};
use super::row::Row;
use super::slots::{PartialPrefill, Slots};
use crate::error::Result;
use std::collections::{HashSet, VecDeque};
use std::iter::once;

/// The requests that wait and the rows under way.
pub(super) struct Scheduler {
    max_batch: usize,
    prefill_tokens: usize,
    recompute_cache: bool,
    /// The version of the weights.
    pub(super) version: u64,
    /// How often the weights have changed. Within a version they change more than once: with each mini-batch.
    pub(super) changes: u64,
    /// The number of requests that have arrived.
    arrivals: u64,
    pub(super) waiting: VecDeque<Row>,
    pub(super) slots: Slots,
    /// How often a row was put back because the cache was full.
    pub(super) preemptions: u64,
}

impl Scheduler {
    /// A scheduler without requests.
    pub(super) fn new(config: &EngineConfig, slots: Slots) -> Self {
        Self {
            max_batch: config.max_batch,
            prefill_tokens: config.prefill_tokens,
            recompute_cache: config.recompute_cache,
            version: 0,
            changes: 0,
            arrivals: 0,
            waiting: VecDeque::new(),
            slots,
            preemptions: 0,
        }
    }

    /// Queues a request of which one row fits into the cache.
    pub(super) fn submit(&mut self, request: Request) {
        self.waiting.push_back(Row::new(request, self.arrivals));
        self.arrivals += 1;
    }

    /// All requests, waiting or under way.
    pub(super) fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        let Slots { rows, partial, .. } = &mut self.slots;
        rows.iter_mut().chain(partial.as_mut().map(|partial| &mut partial.row)).chain(&mut self.waiting)
    }

    /// Removes a request, waiting or under way.
    pub(super) fn remove(&mut self, id: u64) -> Result<Option<Row>> {
        match self.waiting.iter().position(|row| row.request.id == id) {
            Some(at) => Ok(self.waiting.remove(at)),
            None => Ok(self.slots.remove(|row| row.request.id == id)?.pop()),
        }
    }

    /// Puts back a row whose prompt was begun with other weights. With `recompute_cache`, puts back every row with keys
    /// and values of other weights.
    pub(super) fn restart_stale(&mut self) -> Result<()> {
        let (changes, all) = (self.changes, self.recompute_cache);
        let partial = self.slots.partial.as_ref().map(|partial| partial.row.arrival);
        self.put_back(|row| row.changes_before != changes && (all || Some(row.arrival) == partial)).map(drop)
    }

    /// Puts back the rows that came last until the others have room for their
    /// next tokens.
    pub(super) fn preempt(&mut self) -> Result<()> {
        let mut order: Vec<(u64, usize)> = self.slots.under_way().map(|row| (row.arrival, row.tokens())).collect();
        let active = order.len();
        order.sort_unstable();
        // One row always fits: `Engine::submit` checks it.
        while order.len() > 1 && !self.slots.cache.fits(order.iter().map(|(_, tokens)| *tokens)) {
            order.pop();
        }
        if order.len() == active {
            return Ok(());
        }
        let last = order.last().map_or(0, |(arrival, _)| *arrival);
        self.preemptions += self.put_back(|row| row.arrival > last)? as u64;
        Ok(())
    }

    /// Puts back the rows for which `which` holds and returns their number. They go before the waiting requests, as
    /// they arrived earlier.
    pub(super) fn put_back(&mut self, which: impl Fn(&Row) -> bool) -> Result<usize> {
        let mut put_back = self.slots.remove(which)?;
        put_back.sort_unstable_by_key(|row| row.arrival);
        let count = put_back.len();
        put_back.into_iter().rev().for_each(|row| self.waiting.push_front(row));
        Ok(count)
    }

    /// Chooses at most `prefill_tokens` tokens of prompts: first of the prompt
    /// that was begun, then of the requests that have waited longest, which get
    /// the free places. A longer prompt is computed in parts of that size. The
    /// last token of a row is not among them, as it is the row's first input.
    pub(super) fn admit(&mut self) -> Prefill {
        let mut prefill = Prefill::default();
        let mut room = self.prefill_tokens;
        if let Some(part) = self.continue_partial() {
            room -= part.time;
            prefill.parts.push(part);
        }
        if self.slots.partial.is_some() {
            return prefill;
        }
        let (mut fresh, mut width) = (Vec::new(), 0);
        while let Some(next) = self.next_in_line() {
            let (number, time) = (self.slots.rows.len(), next.tokens() - 1);
            if let Some(twin) = self.twin(next) {
                prefill.copy(twin, number, time);
            } else if let Some(beginning) = self.beginning(next) {
                let tokens = beginning.tokens();
                if width * fresh.len() + (time - tokens) > room {
                    break;
                }
                room -= time - tokens;
                if time > tokens {
                    prefill.parts.push(PrefillPart::new(once((number, next)), tokens, time - tokens));
                }
                prefill.begin(number, beginning);
            } else if time > 0 {
                if width.max(time) * (fresh.len() + 1) > room {
                    break;
                }
                fresh.push(number);
                width = width.max(time);
            }
            let row = self.take_next();
            self.slots.rows.extend(row);
        }
        if !fresh.is_empty() {
            let rows = fresh.iter().map(|&number| (number, &self.slots.rows[number]));
            prefill.parts.push(PrefillPart::new(rows, 0, width));
        } else if prefill.parts.is_empty() && self.next_in_line().is_some() {
            // The prompt does not fit even into a step by itself.
            if let Some(row) = self.take_next() {
                let beginning = self.beginning(&row);
                let done = beginning.as_ref().map_or(0, Beginning::tokens);
                let number = self.slots.rows.len();
                beginning.into_iter().for_each(|beginning| prefill.begin(number, beginning));
                self.slots.partial = Some(PartialPrefill { row, done });
            }
            prefill.parts.extend(self.continue_partial());
        }
        prefill.begun = self.begun();
        prefill
    }

    /// The conversations whose next turns begin in this step with everything that is kept of them, so that others can
    /// copy it from their rows. If a further turn waits, it stays.
    fn begun(&self) -> Vec<u64> {
        let kept = &self.slots.cache.kept;
        let has_kept =
            |row: &Row, id: u64| kept.ids(id).is_some_and(|ids| ids.iter().copied().eq(row.prefix().take(ids.len())));
        let fresh = self.slots.under_way().filter(|row| row.slot.is_none());
        let mut begun: Vec<u64> =
            fresh.filter_map(|row| row.request.conversation.filter(|id| has_kept(row, *id))).collect();
        if !begun.is_empty() {
            let waiting: HashSet<u64> = self.waiting.iter().filter_map(|row| row.request.conversation).collect();
            begun.retain(|id| !waiting.contains(id));
        }
        begun
    }

    /// Whether [`admit`](Self::admit) would compute prompts or add rows.
    pub(super) fn has_prompts(&self) -> bool {
        self.slots.partial.is_some() || self.next_in_line().is_some()
    }

    /// The next part of the prompt that was begun. With the last one its row
    /// joins the others.
    fn continue_partial(&mut self) -> Option<PrefillPart> {
        let Slots { rows, partial, .. } = &mut self.slots;
        let begun = partial.as_mut()?;
        let time = (begun.row.tokens() - 1 - begun.done).min(self.prefill_tokens);
        let part = PrefillPart::new(once((rows.len(), &begun.row)), begun.done, time);
        begun.done += time;
        if begun.done + 1 == begun.row.tokens() {
            rows.extend(partial.take().map(|done| done.row));
        }
        Some(part)
    }

    /// The request that has waited longest, if there is a place for it.
    fn next_in_line(&self) -> Option<&Row> {
        let next = self.waiting.front()?;
        let all = self.slots.under_way().chain(once(next)).map(Row::tokens);
        let has_room = match self.slots.active() {
            // It fits by itself: `Engine::submit` checks it.
            0 => true,
            active => active < self.max_batch && self.slots.cache.leaves_room(all),
        };
        has_room.then_some(next)
    }

    /// Takes the request that has waited longest. Its prompt will have the keys and values of the present weights.
    fn take_next(&mut self) -> Option<Row> {
        let mut row = self.waiting.pop_front()?;
        row.changes_before = self.changes;
        Some(row)
    }

    /// The beginning of a turn whose keys and values are there: of an earlier turn, or of a row that is under way. `None`
    /// if it is less than half of the row's tokens: such rows are faster to compute together.
    fn beginning(&self, row: &Row) -> Option<Beginning> {
        row.request.conversation?;
        let kept = self.slots.cache.kept.longest_match(row.prefix());
        let kept_tokens = kept.as_ref().map_or(0, |(tokens, _)| *tokens);
        let (tokens, from) = self.longest_under_way(row).filter(|(tokens, _)| *tokens > kept_tokens).unzip();
        if 2 * tokens.unwrap_or(kept_tokens) < row.tokens() {
            return None;
        }
        if let Some((tokens, from)) = tokens.zip(from) {
            return Some(Beginning::Copied { from, tokens });
        }
        let (tokens, layers) = kept?;
        let layers = layers.iter().map(|(keys, values)| (keys.shallow_clone(), values.shallow_clone()));
        Some(Beginning::Kept { tokens, layers: layers.collect() })
    }

    /// The row under way that shares the most tokens with the beginning of `row`: how many, and its number. It has been
    /// computed in earlier steps, with the present weights.
    fn longest_under_way(&self, row: &Row) -> Option<(usize, usize)> {
        let rows = self.slots.rows.iter().enumerate();
        let computed = rows.filter(|(_, other)| other.slot.is_some() && other.changes_before == self.changes);
        computed.map(|(number, other)| (row.shares_with(other), number)).max()
    }

    /// The number of a row whose keys and values `row` can copy. A row that had
    /// drawn tokens before it was put back shares them with no other row.
    fn twin(&self, row: &Row) -> Option<usize> {
        let same = |other: &Row| other.changes_before == self.changes && other.has_prompt_of(row);
        self.slots.rows.iter().position(same).filter(|_| row.response.is_empty())
    }
}
