//! The tokens that rows with a repetition penalty have in their prompts and responses.

use super::row::Row;
use crate::error::Result;
use tch::{Kind, Tensor};

/// The tokens by slot, so that a row that comes or goes changes those of its slot alone.
#[derive(Default)]
pub(super) struct Seen {
    /// `[slots, vocab]`, true for tokens that are there; `None` before the first penalty.
    tokens: Option<Tensor>,
    /// The row that each slot was filled for, by its arrival.
    rows: Vec<Option<u64>>,
}

impl Seen {
    /// The tokens of the rows in `slots`, `[rows]`: `[rows, vocab]`. They are right for those of `rows` that have a
    /// penalty.
    pub(super) fn of(&mut self, rows: &[Row], slots: &Tensor, vocab: i64) -> Result<Tensor> {
        let count = rows.iter().filter_map(|row| row.slot).max().map_or(0, |last| last + 1);
        let tokens = match self.tokens.take().filter(|_| self.rows.len() >= count) {
            Some(tokens) => tokens,
            None => {
                self.rows = vec![None; count.next_power_of_two()];
                Tensor::f_zeros([self.rows.len() as i64, vocab], (Kind::Bool, slots.device()))?
            }
        };
        let tokens = self.tokens.insert(tokens);
        let penalised = rows.iter().filter(|row| row.request.sampling.repetition_penalty != 1.0);
        let placed = penalised.filter_map(|row| Some((row, row.slot?)));
        let fresh: Vec<(&Row, usize)> = placed.filter(|(row, slot)| self.rows[*slot] != Some(row.arrival)).collect();
        if !fresh.is_empty() {
            fill(tokens, &fresh)?;
            fresh.iter().for_each(|(row, slot)| self.rows[*slot] = Some(row.arrival));
        }
        Ok(tokens.f_index_select(0, slots)?)
    }

    /// Adds a token to each of some slots, both `[slots]`.
    pub(super) fn add(&mut self, slots: &Tensor, tokens: &Tensor) -> Result<()> {
        if let Some(seen) = &mut self.tokens {
            let is_there = Tensor::f_ones([], (Kind::Bool, seen.device()))?;
            let _ = seen.f_index_put_(&[Some(slots), Some(tokens)], &is_there, false)?;
        }
        Ok(())
    }
}

/// Writes down what these rows, with their slots, have seen.
fn fill(seen: &mut Tensor, rows: &[(&Row, usize)]) -> Result<()> {
    let (vocab, device) = (seen.size()[1], seen.device());
    let on_device = |numbers: Vec<i64>| Tensor::f_from_slice(&numbers)?.f_to_device(device);
    let slots = on_device(rows.iter().map(|(_, slot)| *slot as i64).collect())?;
    let places = rows.iter().flat_map(|(row, slot)| {
        let tokens = row.request.prompt.iter().chain(&row.response);
        tokens.map(move |token| *slot as i64 * vocab + i64::from(*token))
    });
    let _ = seen.f_index_fill_(0, &slots, 0)?;
    let _ = seen.f_view(-1)?.f_index_fill_(0, &on_device(places.collect())?, 1)?;
    Ok(())
}
