//! How the numbers of samples go together: each reward, the tokens, the turns and the time.

use crate::index::Index;
use crate::row::Row;
use serde::Serialize;

/// Pearson's correlations of the numbers of samples.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Correlations {
    /// The reward, the plugins, and then what is no reward.
    pub(crate) names: Vec<String>,
    /// How many of the names are plugins, from the second on.
    pub(crate) plugins: usize,
    /// For each name, those with the names up to it.
    pub(crate) pairs: Vec<Vec<Pair>>,
}

/// How two numbers go together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Pair {
    /// From -1 to 1; none where one of them is always the same.
    pub(crate) r: Option<f64>,
    /// The samples that have both.
    pub(crate) count: u64,
}

/// Sums of two numbers about their means so far, which keep their digits in any number of samples.
#[derive(Default)]
struct Sums {
    count: u64,
    means: [f64; 2],
    squares: [f64; 2],
    product: f64,
}

impl Sums {
    fn add(&mut self, one: f64, other: f64) {
        if one.is_nan() || other.is_nan() {
            return;
        }
        self.count += 1;
        let before = [one - self.means[0], other - self.means[1]];
        self.means = [self.means[0] + before[0] / self.count as f64, self.means[1] + before[1] / self.count as f64];
        self.squares[0] += before[0] * (one - self.means[0]);
        self.squares[1] += before[1] * (other - self.means[1]);
        self.product += before[0] * (other - self.means[1]);
    }

    fn pair(&self) -> Pair {
        let size = (self.squares[0] * self.squares[1]).sqrt();
        // Numbers that are always the same differ by rounding alone.
        let varies = |at: usize| self.squares[at] > 1e-18 * self.count as f64 * (1.0 + self.means[at].powi(2));
        let is_known = varies(0) && varies(1);
        Pair { r: is_known.then(|| (self.product / size).clamp(-1.0, 1.0)), count: self.count }
    }
}

/// A number of a row.
type Number = fn(&Row) -> f64;

/// Counts each sample once.
pub(crate) fn correlations(index: &Index) -> Correlations {
    let own: [(&str, Number); 3] = [
        ("tokens", |row| f64::from(row.response_length)),
        ("turns", |row| f64::from(row.turns)),
        ("time", |row| f64::from(row.elapsed)),
    ];
    let mut names = vec!["the reward".to_owned()];
    names.extend(index.plugins.keys().cloned());
    names.extend(own.iter().map(|(name, _)| (*name).to_owned()));
    let mut sums: Vec<Vec<Sums>> =
        (1..=names.len()).map(|length| (0..length).map(|_| Sums::default()).collect()).collect();
    let mut values = vec![0.0; names.len()];
    for (number, row) in index.rows.iter().enumerate().filter(|(_, row)| row.trajectory == 0) {
        let scores = index.plugins.values().map(|all| all.scores.get(number).copied().unwrap_or(f64::NAN));
        let all = std::iter::once(row.reward).chain(scores).chain(own.iter().map(|(_, value)| value(row)));
        values.iter_mut().zip(all).for_each(|(place, value)| *place = value);
        for (line, one) in sums.iter_mut().zip(&values) {
            line.iter_mut().zip(&values).for_each(|(sum, other)| sum.add(*one, *other));
        }
    }
    let pairs = sums.iter().map(|line| line.iter().map(Sums::pair).collect()).collect();
    Correlations { plugins: index.plugins.len(), names, pairs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_are_those_of_the_formula_and_constants_have_none() {
        let (mut up, mut down, mut constant, mut sparse) =
            (Sums::default(), Sums::default(), Sums::default(), Sums::default());
        for number in 0..1000 {
            let x = 1e6 + f64::from(number % 17);
            up.add(x, 3.0 * x - 5.0);
            down.add(x, -x);
            constant.add(x, 0.1 + 0.2);
            sparse.add(if number % 2 == 0 { f64::NAN } else { x }, x);
        }
        let r = |sums: &Sums| sums.pair().r.map(|r| (r * 1e9).round() / 1e9);
        assert_eq!((r(&up), r(&down), r(&constant), r(&sparse)), (Some(1.0), Some(-1.0), None, Some(1.0)));
        assert_eq!((up.pair().count, sparse.pair().count, Sums::default().pair()), (1000, 500, Pair::default()));
        let mut some = Sums::default();
        [(1.0, 2.0), (2.0, 1.0), (3.0, 4.0), (4.0, 3.0)].into_iter().for_each(|(x, y)| some.add(x, y));
        assert_eq!(r(&some), Some(0.6));
    }
}
