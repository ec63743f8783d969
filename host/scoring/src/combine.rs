//! Several plugins' outcomes into one.

use gavel_data::{Evaluation, MOST_REWARD, NotCalled, Outcome, OutcomeKind, SampleOutcome};

/// What came of a plugin of a run for a sample.
pub struct PluginCall<'a> {
    /// Its name in the run.
    pub name: &'a str,
    /// The factor of its score in the reward.
    pub weight: f64,
    /// The plugin that its gate looks at.
    pub gate: Option<&'a str>,
    /// What it said, or why it was not asked.
    pub said: Result<Evaluation, NotCalled>,
}

/// The weighted sum of the scores. There is none unless every plugin with a
/// weight other than 0 scored, or was rightly not called: what is missing is
/// never taken for a 0. A plugin of weight 0 is a shadow: it is recorded and
/// decides nothing, unless another is gated on it.
pub fn combine(calls: Vec<PluginCall<'_>>) -> SampleOutcome {
    let sum = weighted_sum(
        calls.iter().map(|call| (call.weight, call.said.as_ref().map(|said| said.outcome.score()).map_err(|why| *why))),
    );
    let mut weighted = calls.iter().filter(|call| call.weight != 0.0);
    let (reward, outcome, reason) = match sum {
        Ok(reward) => (Some(reward), OutcomeKind::Scored, None),
        Err(NoReward::Missing) => {
            let missing = weighted.find_map(|call| missing(&calls, call));
            let kind = missing.map_or(OutcomeKind::Fault, |(_, outcome)| outcome.kind());
            let reason = missing.map(|(name, outcome)| format!("{name}: {}", outcome.reason().unwrap_or_default()));
            (None, kind, reason)
        }
        Err(NoReward::Elsewhere) => {
            let reason = "no reward with a weight is for the data source of this sample";
            (None, OutcomeKind::Fault, Some(reason.to_owned()))
        }
        Err(NoReward::TooLarge(sum)) => {
            let terms = weighted.filter_map(|call| {
                let score = call.said.as_ref().ok()?.outcome.score()?;
                Some(format!("{} ({score:e} times {:e})", call.name, call.weight))
            });
            let terms = terms.collect::<Vec<_>>().join(" and ");
            let most = MOST_REWARD;
            let reason =
                format!("the reward is {sum:e}, which is not from -{most:e} to {most:e}: it is the sum of {terms}");
            (None, OutcomeKind::Fault, Some(reason))
        }
    };
    let mut all =
        SampleOutcome { reward, outcome, reason, plugins: Default::default(), not_called: Default::default() };
    for call in calls {
        match call.said {
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

/// The outcome for the want of which `call` has no score: its own, or that of
/// its gate.
fn missing<'a>(calls: &'a [PluginCall<'_>], call: &'a PluginCall<'_>) -> Option<(&'a str, &'a Outcome)> {
    match &call.said {
        Ok(evaluation) => (evaluation.outcome.score().is_none()).then_some((call.name, &evaluation.outcome)),
        // Gates lead to no circle: a scorer with one does not start.
        Err(NotCalled::NoGate) => missing(calls, calls.iter().find(|other| Some(other.name) == call.gate)?),
        Err(NotCalled::Gate | NotCalled::DataSource) => None,
    }
}

/// Why a sample has no reward.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoReward {
    /// A plugin with a weight other than 0 gave no score.
    Missing,
    /// All plugins with a weight are for other data sources.
    Elsewhere,
    /// The sum is not finite, or larger than [`MOST_REWARD`].
    TooLarge(f64),
}

/// The sum of scores times weights, in this order. A plugin whose gate is shut
/// adds 0, one for other data sources nothing.
///
/// # Errors
/// There is none, or none that can be learned from.
pub fn weighted_sum(said: impl IntoIterator<Item = (f64, Result<Option<f64>, NotCalled>)>) -> Result<f64, NoReward> {
    let (mut sum, mut elsewhere, mut counted) = (0.0, false, false);
    for (weight, said) in said.into_iter().filter(|(weight, _)| *weight != 0.0) {
        match said {
            Ok(Some(score)) => (sum, counted) = (sum + weight * score, true),
            Err(NotCalled::Gate) => counted = true,
            Err(NotCalled::DataSource) => elsewhere = true,
            Ok(None) | Err(NotCalled::NoGate) => return Err(NoReward::Missing),
        }
    }
    if elsewhere && !counted {
        return Err(NoReward::Elsewhere);
    }
    // What is not a number is not in the range either.
    if (-MOST_REWARD..=MOST_REWARD).contains(&sum) { Ok(sum) } else { Err(NoReward::TooLarge(sum)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{Blame, Score};

    fn call(name: &'static str, weight: f64, said: Result<Evaluation, NotCalled>) -> PluginCall<'static> {
        PluginCall { name, weight, gate: None, said }
    }

    fn scored(value: f64) -> Result<Evaluation, NotCalled> {
        Ok(Evaluation::without_call(Outcome::Scored(Score { value, ..Score::default() })))
    }

    fn crashed() -> Result<Evaluation, NotCalled> {
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
        let gated = |name, gate, weight| PluginCall { gate: Some(gate), ..call(name, weight, Err(NotCalled::NoGate)) };
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
