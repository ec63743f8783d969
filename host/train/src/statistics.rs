//! The numbers of an update, by name.

use crate::error::Result;
use tch::{Kind, Tensor};

/// The number that is minimised.
const LOSS: &str = "loss";

/// How the sum over all tokens becomes a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reduction {
    /// The sum, for tokens that are already weighted.
    Sum,
    /// The mean over the tokens that were learned from.
    TokenMean,
    /// The largest of the tokens that were learned from.
    TokenMax,
}

/// What the tokens of a chunk add to each number, in the order of the report.
pub(crate) struct ChunkSums(Vec<(&'static str, Reduction, Tensor)>);

impl ChunkSums {
    /// The sums of a chunk whose first number is `loss`, a scalar.
    pub fn new(loss: &Tensor) -> Result<Self> {
        let mut sums = Self(Vec::new());
        sums.add(LOSS, Reduction::Sum, loss)?;
        Ok(sums)
    }

    /// Reduces the `values` of tokens, in 64 bits and without gradients. Every
    /// chunk of an update adds the same names in the same order.
    pub fn add(&mut self, name: &'static str, reduction: Reduction, values: &Tensor) -> Result<()> {
        let values = values.f_detach()?;
        let reduced = match reduction {
            Reduction::Sum | Reduction::TokenMean => values.f_sum(Kind::Double)?,
            Reduction::TokenMax => values.f_max()?.f_to_kind(Kind::Double)?,
        };
        self.0.push((name, reduction, reduced));
        Ok(())
    }
}

/// The numbers of an update, by name, in the order of the report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics(Vec<(&'static str, f64)>);

impl Statistics {
    /// The numbers of an update that learned from `tokens` tokens, from the
    /// sums of its chunks.
    pub(crate) fn of_chunks(chunks: &[ChunkSums], tokens: usize) -> Result<Self> {
        let Some(first) = chunks.first() else { return Ok(Self::default()) };
        let stacked = |chunk: &ChunkSums| Tensor::f_stack(&chunk.0.iter().map(|(.., sum)| sum).collect::<Vec<_>>(), 0);
        let rows = chunks.iter().map(stacked).collect::<std::result::Result<Vec<_>, _>>()?;
        let rows = Tensor::f_stack(&rows, 0)?;
        let totals = Vec::<f64>::try_from(rows.f_sum_dim_intlist([0i64].as_slice(), false, Kind::Double)?)?;
        let largest = Vec::<f64>::try_from(rows.f_amax([0i64].as_slice(), false)?)?;
        let numbers = first.0.iter().zip(totals.into_iter().zip(largest));
        let number = |(&(name, reduction, _), (total, largest)): (&(&'static str, Reduction, Tensor), (f64, f64))| {
            let number = match reduction {
                Reduction::Sum => total,
                Reduction::TokenMean => total / tokens as f64,
                Reduction::TokenMax => largest,
            };
            (name, number)
        };
        Ok(Self(numbers.map(number).collect()))
    }

    /// The loss that was minimised.
    pub(crate) fn loss(&self) -> f64 {
        // Every chunk has it.
        self.get(LOSS).unwrap_or(f64::NAN)
    }

    /// Inserts a number that is not computed from tokens before `other`, or at
    /// the end if there is no `other`.
    pub(crate) fn insert_before(&mut self, other: &str, name: &'static str, value: f64) {
        let at = self.0.iter().position(|(known, _)| *known == other).unwrap_or(self.0.len());
        self.0.insert(at, (name, value));
    }

    /// Adds numbers that do not come from chunks.
    pub(crate) fn extend(&mut self, numbers: impl IntoIterator<Item = (&'static str, f64)>) {
        self.0.extend(numbers);
    }

    /// A number by name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// All numbers with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_summed_over_chunks_and_keep_their_order() {
        let chunk = |loss: f64, values: &[f32]| {
            let mut sums = ChunkSums::new(&Tensor::from(loss)).unwrap();
            sums.add("ratio", Reduction::TokenMean, &Tensor::from_slice(values)).unwrap();
            sums.add("penalty", Reduction::Sum, &Tensor::from_slice(values)).unwrap();
            sums.add("ratio_max", Reduction::TokenMax, &Tensor::from_slice(values)).unwrap();
            sums
        };
        let mut found = Statistics::of_chunks(&[chunk(0.5, &[1.0, 4.0]), chunk(-0.25, &[2.0])], 4).unwrap();
        found.insert_before("penalty", "grad_norm", 3.0);
        let numbers = [("loss", 0.25), ("ratio", 1.75), ("grad_norm", 3.0), ("penalty", 7.0), ("ratio_max", 4.0)];
        assert_eq!(found.iter().collect::<Vec<_>>(), numbers);
        assert_eq!((found.loss(), found.get("penalty"), found.get("none")), (0.25, Some(7.0), None));
    }
}
