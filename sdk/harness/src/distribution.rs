//! Summaries of many numbers.

use serde::Serialize;

/// The distribution of some numbers; all 0 without numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// The number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half of them are at most this.
    pub p50: u64,
    /// 90 % of them are at most this.
    pub p90: u64,
    /// 99 % of them are at most this.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

impl Distribution {
    /// The distribution of `numbers`.
    pub fn of(numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut numbers: Vec<u64> = numbers.into_iter().collect();
        numbers.sort_unstable();
        let count = numbers.len();
        // The nearest rank: always one of the numbers.
        let rank = |percent: usize| numbers.get((count * percent).div_ceil(100).max(1) - 1).copied().unwrap_or(0);
        let sum: u128 = numbers.iter().map(|number| u128::from(*number)).sum();
        Self {
            count: count as u64,
            mean: sum as f64 / count.max(1) as f64,
            p50: rank(50),
            p90: rank(90),
            p99: rank(99),
            max: numbers.last().copied().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_numbers_that_came() {
        let all = Distribution::of(1..=200);
        assert_eq!((all.count, all.mean, all.p50, all.p90, all.p99, all.max), (200, 100.5, 100, 180, 198, 200));
        let one = Distribution::of([7]);
        assert_eq!((one.p50, one.p99, one.max), (7, 7, 7));
        assert_eq!(Distribution::of([]), Distribution::default());
    }
}
