//! The numbers of an update, by name.

use crate::error::Result;
use crate::ranks::Message;
use std::borrow::Cow;
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

/// What the chunks of a rank add to each number of an update together.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sums {
    /// How many tokens were learned from.
    pub tokens: usize,
    numbers: Vec<(Cow<'static, str>, Reduction, f64)>,
}

/// The numbers of an update, by name, in the order of the report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics(Vec<(Cow<'static, str>, f64)>);

impl Sums {
    /// The sums of chunks that learned from `tokens` tokens.
    pub fn of_chunks(chunks: &[ChunkSums], tokens: usize) -> Result<Self> {
        let Some(first) = chunks.first() else { return Ok(Self { tokens, numbers: Vec::new() }) };
        let stacked = |chunk: &ChunkSums| Tensor::f_stack(&chunk.0.iter().map(|(.., sum)| sum).collect::<Vec<_>>(), 0);
        let rows = chunks.iter().map(stacked).collect::<std::result::Result<Vec<_>, _>>()?;
        let rows = Tensor::f_stack(&rows, 0)?;
        let totals = Vec::<f64>::try_from(rows.f_sum_dim_intlist([0i64].as_slice(), false, Kind::Double)?)?;
        let largest = Vec::<f64>::try_from(rows.f_amax([0i64].as_slice(), false)?)?;
        let numbers = first.0.iter().zip(totals.into_iter().zip(largest));
        let number = |(&(name, reduction, _), (total, largest)): (&(&'static str, Reduction, Tensor), (f64, f64))| {
            (Cow::Borrowed(name), reduction, if reduction == Reduction::TokenMax { largest } else { total })
        };
        Ok(Self { tokens, numbers: numbers.map(number).collect() })
    }
}

impl Message for Sums {
    fn write(&self, to: &mut Vec<u8>) {
        let number = |(name, reduction, value): &(Cow<'static, str>, Reduction, f64)| {
            (name.clone().into_owned(), (*reduction as usize, *value))
        };
        (self.tokens, self.numbers.iter().map(number).collect::<Vec<_>>()).write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let (tokens, numbers): (usize, Vec<_>) = Message::read(from)?;
        let number = |(name, (reduction, value)): (String, (usize, f64))| {
            let all = [Reduction::Sum, Reduction::TokenMean, Reduction::TokenMax];
            Some((Cow::Owned(name), *all.get(reduction)?, value))
        };
        Some(Self { tokens, numbers: numbers.into_iter().map(number).collect::<Option<_>>()? })
    }
}

impl Statistics {
    /// The numbers of an update from the sums of its parts. Parts with something to learn from have the same names in
    /// the same order.
    pub(crate) fn of_sums(parts: &[Sums]) -> Self {
        let tokens: usize = parts.iter().map(|part| part.tokens).sum();
        let Some(first) = parts.iter().find(|part| !part.numbers.is_empty()) else { return Self::default() };
        let number = |(at, (name, reduction, _)): (usize, &(Cow<'static, str>, Reduction, f64))| {
            let values = parts.iter().filter_map(|part| part.numbers.get(at)).map(|(.., value)| *value);
            let number = match reduction {
                Reduction::Sum => values.sum::<f64>(),
                Reduction::TokenMean => values.sum::<f64>() / tokens as f64,
                Reduction::TokenMax => values.fold(f64::NEG_INFINITY, f64::max),
            };
            (name.clone(), number)
        };
        Self(first.numbers.iter().enumerate().map(number).collect())
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
        self.0.insert(at, (name.into(), value));
    }

    /// Adds numbers that do not come from chunks.
    pub(crate) fn extend(&mut self, numbers: impl IntoIterator<Item = (&'static str, f64)>) {
        self.0.extend(numbers.into_iter().map(|(name, value)| (name.into(), value)));
    }

    /// Divides every number but the loss by `count`.
    pub(crate) fn divided_except_loss(mut self, count: f64) -> Self {
        self.0.iter_mut().filter(|(name, _)| name != LOSS).for_each(|(_, value)| *value /= count);
        self
    }

    /// A number by name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// All numbers with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
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
        let mut found =
            Statistics::of_sums(&[Sums::of_chunks(&[chunk(0.5, &[1.0, 4.0]), chunk(-0.25, &[2.0])], 4).unwrap()]);
        found.insert_before("penalty", "grad_norm", 3.0);
        let numbers = [("loss", 0.25), ("ratio", 1.75), ("grad_norm", 3.0), ("penalty", 7.0), ("ratio_max", 4.0)];
        assert_eq!(found.iter().collect::<Vec<_>>(), numbers);

        // Two ranks with a chunk each, and one with nothing.
        let parts = [(vec![chunk(0.5, &[1.0, 4.0])], 2), (vec![], 0), (vec![chunk(-0.25, &[2.0])], 2)];
        let sent = parts.iter().map(|(chunks, tokens)| {
            let mut bytes = Vec::new();
            Sums::of_chunks(chunks, *tokens).unwrap().write(&mut bytes);
            Sums::read(&mut bytes.as_slice()).unwrap()
        });
        let mut of_ranks = Statistics::of_sums(&sent.collect::<Vec<_>>());
        of_ranks.insert_before("penalty", "grad_norm", 3.0);
        assert_eq!(of_ranks, found);
        assert_eq!((found.loss(), found.get("penalty"), found.get("none")), (0.25, Some(7.0), None));
    }
}
