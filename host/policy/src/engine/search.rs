//! The inverse of a cumulative distribution, in two levels.

use super::inputs::BELOW_ONE;
use crate::error::Result;
use gavel_torch::scalar::{ScalarOperations, arange};
use tch::{Kind, Tensor};

/// How many tokens form a block, whose probabilities are summed up together. A search adds up the sums of blocks, and
/// then the probabilities of one block, instead of the probabilities of the whole vocabulary.
const BLOCK: i64 = 512;

/// The first index, `[rows, 1]`, at which the cumulative sum of `weights`, `[rows, vocab]`, exceeds the share
/// `uniforms`, `[rows, 1]`, of their total. Where a row is NaN it is some index in range.
pub(super) fn invert(weights: &Tensor, uniforms: &Tensor) -> Result<Tensor> {
    let vocab = weights.size()[1];
    if vocab <= 2 * BLOCK {
        return Search::new(weights, uniforms)?.found();
    }
    let whole = vocab / BLOCK * BLOCK;
    let sum = |x: &Tensor| x.f_sum_dim_intlist([-1i64].as_slice(), false, None);
    let mut sums = vec![sum(&weights.f_narrow(1, 0, whole)?.f_unflatten(1, [-1, BLOCK])?)?];
    if whole < vocab {
        sums.push(sum(&weights.f_narrow(1, whole, vocab - whole)?)?.f_unsqueeze(1)?);
    }
    let blocks = Search::new(&Tensor::f_cat(&sums, 1)?, uniforms)?;
    let block = blocks.found()?;
    let first = block.try_mul(BLOCK)?;
    let places = first.f_add(&arange(0, BLOCK, 1, weights.device())?)?;
    // The last block may be shorter.
    let inside = weights.f_gather(1, &places.try_clamp_max(vocab - 1)?, false)?;
    let inside = inside.f_mul(&places.try_lt(vocab)?)?;
    let found = Search::new(&inside, &blocks.share(&block)?)?.found()?;
    Ok(first.f_add(&found)?.try_clamp_max(vocab - 1)?)
}

/// A search in `[rows, n]` weights for the point that has a share of the total below it.
struct Search {
    weights: Tensor,
    sums: Tensor,
    /// `[rows, 1]`: the weight below the point.
    target: Tensor,
}

impl Search {
    fn new(weights: &Tensor, shares: &Tensor) -> Result<Self> {
        let weights = weights.f_to_kind(Kind::Double)?;
        let sums = weights.f_cumsum(-1, None)?;
        let target = sums.f_narrow(1, sums.size()[1] - 1, 1)?.f_mul(shares)?;
        Ok(Self { weights, sums, target })
    }

    /// The index at the point, `[rows, 1]`. Its weight is not 0.
    fn found(&self) -> Result<Tensor> {
        let last = self.sums.size()[1] - 1;
        let found = self.target.f_searchsorted(&self.sums, false, true, "right", None::<&Tensor>)?;
        Ok(found.try_clamp_max(last)?)
    }

    /// The share of the weight at `found` that is below the point: `[rows, 1]`.
    fn share(&self, found: &Tensor) -> Result<Tensor> {
        let own = self.weights.f_gather(1, found, false)?;
        let before = self.sums.f_gather(1, found, false)?.f_sub(&own)?;
        Ok(self.target.f_sub(&before)?.f_div(&own)?.try_clamp(0.0, BELOW_ONE)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::seed;

    #[test]
    fn the_index_at_the_uniform_number_is_found_in_any_size() {
        for vocab in [1i64, 7, 1024, 1025, 1536, 5000] {
            let weight = |row: u64, at: u64| match (at + row) % 3 {
                // Long stretches without weight, and single ones.
                0 => 0.0,
                _ if at / 700 == 2 => 0.0,
                _ => seed::uniform(row, at) as f32,
            };
            let rows: Vec<Vec<f32>> =
                (0..40).map(|row| (0..vocab as u64).map(|at| weight(row + 1, at)).collect()).collect();
            let uniforms: Vec<f64> =
                (0..40).map(|row| seed::uniform(99, row) * if row % 4 == 0 { 0.0 } else { 1.0 }).collect();
            let weights = Tensor::from_slice(&rows.concat()).view([40, vocab]);
            let found = invert(&weights, &Tensor::from_slice(&uniforms).view([40, 1])).unwrap();
            let found = Vec::<i64>::try_from(found.view(-1)).unwrap();
            for ((row, uniform), found) in rows.iter().zip(uniforms).zip(found) {
                let total: f64 = row.iter().map(|&weight| f64::from(weight)).sum();
                if total == 0.0 {
                    continue;
                }
                let before: f64 = row[..found as usize].iter().map(|&weight| f64::from(weight)).sum();
                let own = f64::from(row[found as usize]);
                // Sums of blocks have 32 bits.
                let inside = before - total * 1e-6 <= uniform * total && uniform * total <= before + own + total * 1e-6;
                assert!(own > 0.0 && inside, "{vocab}: {found} of {own} at {} after {before}", uniform * total);
            }
        }
    }

    #[test]
    fn without_finite_numbers_some_index_is_found() {
        let weights = Tensor::full([2, 3000], f64::NAN, (Kind::Float, tch::Device::Cpu));
        let found = invert(&weights, &Tensor::from_slice(&[0.0, 0.9]).view([2, 1])).unwrap();
        assert!(Vec::<i64>::try_from(found.view(-1)).unwrap().iter().all(|found| (0..3000).contains(found)));
    }
}
