//! Which tokens could be drawn, for the rows that keep it.

use super::drawn::Pick;
use super::row::Row;
use crate::error::Result;
use gavel_data::SamplingMask;
use gavel_torch::scalar::ScalarOperations;
use tch::{Device, Kind, Tensor};

/// What the rows of a step could draw, on the device.
pub(super) struct CouldDraw {
    /// The numbers of the rows that keep it.
    keeping: Vec<i64>,
    /// `[rows, vocab]`: whether each row could draw each token.
    tokens: Tensor,
    /// `[rows, 1]`: how many it could.
    counts: Tensor,
    /// `[rows, 1]`: the log-probability of the drawn token among these.
    logprobs: Tensor,
}

impl CouldDraw {
    /// How many columns there are.
    const COLUMNS: usize = 2;

    /// What these rows could draw from `kept`, `[rows, vocab]`, which is 0 for tokens that are excluded or cut off, when
    /// they drew `drawn`, `[rows, 1]`. `None` if no row keeps it.
    pub(super) fn of(rows: &[&Row], kept: &Tensor, drawn: &Tensor) -> Result<Option<Self>> {
        let numbered = (0i64..).zip(rows).filter(|(_, row)| row.request.sampling.keeps_cuts());
        let keeping: Vec<i64> = numbered.map(|(number, _)| number).collect();
        if keeping.is_empty() {
            return Ok(None);
        }
        let sum = |x: &Tensor, kind: Kind| x.f_sum_dim_intlist([-1i64].as_slice(), true, kind);
        let tokens = kept.try_gt(0)?;
        let counts = sum(&tokens, Kind::Int64)?;
        let logprobs = kept.f_gather(1, drawn, false)?.f_div(&sum(kept, Kind::Double)?)?.f_log()?;
        Ok(Some(Self { keeping, tokens, counts, logprobs }))
    }

    /// What the host needs of each row beside its token: `[rows, 1]` each.
    pub(super) fn columns(&self) -> [&Tensor; Self::COLUMNS] {
        [&self.logprobs, &self.counts]
    }

    /// Adds to the picks of a step what they could have been, with one transfer to the host. The last numbers of each of
    /// the `lines` are the row's [`columns`](Self::columns).
    pub(super) fn add_to(&self, picks: &mut [Pick], lines: &[&[f64]]) -> Result<()> {
        let vocab = self.tokens.size()[1];
        let places = self.shorter_lists()?;
        let mut places = places.as_slice();
        for (at, &number) in (0i64..).zip(&self.keeping) {
            let own = places.partition_point(|place| *place < (at + 1) * vocab);
            let (own, others) = places.split_at(own);
            places = others;
            let number = number as usize;
            let Some((pick, line)) = picks.get_mut(number).zip(lines.get(number)) else { continue };
            let &[.., logprob, count] = *line else { continue };
            let ids = own.iter().map(|place| (place - at * vocab) as u32).collect();
            pick.logprob = logprob as f32;
            pick.mask = if 2.0 * count > vocab as f64 { SamplingMask::Except(ids) } else { SamplingMask::Only(ids) };
        }
        Ok(())
    }

    /// The tokens that each of the rows could draw, or those that it could not if these are fewer: their places among the
    /// tokens of all the rows, in order.
    fn shorter_lists(&self) -> Result<Vec<i64>> {
        let keeping = match self.keeping.len() as i64 == self.tokens.size()[0] {
            true => None,
            false => Some(Tensor::f_from_slice(&self.keeping)?.f_to_device(self.tokens.device())?),
        };
        let of_keeping = |x: &Tensor| match &keeping {
            None => Ok(x.shallow_clone()),
            Some(numbers) => x.f_index_select(0, numbers),
        };
        let is_most = of_keeping(&self.counts)?.try_mul(2)?.try_gt(self.tokens.size()[1])?;
        let listed = of_keeping(&self.tokens)?.f_logical_xor(&is_most)?;
        let places = listed.f_flatten(0, -1)?.f_nonzero()?.f_flatten(0, -1)?;
        Ok(Vec::try_from(places.f_to_device(Device::Cpu)?)?)
    }
}
