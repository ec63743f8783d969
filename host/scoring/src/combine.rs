//! Several plugins' outcomes into one.

use gavel_data::{Evaluation, NotCalled, Outcome, OutcomeKind, SampleOutcome};

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
    let reward = weighted_sum(
        calls.iter().map(|call| (call.weight, call.said.as_ref().map(|said| said.outcome.score()).map_err(|why| *why))),
    );
    let missing = calls.iter().filter(|call| call.weight != 0.0).find_map(|call| missing(&calls, call));
    let (outcome, reason) = match missing {
        Some((name, outcome)) => (outcome.kind(), Some(format!("{name}: {}", outcome.reason().unwrap_or_default()))),
        None if reward.is_none() => {
            (OutcomeKind::Fault, Some("no reward with a weight is for the data source of this sample".to_owned()))
        }
        None => (OutcomeKind::Scored, None),
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

/// The sum of scores times weights, in this order. A plugin whose gate is shut
/// adds 0, one for other data sources nothing. There is no sum where a weight
/// other than 0 has no score, or where all of them are for other data sources.
pub fn weighted_sum(said: impl IntoIterator<Item = (f64, Result<Option<f64>, NotCalled>)>) -> Option<f64> {
    let (mut sum, mut elsewhere, mut counted) = (0.0, false, false);
    for (weight, said) in said.into_iter().filter(|(weight, _)| *weight != 0.0) {
        match said {
            Ok(Some(score)) => (sum, counted) = (sum + weight * score, true),
            Err(NotCalled::Gate) => counted = true,
            Err(NotCalled::DataSource) => elsewhere = true,
            Ok(None) | Err(NotCalled::NoGate) => return None,
        }
    }
    (counted || !elsewhere).then_some(sum)
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
    fn what_is_for_other_data_sources_adds_nothing() {
        let elsewhere = || Err(NotCalled::DataSource);
        let all = combine(vec![call("gsm8k", 1.0, elsewhere()), call("math", 1.0, scored(1.0))]);
        assert_eq!((all.reward, all.outcome), (Some(1.0), OutcomeKind::Scored));
        let all = combine(vec![call("gsm8k", 1.0, elsewhere()), call("shadow", 0.0, scored(1.0))]);
        assert_eq!((all.reward, all.outcome), (None, OutcomeKind::Fault), "nobody has judged it");
    }
}
