//! Metrics of `k` samples of a task, estimated from the `n ≥ k` samples that were drawn. Each is the mean over all ways
//! to take `k` of them, which is an unbiased estimate for `k` fresh samples.

/// The values of `k` for `n` samples: the powers of two below `n`, and `n`, as in verl; and also 1.
pub(crate) fn sizes(n: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |size| Some(size * 2)).take_while(move |size| *size < n).chain([n])
}

/// The expected highest of `k` of the values. For values that are 0 or 1, this is pass@k (Chen et al., "Evaluating large
/// language models trained on code", 2021, equation 1). Absent if there are fewer than `k`.
pub(crate) fn expected_best(values: &[f64], k: usize) -> Option<f64> {
    let n = values.len();
    if k == 0 || n < k {
        return None;
    }
    let mut descending = values.to_vec();
    descending.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut best, mut probability) = (0.0, k as f64 / n as f64);
    for (rank, value) in descending.iter().enumerate().take(n - k + 1) {
        best += probability * value;
        // The probability that the next value is the highest: it is taken, and none of those above it.
        let left = (n - rank - 1) as f64;
        probability *= (left - k as f64 + 1.0) / left.max(1.0);
    }
    Some(best)
}

/// The answers of samples that agree, and what these are worth on average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Votes {
    /// How many samples gave this answer.
    pub(crate) count: usize,
    /// What it is worth.
    pub(crate) worth: f64,
}

/// The expected worth of the most frequent answer among `k` of the samples. Answers that are equally frequent have
/// equal chances. Absent if there are fewer than `k` samples.
pub(crate) fn expected_majority(answers: &[Votes], k: usize) -> Option<f64> {
    let n: usize = answers.iter().map(|answer| answer.count).sum();
    if k == 0 || n < k {
        return None;
    }
    // For each number of votes that wins, all ways to take k samples in which no answer has more.
    Some((1..=k).map(|votes| worth_of_winners(answers, k, votes)).sum::<f64>() / choose(n, k))
}

/// Over all ways to take `k` samples in which the most frequent answers have `votes` each: the sum of what those are
/// worth on average.
fn worth_of_winners(answers: &[Votes], k: usize, votes: usize) -> f64 {
    let most = k / votes;
    // By the samples taken and the answers that have `votes`: the number of ways, and the sum over these ways of what
    // the answers are worth.
    let mut ways = vec![vec![(0.0, 0.0); most + 1]; k + 1];
    ways[0][0] = (1.0, 0.0);
    for answer in answers {
        let mut next = vec![vec![(0.0, 0.0); most + 1]; k + 1];
        for taken in 0..=answer.count.min(votes) {
            let (factor, wins) = (choose(answer.count, taken), usize::from(taken == votes));
            for samples in 0..=k - taken {
                for winners in 0..=most - wins {
                    let (count, worth) = ways[samples][winners];
                    let to: &mut (f64, f64) = &mut next[samples + taken][winners + wins];
                    to.0 += factor * count;
                    to.1 += factor * (worth + wins as f64 * answer.worth * count);
                }
            }
        }
        ways = next;
    }
    (1..=most).map(|winners| ways[k][winners].1 / winners as f64).sum()
}

/// How many ways there are to take `k` of `n`.
fn choose(n: usize, k: usize) -> f64 {
    (0..k).map(|at| (n - at) as f64 / (at + 1) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::seed::uniform;

    /// The mean of `value` over all ways to take `k` of `n` samples, one by one.
    fn over_subsets(n: usize, k: usize, value: impl Fn(&[usize]) -> f64) -> f64 {
        let subsets = (0..1u32 << n).filter(|subset| subset.count_ones() as usize == k);
        let values: Vec<f64> =
            subsets.map(|subset| value(&(0..n).filter(|at| subset & (1 << at) != 0).collect::<Vec<_>>())).collect();
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn sizes_are_powers_of_two_and_the_number_of_samples() {
        let of = |n| sizes(n).collect::<Vec<_>>();
        assert_eq!([of(1), of(2), of(6), of(8)], [vec![1], vec![1, 2], vec![1, 2, 4, 6], vec![1, 2, 4, 8]]);
    }

    #[test]
    fn the_best_of_k_is_that_of_all_subsets() {
        for n in 1..=7 {
            let values: Vec<f64> = (0..n as u64).map(|at| uniform(n as u64, at) - 0.5).collect();
            for k in 1..=n {
                let expected =
                    over_subsets(n, k, |subset| subset.iter().map(|&at| values[at]).fold(f64::NEG_INFINITY, f64::max));
                let found = expected_best(&values, k).unwrap();
                assert!((found - expected).abs() < 1e-12, "{k} of {values:?}: {found} is not {expected}");
            }
            assert_eq!(expected_best(&values, n + 1), None);
        }
    }

    #[test]
    fn pass_at_k_is_the_estimator_of_chen_et_al() {
        for (n, right) in [(1, 0), (1, 1), (8, 3), (10, 9), (200, 1), (200, 7)] {
            let values: Vec<f64> = (0..n).map(|at| f64::from(u8::from(at < right))).collect();
            for k in sizes(n) {
                // 1 − Π (1 − k / i) over i from n − c + 1 to n, as they compute it.
                let missed: f64 = (n - right + 1..=n).map(|i| (1.0 - k as f64 / i as f64).max(0.0)).product();
                let expected = if n - right < k { 1.0 } else { 1.0 - missed };
                let found = expected_best(&values, k).unwrap();
                assert!((found - expected).abs() < 1e-12, "pass@{k}, {right} of {n}: {found} is not {expected}");
            }
        }
    }

    #[test]
    fn the_majority_of_k_is_that_of_all_subsets() {
        let cases: [&[(usize, f64)]; 6] = [
            &[(1, 1.0)],
            &[(3, 1.0), (2, 0.0)],
            &[(2, 0.0), (2, 1.0), (1, 0.5)],
            &[(1, 0.0), (1, 1.0), (1, 0.0), (1, 0.25)],
            &[(4, 0.0), (2, 1.0), (2, 0.3)],
            &[(5, 0.75), (3, 0.1)],
        ];
        for case in cases {
            let answers: Vec<Votes> = case.iter().map(|&(count, worth)| Votes { count, worth }).collect();
            let samples: Vec<usize> =
                answers.iter().enumerate().flat_map(|(answer, votes)| vec![answer; votes.count]).collect();
            for k in 1..=samples.len() {
                let expected = over_subsets(samples.len(), k, |subset| {
                    let votes = |answer: usize| subset.iter().filter(|&&at| samples[at] == answer).count();
                    let most = (0..answers.len()).map(votes).max().unwrap();
                    let winners: Vec<f64> =
                        (0..answers.len()).filter(|&at| votes(at) == most).map(|at| answers[at].worth).collect();
                    winners.iter().sum::<f64>() / winners.len() as f64
                });
                let found = expected_majority(&answers, k).unwrap();
                assert!((found - expected).abs() < 1e-12, "{k} of {case:?}: {found} is not {expected}");
            }
            assert_eq!(expected_majority(&answers, samples.len() + 1), None);
        }
    }

    #[test]
    fn a_large_number_of_samples_stays_finite() {
        let votes = |count, worth| Votes { count, worth };
        let found = expected_majority(&[votes(300, 1.0), votes(200, 0.0), votes(1, 0.0)], 256).unwrap();
        assert!((0.99..=1.0).contains(&found), "{found}");
    }
}
