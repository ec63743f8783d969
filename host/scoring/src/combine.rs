//! Several plugins' outcomes into one.

use gavel_data::{Evaluation, OutcomeKind, SampleOutcome};

/// The weighted sum of the scores. There is none unless every plugin with a
/// weight other than 0 scored: what is missing is never taken for a 0. A
/// plugin of weight 0 is a shadow: it is recorded and decides nothing.
pub fn combine(calls: Vec<(&str, f64, Evaluation)>) -> SampleOutcome {
    let missing = calls
        .iter()
        .filter(|(_, weight, _)| *weight != 0.0)
        .find(|(_, _, evaluation)| evaluation.outcome.kind() != OutcomeKind::Scored)
        .map(|(name, _, evaluation)| {
            let reason = evaluation.outcome.reason().unwrap_or_default();
            (evaluation.outcome.kind(), format!("{name}: {reason}"))
        });
    let reward = weighted_sum(calls.iter().map(|(_, weight, evaluation)| (*weight, evaluation.outcome.score())));
    let plugins = calls.into_iter().map(|(name, _, evaluation)| (name.to_owned(), evaluation)).collect();
    match missing {
        None => SampleOutcome { reward, outcome: OutcomeKind::Scored, reason: None, plugins },
        Some((outcome, reason)) => SampleOutcome { reward, outcome, reason: Some(reason), plugins },
    }
}

/// The sum of scores times weights, in this order; none where a weight other
/// than 0 has no score.
pub fn weighted_sum(scores: impl IntoIterator<Item = (f64, Option<f64>)>) -> Option<f64> {
    scores.into_iter().try_fold(0.0, |sum, (weight, score)| match score {
        Some(score) => Some(sum + weight * score),
        None if weight == 0.0 => Some(sum),
        None => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{Blame, Outcome, Score};

    fn scored(value: f64) -> Evaluation {
        Evaluation::without_call(Outcome::Scored(Score { value, ..Score::default() }))
    }

    fn crashed() -> Evaluation {
        Evaluation::without_call(Outcome::Fault { whose: Blame::Plugin, what: "trap".into() })
    }

    #[test]
    fn the_reward_is_the_weighted_sum() {
        let all = combine(vec![("a", 2.0, scored(1.0)), ("b", -0.5, scored(3.0))]);
        assert_eq!((all.reward, all.outcome), (Some(0.5), OutcomeKind::Scored));
    }

    #[test]
    fn a_crash_is_not_a_zero() {
        let all = combine(vec![("a", 1.0, scored(1.0)), ("b", 0.1, crashed())]);
        assert_eq!((all.reward, all.outcome), (None, OutcomeKind::Fault));
        assert_eq!(all.reason.as_deref(), Some("b: trap"));
    }

    #[test]
    fn a_shadow_that_crashes_costs_nothing() {
        let all = combine(vec![("a", 1.0, scored(1.0)), ("shadow", 0.0, crashed())]);
        assert_eq!((all.reward, all.outcome), (Some(1.0), OutcomeKind::Scored));
        assert_eq!(all.plugins["shadow"].outcome.kind(), OutcomeKind::Fault);
    }
}
