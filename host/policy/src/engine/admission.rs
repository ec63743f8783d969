//! Which prompts a step computes.

use super::Engine;
use super::pass::{Part, Prompts};
use super::row::Row;
use std::iter::once;

/// A row whose prompt is partly computed; what it drew before it was put back
/// counts as its prompt.
pub(super) struct Filling {
    pub(super) row: Row,
    /// Tokens that are in the cache.
    pub(super) done: usize,
}

impl Engine {
    /// Chooses at most `prefill_tokens` tokens of prompts: first of one that was
    /// begun, then of the requests that wait longest, which get the free
    /// places. A prompt of more tokens is computed in parts of that many,
    /// whatever else there is to do. The last token of a row is not among them:
    /// it is the row's first input.
    pub(super) fn admit(&mut self) -> Prompts {
        let mut prompts = Prompts::default();
        let mut room = self.config.prefill_tokens;
        if let Some(part) = self.fill() {
            room -= part.time;
            prompts.parts.push(part);
        }
        if self.filling.is_some() {
            return prompts;
        }
        let (mut fresh, mut width) = (Vec::new(), 0);
        while let Some(next) = self.next_in_line() {
            let (slot, time) = (self.rows.len(), next.tokens() - 1);
            if let Some(twin) = self.twin(next) {
                prompts.copies.push((twin, slot));
                prompts.copied = prompts.copied.max(time);
            } else if time > 0 {
                if width.max(time) * (fresh.len() + 1) > room {
                    break;
                }
                fresh.push(slot);
                width = width.max(time);
            }
            let row = self.take_on();
            self.rows.extend(row);
        }
        if !fresh.is_empty() {
            prompts.parts.push(Part::new(fresh.iter().map(|&slot| (slot, &self.rows[slot])), 0, width));
        } else if prompts.parts.is_empty() && self.next_in_line().is_some() {
            // Not even a step of its own is enough for it.
            self.filling = self.take_on().map(|row| Filling { row, done: 0 });
            prompts.parts.extend(self.fill());
        }
        prompts
    }

    /// The next part of the prompt that was begun. With the last one its row
    /// joins the others.
    fn fill(&mut self) -> Option<Part> {
        let filling = self.filling.as_mut()?;
        let time = (filling.row.tokens() - 1 - filling.done).min(self.config.prefill_tokens);
        let part = Part::new(once((self.rows.len(), &filling.row)), filling.done, time);
        filling.done += time;
        if filling.done + 1 == filling.row.tokens() {
            self.rows.extend(self.filling.take().map(|filling| filling.row));
        }
        Some(part)
    }

    /// The request that waits longest, if there is a place for it.
    fn next_in_line(&self) -> Option<&Row> {
        let next = self.waiting.front()?;
        let (rows, longest) = self.extent();
        let fits = rows < self.config.max_batch && self.cache.fits(rows + 1, longest.max(next.tokens()));
        fits.then_some(next)
    }

    fn take_on(&mut self) -> Option<Row> {
        let mut row = self.waiting.pop_front()?;
        row.prompt_version = self.version;
        Some(row)
    }

    /// The slot of a row whose keys and values are those that `row` needs. What
    /// a row drew before it was put back is its own.
    fn twin(&self, row: &Row) -> Option<usize> {
        let same = |other: &Row| other.prompt_version == self.version && other.has_prompt_of(row);
        self.rows.iter().position(same).filter(|_| row.response.is_empty())
    }
}
