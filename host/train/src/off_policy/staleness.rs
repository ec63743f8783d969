//! How old the data of a step is, in versions of the policy.

use crate::experience::Experience;
use std::iter::Sum;

/// How many versions behind the policy the tokens of a step were drawn, summed over its groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Staleness {
    tokens: u64,
    sum: u64,
    max: u64,
    masked: u64,
}

impl Staleness {
    /// Of the tokens of these rows that the policy with this version learns from.
    pub fn of(rows: &[Experience], version: u64) -> Self {
        let tokens = rows.iter().flat_map(|row| row.versions.iter().zip(&row.loss_mask));
        let learned = tokens.filter(|(_, mask)| **mask).map(|(drawn, _)| version.saturating_sub(*drawn));
        learned.map(|behind| Self { tokens: 1, sum: behind, max: behind, masked: 0 }).sum()
    }

    /// Takes the advantage from the tokens that were drawn more than `most` versions before the policy with this
    /// version. Like rejected tokens, they still count in the mean, so that a mini-batch with few tokens left does not
    /// make a step as large as a whole one.
    pub fn mask(&mut self, rows: &mut [Experience], version: u64, most: u64) {
        for row in rows {
            let tokens = row.advantages.iter_mut().zip(&row.versions).zip(&row.loss_mask);
            for ((advantage, &drawn), _) in tokens.filter(|(_, mask)| **mask) {
                if version.saturating_sub(drawn) > most {
                    *advantage = 0.0;
                    self.masked += 1;
                }
            }
        }
    }

    /// The share of the tokens that were masked.
    pub fn masked(&self) -> f64 {
        self.masked as f64 / self.tokens.max(1) as f64
    }

    /// The mean over tokens; `None` without tokens.
    pub fn mean(&self) -> Option<f64> {
        (self.tokens > 0).then(|| self.sum as f64 / self.tokens as f64)
    }

    /// The staleness of the oldest token.
    pub fn max(&self) -> u64 {
        self.max
    }
}

impl Sum for Staleness {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, each| Self {
            tokens: sum.tokens + each.tokens,
            sum: sum.sum + each.sum,
            max: sum.max.max(each.max),
            masked: sum.masked + each.masked,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tokens_that_are_learned_from_count() {
        let row = |versions: &[u64], loss_mask: &[bool]| Experience {
            versions: versions.to_vec(),
            loss_mask: loss_mask.to_vec(),
            ..Default::default()
        };
        let none = Staleness::default();
        assert_eq!((none.mean(), none.masked()), (None, 0.0));
        let first = [row(&[3, 4, 0], &[true, true, false]), row(&[5], &[true])];
        let mut staleness: Staleness =
            [&first[..], &[row(&[1], &[true])]].map(|rows| Staleness::of(rows, 5)).into_iter().sum();
        // 2, 1, 0 and 4 versions.
        assert_eq!((staleness.mean(), staleness.max()), (Some(1.75), 4));
        // Of the four tokens, those that are more than one version old.
        let mut rows = [row(&[3, 4, 0], &[true, true, false]), row(&[5], &[true]), row(&[1], &[true])];
        rows.iter_mut().for_each(|row| row.advantages = vec![1.0; row.versions.len()]);
        staleness.mask(&mut rows, 5, 1);
        assert_eq!(rows.map(|row| row.advantages), [vec![0.0, 1.0, 1.0], vec![1.0], vec![0.0]]);
        assert_eq!(staleness.masked(), 0.5);
    }
}
