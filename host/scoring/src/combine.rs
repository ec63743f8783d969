//! Combines the answers of several judges into one outcome.

use crate::reward::{NoReward, NoScore, Term, lowest_sum, weighted_sum};
use gavel_data::{Evaluation, MOST_REWARD, NotCalled, Outcome, OutcomeKind, SampleOutcome};

/// A judge's answer for a sample: its evaluation, or why it was not called.
pub(crate) type Answer = Result<Evaluation, NotCalled>;

/// A judge of a run, and its answer for a sample.
pub(crate) struct JudgeCall<'a> {
    /// Its name in the run.
    pub(crate) name: &'a str,
    /// The factor of its score in the reward.
    pub(crate) weight: f64,
    /// The judge in its gate's condition.
    pub(crate) gate: Option<&'a str>,
    /// The range of its scores, where it declares one.
    pub(crate) range: Option<(f64, f64)>,
    pub(crate) answer: Answer,
}

impl<'a> JudgeCall<'a> {
    fn term(&self) -> Term<'a> {
        let score = match &self.answer {
            Ok(Evaluation { outcome, caused_by, .. }) => {
                let budget = match outcome {
                    Outcome::OutOfBudget { which, .. } => Some(*which),
                    _ => None,
                };
                outcome.score().ok_or(NoScore::of(outcome.kind(), budget, *caused_by))
            }
            Err(why) => Err(NoScore::NotCalled(*why)),
        };
        Term { name: self.name, weight: self.weight, gate: self.gate, score, range: self.range }
    }
}

/// The outcome of a sample: the weighted sum of the scores, where there is one
/// ([`weighted_sum`]), and each judge's answer.
pub(crate) fn combine(calls: Vec<JudgeCall<'_>>) -> SampleOutcome {
    let terms: Vec<Term<'_>> = calls.iter().map(JudgeCall::term).collect();
    let (reward, outcome, reason) = match weighted_sum(&terms) {
        Ok(reward) => (Some(reward), OutcomeKind::Scored, None),
        Err(none) => (None, none.kind().unwrap_or(OutcomeKind::Fault), reason(&none, &terms, &calls)),
    };
    let lowest_reward = if reward.is_none() { lowest_sum(&terms, outcome) } else { None };
    let mut all = SampleOutcome { reward, reason, lowest_reward, ..SampleOutcome::without_calls(outcome, "") };
    for call in calls {
        match call.answer {
            Ok(evaluation) => {
                all.plugins.insert(call.name.to_owned(), evaluation);
            }
            Err(why) => {
                all.not_called.insert(call.name.to_owned(), why);
            }
        }
    }
    all
}

/// Why there is no reward, in words.
fn reason(none: &NoReward<'_>, terms: &[Term<'_>], calls: &[JudgeCall<'_>]) -> Option<String> {
    match none {
        NoReward::Missing(missing) => {
            let (name, _) = missing.as_ref()?;
            let evaluation = calls.iter().find(|call| call.name == *name)?.answer.as_ref().ok()?;
            Some(format!("{name}: {}", evaluation.outcome.reason().unwrap_or_default()))
        }
        NoReward::Elsewhere => Some("no reward with a weight is for the data source of this sample".to_owned()),
        NoReward::TooLarge(sum) => {
            let weighted = terms.iter().filter(|term| term.weight != 0.0);
            let products = weighted.filter_map(|Term { name, weight, score, .. }| {
                Some(format!("{name} ({:e} times {weight:e})", score.as_ref().ok()?))
            });
            let (products, most) = (products.collect::<Vec<_>>().join(" and "), MOST_REWARD);
            Some(format!("the reward is {sum:e}, which is not from -{most:e} to {most:e}: it is the sum of {products}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{Blame, Outcome, Score};

    fn call(name: &'static str, weight: f64, answer: Answer) -> JudgeCall<'static> {
        JudgeCall { name, weight, gate: None, range: None, answer }
    }

    fn scored(value: f64) -> Answer {
        Ok(Evaluation::without_call(Outcome::Scored(Score { value, ..Score::default() })))
    }

    fn crashed() -> Answer {
        Ok(Evaluation::without_call(Outcome::Fault { whose: Blame::Plugin, what: "trap".into() }))
    }

    #[test]
    fn the_reward_is_the_weighted_sum() {
        let all = combine(vec![call("a", 2.0, scored(1.0)), call("b", -0.5, scored(3.0))]);
        assert_eq!((all.reward, all.outcome), (Some(0.5), OutcomeKind::Scored));
    }

    #[test]
    fn a_crash_is_not_a_zero() {
        let all = combine(vec![call("a", 1.0, scored(1.0)), call("b", 0.1, crashed())]);
        assert_eq!((all.reward, all.outcome), (None, OutcomeKind::Fault));
        assert_eq!(all.reason.as_deref(), Some("b: trap"));
    }

    #[test]
    fn a_shadow_that_crashes_costs_nothing() {
        let all = combine(vec![call("a", 1.0, scored(1.0)), call("shadow", 0.0, crashed())]);
        assert_eq!((all.reward, all.outcome), (Some(1.0), OutcomeKind::Scored));
        assert_eq!(all.plugins["shadow"].outcome.kind(), OutcomeKind::Fault);
    }

    #[test]
    fn a_shut_gate_adds_zero_and_says_so() {
        let all = combine(vec![call("format", 0.5, scored(-1.0)), call("math", 1.0, Err(NotCalled::Gate))]);
        assert_eq!((all.reward, all.outcome), (Some(-0.5), OutcomeKind::Scored));
        assert_eq!((all.plugins.len(), all.not_called["math"]), (1, NotCalled::Gate));
        let all = combine(vec![call("format", 0.0, scored(0.0)), call("math", 1.0, Err(NotCalled::Gate))]);
        assert_eq!(all.reward, Some(0.0), "the only weight is behind a shut gate");
    }

    #[test]
    fn a_gate_that_crashes_is_no_shut_gate() {
        let gated = |name, gate, weight| JudgeCall { gate: Some(gate), ..call(name, weight, Err(NotCalled::NoGate)) };
        let all = combine(vec![call("format", 0.0, crashed()), gated("a", "format", 1.0), gated("b", "a", 1.0)]);
        assert_eq!((all.reward, all.outcome), (None, OutcomeKind::Fault));
        assert_eq!(all.reason.as_deref(), Some("format: trap"));
        let all = combine(vec![call("x", 1.0, scored(1.0)), call("format", 0.0, crashed()), gated("b", "format", 0.0)]);
        assert_eq!((all.reward, all.outcome), (Some(1.0), OutcomeKind::Scored), "a shadow behind a shadow");
    }

    #[test]
    fn a_sum_that_nothing_can_be_learned_from_is_a_fault_that_names_the_plugins() {
        let most = f64::MAX;
        for (calls, sum, terms) in [
            (
                vec![call("a", 1.0, scored(most)), call("b", 1.0, scored(most))],
                "inf",
                "a (1.7976931348623157e308 times 1e0) and b (1.7976931348623157e308 times 1e0)",
            ),
            (
                vec![call("a", -1e300, scored(1e300)), call("shadow", 0.0, scored(1.0))],
                "-inf",
                "a (1e300 times -1e300)",
            ),
            (
                vec![call("a", f64::INFINITY, scored(1.0)), call("b", f64::NEG_INFINITY, scored(1.0))],
                "NaN",
                "a (1e0 times inf) and b (1e0 times -inf)",
            ),
            (vec![call("a", f64::NAN, scored(1.0)), call("b", 1.0, Err(NotCalled::Gate))], "NaN", "a (1e0 times NaN)"),
            (vec![call("a", 2.0, scored(1e30))], "2e30", "a (1e30 times 2e0)"),
        ] {
            let all = combine(calls);
            assert_eq!((all.reward, all.outcome), (None, OutcomeKind::Fault));
            let expected = format!("the reward is {sum}, which is not from -1e30 to 1e30: it is the sum of {terms}");
            assert_eq!(all.reason.as_deref(), Some(expected.as_str()));
        }
        assert_eq!(combine(vec![call("a", -1.0, scored(1e30))]).reward, Some(-1e30));
    }

    #[test]
    fn what_is_for_other_data_sources_adds_nothing() {
        let elsewhere = || Err(NotCalled::DataSource);
        let all = combine(vec![call("gsm8k", 1.0, elsewhere()), call("math", 1.0, scored(1.0))]);
        assert_eq!((all.reward, all.outcome), (Some(1.0), OutcomeKind::Scored));
        let all = combine(vec![call("gsm8k", 1.0, elsewhere()), call("shadow", 0.0, scored(1.0))]);
        assert_eq!((all.reward, all.outcome), (None, OutcomeKind::Fault), "nobody has judged it");
    }
}
