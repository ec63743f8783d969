//! From the scores of a classifier to probabilities.

/// The probabilities of these scores: a softmax or, for a single label, a sigmoid. Without `is_on`, the scores
/// themselves.
pub(super) fn activate(scores: &[f64], is_on: bool) -> Vec<f64> {
    match scores {
        scores if !is_on => scores.to_vec(),
        [score] => vec![1.0 / (1.0 + (-score).exp())],
        scores => {
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
            let sum: f64 = powers.iter().sum();
            powers.into_iter().map(|power| power / sum).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_become_probabilities() {
        assert_eq!(activate(&[3.0], false), [3.0]);
        assert_eq!(activate(&[0.0], true), [0.5]);
        assert_eq!(activate(&[1000.0, 1000.0], true), [0.5, 0.5]);
        let found = activate(&[0.0, 2.0_f64.ln()], true);
        assert!((found[1] - 2.0 / 3.0).abs() < 1e-12, "{found:?}");
    }
}
