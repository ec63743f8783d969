//! The tokens that rows with a repetition penalty have in their prompts and responses.

use super::row::Row;
use crate::error::Result;
use std::collections::HashMap;
use tch::{Kind, Tensor};

/// The tokens by slot, so that a row that comes or goes changes the tokens of its slot alone.
#[derive(Default)]
pub(super) struct Seen {
    /// `[slots, vocab]`, true for tokens that are there; `None` before the first penalty.
    tokens: Option<Tensor>,
    /// The row that each slot was filled for, by its arrival.
    rows: Vec<Option<u64>>,
}

impl Seen {
    /// The tokens of the rows in `slots`, `[rows]`: `[rows, vocab]`. They are right for rows that have a penalty.
    pub(super) fn of(&mut self, rows: &[&Row], slots: &Tensor, vocab: i64) -> Result<Tensor> {
        let count = rows.iter().filter_map(|row| row.slot).max().map_or(0, |last| last + 1);
        let tokens = match self.tokens.take().filter(|_| self.rows.len() >= count) {
            Some(tokens) => tokens,
            None => {
                self.rows = vec![None; count.next_power_of_two()];
                Tensor::f_zeros([self.rows.len() as i64, vocab], (Kind::Bool, slots.device()))?
            }
        };
        let tokens = self.tokens.insert(tokens);
        // What a slot's row has drawn says nothing of another row that has the slot now, or had it meanwhile.
        let now: HashMap<usize, u64> = rows.iter().filter_map(|row| Some((row.slot?, row.arrival))).collect();
        for (slot, filled) in self.rows.iter_mut().enumerate() {
            *filled = filled.filter(|arrival| now.get(&slot) == Some(arrival));
        }
        let penalised = rows.iter().filter(|row| row.request.sampling.repetition_penalty != 1.0);
        let placed = penalised.filter_map(|row| Some((*row, row.slot?)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Request;
    use crate::sampling::Sampling;
    use tch::Device;

    fn row(arrival: u64, slot: usize, tokens: &[u32], penalty: f32) -> Row {
        let sampling = Sampling { repetition_penalty: penalty, ..Sampling::new(9, vec![]) };
        let mut row = Row::new(Request::new(arrival, tokens.to_vec(), sampling, 0), arrival);
        row.slot = Some(slot);
        row
    }

    /// The tokens of each of these rows, each of which then draws token 7.
    fn step(seen: &mut Seen, rows: &mut [Row]) -> Vec<Vec<i64>> {
        let slots: Vec<i64> = rows.iter().filter_map(|row| Some(row.slot? as i64)).collect();
        let slots = Tensor::from_slice(&slots);
        let found = seen.of(&rows.iter().collect::<Vec<_>>(), &slots, 10).unwrap();
        seen.add(&slots, &Tensor::full([rows.len() as i64], 7, (Kind::Int64, Device::Cpu))).unwrap();
        rows.iter_mut().for_each(|row| row.response.push(7));
        let tokens = |row| Vec::<i64>::try_from(found.get(row).nonzero().view(-1)).unwrap();
        (0..rows.len() as i64).map(tokens).collect()
    }

    #[test]
    fn a_row_has_its_own_tokens_after_another_had_its_slot() {
        let mut seen = Seen::default();
        let mut both = [row(0, 0, &[1, 2], 2.0), row(1, 1, &[3], 2.0)];
        assert_eq!(step(&mut seen, &mut both), [vec![1, 2], vec![3]]);
        assert_eq!(step(&mut seen, &mut both), [vec![1, 2, 7], vec![3, 7]]);
        let [mut first, other] = both;
        // The first row is put back, and a row without a penalty has its slot.
        let mut both = [row(2, 0, &[5], 1.0), other];
        assert_eq!(step(&mut seen, &mut both)[1], [3, 7]);
        let [_, other] = both;
        first.response.push(8);
        assert_eq!(step(&mut seen, &mut [first, other]), [vec![1, 2, 7, 8], vec![3, 7]]);
    }
}
