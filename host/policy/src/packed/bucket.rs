//! Attention of rows that are computed together.

use super::indices::{on_device, take_rows};
use super::rows::{PackedRow, before, seen};
use crate::attention::attention;
use crate::config::ModelConfig;
use crate::error::Result;
use crate::mask::Masks;
use std::ops::Range;
use tch::{Device, Tensor};

/// Rows of similar length, whose attention is computed together. There is
/// padding only within a bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    rows: i64,
    /// Tokens of the longest row.
    time: i64,
    /// Tokens of all rows.
    pub(super) tokens: i64,
    /// Where they begin in `ids`.
    start: i64,
    /// How many tokens are before each row; a single number if all are equal.
    pub(super) before: Vec<i64>,
    ragged: Option<Ragged>,
    /// `[rows * keys]`: which tokens each row looks at, in their order. `None`
    /// if every row looks only at its own tokens and all rows are equally long.
    pub(super) keys: Option<Tensor>,
}

/// The indices between the tokens of a bucket and `[rows, time]`.
#[derive(Debug)]
struct Ragged {
    /// `[rows * time]`: the token of each place, some token for padding.
    pad: Tensor,
    /// `[tokens]`: the place of each token.
    unpad: Tensor,
}

impl Bucket {
    pub(super) fn masks(&self, config: &ModelConfig, device: Device) -> Result<Masks> {
        match self.before.as_slice() {
            [0] => Masks::new(config, self.time, device),
            before => Masks::after(config, before, self.time, self.longest(), device),
        }
    }

    /// The keys of the row that looks at the most.
    fn longest(&self) -> i64 {
        self.keys.as_ref().map_or(self.time, |keys| keys.size()[0] / self.rows)
    }

    pub(super) fn attend(
        &self,
        config: &ModelConfig,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        let heads =
            |x: &Tensor| x.f_view([self.rows, -1, x.size()[1] / config.head_dim, config.head_dim])?.f_transpose(1, 2);
        let query = match &self.ragged {
            Some(ragged) => take_rows(query, &ragged.pad)?,
            None => query.shallow_clone(),
        };
        let whole = |x: &Tensor| match &self.keys {
            Some(keys) => take_rows(x, keys),
            None => Ok(x.f_narrow(0, self.start, self.tokens)?),
        };
        let attended = attention(&heads(&query)?, &heads(&whole(key)?)?, &heads(&whole(value)?)?, mask)?;
        match &self.ragged {
            Some(ragged) => take_rows(&attended, &ragged.unpad),
            None => Ok(attended),
        }
    }
}

/// The places of the rows in the pack.
pub(super) struct Layout<'a> {
    pub(super) rows: &'a [PackedRow],
    pub(super) starts: &'a [usize],
    pub(super) device: Device,
}

impl Layout<'_> {
    /// The place in `ids` of the tokens of a row.
    fn place(&self, row: usize) -> Range<usize> {
        self.starts[row]..self.starts[row] + self.rows[row].tokens.len()
    }

    pub(super) fn bucket(&self, members: &[usize]) -> Result<Bucket> {
        let lengths: Vec<usize> = members.iter().map(|&row| self.rows[row].tokens.len()).collect();
        let time = lengths.iter().max().copied().unwrap_or_default();
        let start = self.starts[members[0]];
        let mut before: Vec<i64> = members.iter().map(|&row| before(self.rows, row) as i64).collect();
        if before.iter().all(|&count| count == before[0]) {
            before.truncate(1);
        }
        let ragged = lengths.iter().any(|&length| length != time);
        Ok(Bucket {
            rows: members.len() as i64,
            time: time as i64,
            tokens: lengths.iter().sum::<usize>() as i64,
            start: start as i64,
            keys: if ragged || before != [0] { Some(self.keys(members)?) } else { None },
            before,
            ragged: if ragged { Some(self.ragged(&lengths, time)?) } else { None },
        })
    }

    fn ragged(&self, lengths: &[usize], time: usize) -> Result<Ragged> {
        let (mut pad, mut unpad) = (Vec::new(), Vec::new());
        for (row, &length) in lengths.iter().enumerate() {
            let first = unpad.len() as i64;
            unpad.extend((row * time..row * time + length).map(|place| place as i64));
            pad.extend(first..first + length as i64);
            pad.resize((row + 1) * time, first);
        }
        Ok(Ragged { pad: on_device(&pad, self.device)?, unpad: on_device(&unpad, self.device)? })
    }

    fn keys(&self, members: &[usize]) -> Result<Tensor> {
        let longest = members.iter().map(|&row| seen(self.rows, row)).max();
        let mut keys = Vec::new();
        for (line, &row) in members.iter().enumerate() {
            let shared = self.rows[row].after.map_or(0..0, |after| self.place(after));
            keys.extend(shared.chain(self.place(row)).map(|place| place as i64));
            // No query looks at tokens after its row.
            keys.resize((line + 1) * longest.unwrap_or_default(), self.starts[row] as i64);
        }
        on_device(&keys, self.device)
    }
}
