//! Sequences side by side, without padding, as training reads them. Those that
//! begin alike, such as the responses to one prompt, share their beginning: it
//! is computed once, and gradients of all of them flow into it.

use crate::config::ModelConfig;
use crate::error::{PolicyError, Result};
use crate::forward::attention;
use crate::layer::Projected;
use crate::mask::Masks;
use std::ops::Range;
use tch::{Device, Kind, Tensor};

/// Some tokens, and what stands before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedRow {
    /// The row that these tokens follow, which itself follows none.
    pub after: Option<usize>,
    /// At least one token id.
    pub tokens: Vec<u32>,
}

/// Rows of tokens, laid out for [`Model::hidden_packed`](crate::Model::hidden_packed).
#[derive(Debug)]
pub struct Packed {
    /// `[tokens]`
    pub(crate) ids: Tensor,
    /// `[tokens]`: how many tokens stand before each.
    pub(crate) positions: Tensor,
    /// Where each row begins in `ids`.
    starts: Vec<usize>,
    /// In the order of `ids`.
    buckets: Vec<Bucket>,
}

/// Rows of similar length, whose attention is computed together. Padding is
/// only there.
#[derive(Debug)]
struct Bucket {
    rows: i64,
    /// Tokens of the longest row.
    time: i64,
    /// Tokens of all rows.
    tokens: i64,
    /// Where they stand in `ids`.
    start: i64,
    /// How many tokens stand before each row; a single number where all are equal.
    before: Vec<i64>,
    ragged: Option<Ragged>,
    /// `[rows * keys]`: which tokens each row looks at, in their order; absent
    /// where these are its own and no row is longer than another.
    keys: Option<Tensor>,
}

/// Between the tokens of a bucket and `[rows, time]`.
#[derive(Debug)]
struct Ragged {
    /// `[rows * time]`: the token of each place, some token for padding.
    pad: Tensor,
    /// `[tokens]`: the place of each token.
    unpad: Tensor,
}

impl Packed {
    /// Lays out `rows`.
    ///
    /// # Errors
    /// There is no row, a row is empty, or it follows one that it cannot follow.
    pub fn new(rows: &[PackedRow], device: Device) -> Result<Self> {
        check(rows)?;
        // Rows that others follow come first; then by length, so that those of a bucket are neighbours.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&row| (rows[row].after.is_some(), seen(rows, row), rows[row].tokens.len()));
        let mut starts = vec![0; rows.len()];
        let (mut ids, mut positions) = (Vec::new(), Vec::new());
        for &row in &order {
            starts[row] = ids.len();
            let before = before(rows, row);
            ids.extend(rows[row].tokens.iter().map(|&id| i64::from(id)));
            positions.extend((before..before + rows[row].tokens.len()).map(|position| position as i64));
        }
        let layout = Layout { rows, starts: &starts, device };
        let buckets = cut(rows, &order).into_iter().map(|members| layout.bucket(members)).collect::<Result<_>>()?;
        Ok(Self { ids: tensor(&ids, device)?, positions: tensor(&positions, device)?, starts, buckets })
    }

    /// How many tokens there are.
    pub fn tokens(&self) -> i64 {
        self.ids.size()[0]
    }

    /// Where the tokens of a row begin among all.
    pub fn start(&self, row: usize) -> usize {
        self.starts[row]
    }

    /// The masks of each bucket, for attention in numbers of `kind`.
    pub(crate) fn masks(&self, config: &ModelConfig, kind: Kind) -> Result<Vec<Masks>> {
        self.buckets.iter().map(|bucket| bucket.masks(config, self.ids.device())?.added(kind)).collect()
    }

    /// Attention of every token to those before it in its row and in the row
    /// that this follows; gives `[tokens, heads * head_dim]`.
    pub(crate) fn attend(
        &self,
        config: &ModelConfig,
        layer: usize,
        projected: &Projected,
        masks: &[Masks],
    ) -> Result<Tensor> {
        let flat = |x: &Tensor| x.f_flatten(1, 2);
        let (query, key, value) = (flat(&projected.query)?, flat(&projected.key)?, flat(&projected.value)?);
        let sizes: Vec<i64> = self.buckets.iter().map(|bucket| bucket.tokens).collect();
        let queries = query.f_split_with_sizes(sizes, 0)?;
        let attended = self
            .buckets
            .iter()
            .zip(&queries)
            .zip(masks)
            .map(|((bucket, query), masks)| bucket.attend(config, query, &key, &value, masks.of(config, layer)));
        let attended = attended.collect::<Result<Vec<_>>>()?;
        match attended.as_slice() {
            [one] => Ok(one.shallow_clone()),
            many => Ok(Tensor::f_cat(many, 0)?),
        }
    }
}

impl Bucket {
    fn masks(&self, config: &ModelConfig, device: Device) -> Result<Masks> {
        match self.before.as_slice() {
            [0] => Masks::new(config, self.time, None, device),
            before => Masks::after(config, before, self.time, self.longest(), device),
        }
    }

    /// Keys of the row that looks at most.
    fn longest(&self) -> i64 {
        self.keys.as_ref().map_or(self.time, |keys| keys.size()[0] / self.rows)
    }

    fn attend(
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

/// Rows `index`, `[n]`, of `x`, `[tokens, width]`. (An embedding is a choice of
/// rows whose gradient is computed in parallel; that of an `index_select` is
/// added row by row.)
pub fn take_rows(x: &Tensor, index: &Tensor) -> Result<Tensor> {
    Ok(Tensor::f_embedding(x, index, -1, false, false)?)
}

/// The most numbers of the masks of rows that do not have as many tokens before
/// them.
pub const MASK_NUMBERS: usize = 1 << 24;

fn check(rows: &[PackedRow]) -> Result<()> {
    if rows.is_empty() {
        return Err(PolicyError::Input("there are no rows to pack".into()));
    }
    for (index, row) in rows.iter().enumerate() {
        let wrong = |what: String| Err(PolicyError::Input(format!("row {index} of the pack {what}")));
        match row.after.map(|after| rows.get(after)) {
            _ if row.tokens.is_empty() => return wrong("has no tokens".into()),
            Some(None) => return wrong(format!("follows another, but there are only {} rows", rows.len())),
            Some(Some(other)) if other.after.is_some() => {
                return wrong("follows a row that itself follows another".into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// How many tokens stand before those of a row.
fn before(rows: &[PackedRow], row: usize) -> usize {
    rows[row].after.map_or(0, |after| rows[after].tokens.len())
}

/// How many tokens the last one of a row looks at.
fn seen(rows: &[PackedRow], row: usize) -> usize {
    before(rows, row) + rows[row].tokens.len()
}

/// Cuts the rows, in their order, into buckets. Within one, no row is less than
/// half as long as another, nor sees less than half as much, so that at most
/// half of what is computed is padding.
fn cut<'a>(rows: &[PackedRow], order: &'a [usize]) -> Vec<&'a [usize]> {
    let mut buckets = Vec::new();
    let mut rest = order;
    while let Some(&first) = rest.first() {
        let mut extent = Extent::of(rows, first);
        let count = rest.iter().take_while(|&&row| extent.take_in(rows, row)).count();
        let (bucket, later) = rest.split_at(count);
        buckets.push(bucket);
        rest = later;
    }
    buckets
}

/// What the rows of a bucket have in common.
struct Extent {
    first: usize,
    shortest: usize,
    longest: usize,
    rows: usize,
    /// Whether as many tokens stand before each row: then one mask is enough.
    one_mask: bool,
}

impl Extent {
    fn of(rows: &[PackedRow], first: usize) -> Self {
        let length = rows[first].tokens.len();
        Self { first, shortest: length, longest: length, rows: 0, one_mask: true }
    }

    /// Takes a row in that sees at least as much as those before, unless it is
    /// too unlike them.
    fn take_in(&mut self, rows: &[PackedRow], row: usize) -> bool {
        let length = rows[row].tokens.len();
        let (shortest, longest) = (self.shortest.min(length), self.longest.max(length));
        let one_mask = self.one_mask && before(rows, row) == before(rows, self.first);
        let masks = if one_mask { 1 } else { self.rows + 1 };
        let alike = rows[row].after.is_some() == rows[self.first].after.is_some()
            && seen(rows, row) <= 2 * seen(rows, self.first)
            && longest <= 2 * shortest
            && (masks == 1 || masks * longest * seen(rows, row) <= MASK_NUMBERS);
        if alike {
            (self.shortest, self.longest, self.one_mask) = (shortest, longest, one_mask);
            self.rows += 1;
        }
        alike
    }
}

fn tensor(values: &[i64], device: Device) -> Result<Tensor> {
    Ok(Tensor::f_from_slice(values)?.f_to_device(device)?)
}

/// Where everything stands.
struct Layout<'a> {
    rows: &'a [PackedRow],
    starts: &'a [usize],
    device: Device,
}

impl Layout<'_> {
    /// The place in `ids` of the tokens of a row.
    fn place(&self, row: usize) -> Range<usize> {
        self.starts[row]..self.starts[row] + self.rows[row].tokens.len()
    }

    fn bucket(&self, members: &[usize]) -> Result<Bucket> {
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
        Ok(Ragged { pad: tensor(&pad, self.device)?, unpad: tensor(&unpad, self.device)? })
    }

    fn keys(&self, members: &[usize]) -> Result<Tensor> {
        let longest = members.iter().map(|&row| seen(self.rows, row)).max();
        let mut keys = Vec::new();
        for (line, &row) in members.iter().enumerate() {
            let shared = self.rows[row].after.map_or(0..0, |after| self.place(after));
            keys.extend(shared.chain(self.place(row)).map(|place| place as i64));
            // No query looks at what comes after its row.
            keys.resize((line + 1) * longest.unwrap_or_default(), self.starts[row] as i64);
        }
        tensor(&keys, self.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows, each after another or none, of so many tokens.
    fn pack(rows: &[(Option<usize>, usize)]) -> Packed {
        let row = |&(after, length): &(Option<usize>, usize)| PackedRow { after, tokens: vec![1; length] };
        Packed::new(&rows.iter().map(row).collect::<Vec<_>>(), Device::Cpu).unwrap()
    }

    fn keys(packed: &Packed) -> usize {
        packed.buckets.iter().filter_map(|bucket| Some(bucket.keys.as_ref()?.numel())).sum()
    }

    #[test]
    fn a_long_prompt_does_not_make_others_look_further() {
        let prompts = (0..8).map(|_| (None, 10)).chain([(None, 1000)]);
        let responses = (0..9).flat_map(|prompt| [(Some(prompt), 20); 2]);
        let packed = pack(&prompts.chain(responses).collect::<Vec<_>>());
        assert_eq!(keys(&packed), 16 * 30 + 2 * 1020);
        // Prompts of both lengths, and responses after them.
        assert_eq!(packed.buckets.len(), 4);
    }

    #[test]
    fn long_rows_after_prompts_of_different_lengths_do_not_share_masks() {
        let packed = pack(&[(None, 1500), (None, 1501), (Some(0), 2600), (Some(1), 2600)]);
        let responses: Vec<_> = packed.buckets.iter().filter(|bucket| bucket.before != [0]).collect();
        assert_eq!(responses.iter().map(|bucket| bucket.before.as_slice()).collect::<Vec<_>>(), [[1500], [1501]]);
        let packed = pack(&[(None, 15), (None, 16), (Some(0), 26), (Some(1), 26)]);
        assert_eq!(packed.buckets.last().unwrap().before, [15, 16]);
    }
}
