//! The reward of a sample. Only this module decides what a missing score means.

use gavel_data::{Budget, CausedBy, MOST_REWARD, NotCalled, OutcomeKind};

/// The term of a judge in the reward of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term<'a> {
    /// Its name in the run.
    pub(crate) name: &'a str,
    /// The factor of its score; 0 makes it a shadow.
    pub(crate) weight: f64,
    /// The judge in its gate's condition.
    pub(crate) gate: Option<&'a str>,
    pub(crate) score: Result<f64, NoScore>,
    /// The range of its scores, where it declares one.
    pub(crate) range: Option<(f64, f64)>,
}

/// Why a judge has no score.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoScore {
    /// It was called, with this outcome.
    Outcome(OutcomeKind),
    /// It was called, and the response exhausted its budget of computation.
    Exhausted,
    /// It was called, and the response made it abstain.
    Provoked,
    /// It was not called.
    NotCalled(NotCalled),
    /// Nothing is known of it.
    Unknown,
}

/// Why a sample has no reward.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NoReward<'a> {
    /// A judge with a weight other than 0 has no score. Where it is known, the
    /// judge that failed (itself or its gate) and its outcome.
    Missing(Option<(&'a str, OutcomeKind)>),
    /// All judges with a weight are for other data sources.
    Elsewhere,
    /// The sum is not finite, or its absolute value is larger than [`MOST_REWARD`].
    TooLarge(f64),
}

impl NoReward<'_> {
    /// The outcome that the sample counts as, where it is known.
    pub(crate) fn kind(&self) -> Option<OutcomeKind> {
        match self {
            Self::Missing(missing) => missing.map(|(_, kind)| kind),
            Self::Elsewhere | Self::TooLarge(_) => Some(OutcomeKind::Fault),
        }
    }
}

/// The sum of scores times weights, in this order. Every judge with a weight
/// other than 0 must have scored, or must not have been called by its conditions:
/// a missing score never counts as 0. A judge whose gate is shut adds 0, and a
/// judge for other data sources adds nothing. A judge of weight 0 is a shadow: it
/// is recorded and decides nothing, unless it is the gate of another.
///
/// # Errors
/// There is no sum, or its absolute value is too large to train on.
pub(crate) fn weighted_sum<'a>(terms: &[Term<'a>]) -> Result<f64, NoReward<'a>> {
    let weighted = || terms.iter().filter(|term| term.weight != 0.0);
    let (mut sum, mut elsewhere, mut counted) = (0.0, false, false);
    for term in weighted() {
        match term.score {
            Ok(score) => (sum, counted) = (sum + term.weight * score, true),
            Err(NoScore::NotCalled(NotCalled::Gate)) => counted = true,
            Err(NoScore::NotCalled(NotCalled::DataSource)) => elsewhere = true,
            Err(_) => {
                return Err(NoReward::Missing(weighted().find_map(|term| missing(terms, term))));
            }
        }
    }
    if elsewhere && !counted {
        return Err(NoReward::Elsewhere);
    }
    // NaN is not in the range either.
    if (-MOST_REWARD..=MOST_REWARD).contains(&sum) { Ok(sum) } else { Err(NoReward::TooLarge(sum)) }
}

/// The judge whose failure leaves `term` without a score: the judge of the term, or its gate.
fn missing<'a>(terms: &[Term<'a>], term: &Term<'a>) -> Option<(&'a str, OutcomeKind)> {
    match term.score {
        Err(NoScore::Outcome(kind)) => Some((term.name, kind)),
        Err(NoScore::Exhausted) => Some((term.name, OutcomeKind::OutOfBudget)),
        Err(NoScore::Provoked) => Some((term.name, OutcomeKind::Abstained)),
        // Gates have no circle: a scorer with one does not start, and a recording with one is not read.
        Err(NoScore::NotCalled(NotCalled::NoGate)) => {
            missing(terms, terms.iter().find(|other| Some(other.name) == term.gate)?)
        }
        _ => None,
    }
}

/// The sum in which each judge that the response left without a score adds the least that it can, so that a response
/// does not gain by breaking its judge. `kind` is the outcome of these judges: the response exhausted them, or made them
/// abstain. A judge behind such a gate adds the least that it can or 0, whichever is less, since a shut gate adds 0.
/// `None` if another score is missing, or if such a judge has no range.
pub(crate) fn lowest_sum(terms: &[Term<'_>], kind: OutcomeKind) -> Option<f64> {
    let mut sum = 0.0;
    for term in terms.iter().filter(|term| term.weight != 0.0) {
        sum += match term.score {
            Ok(score) => term.weight * score,
            Err(NoScore::NotCalled(NotCalled::Gate | NotCalled::DataSource)) => 0.0,
            Err(why) if why.is_caused(kind) => term.least()?,
            Err(NoScore::NotCalled(NotCalled::NoGate)) if is_behind_caused(terms, term, kind) => term.least()?.min(0.0),
            Err(_) => return None,
        };
    }
    (-MOST_REWARD..=MOST_REWARD).contains(&sum).then_some(sum)
}

/// Whether the response left the gate of `term`, or a gate of that gate, without a score.
fn is_behind_caused(terms: &[Term<'_>], term: &Term<'_>, kind: OutcomeKind) -> bool {
    let gate = terms.iter().find(|other| Some(other.name) == term.gate);
    gate.is_some_and(|gate| match gate.score {
        Err(NoScore::NotCalled(NotCalled::NoGate)) => is_behind_caused(terms, gate, kind),
        Err(why) => why.is_caused(kind),
        Ok(_) => false,
    })
}

impl Term<'_> {
    /// The least that it can add to the sum, if its scores have a range.
    fn least(&self) -> Option<f64> {
        let (min, max) = self.range?;
        Some((self.weight * min).min(self.weight * max))
    }
}

impl NoScore {
    /// The reason for the missing score of a call with this outcome.
    pub(crate) fn of(outcome: OutcomeKind, budget: Option<Budget>, caused_by: Option<CausedBy>) -> Self {
        match (outcome, budget, caused_by) {
            (_, Some(budget), Some(CausedBy::Response)) if budget.is_computation() => Self::Exhausted,
            (OutcomeKind::Abstained, _, Some(CausedBy::Response)) => Self::Provoked,
            _ => Self::Outcome(outcome),
        }
    }

    /// Whether the response left the judge without a score, with this outcome.
    fn is_caused(self, kind: OutcomeKind) -> bool {
        match self {
            Self::Exhausted => kind == OutcomeKind::OutOfBudget,
            Self::Provoked => kind == OutcomeKind::Abstained,
            Self::Outcome(_) | Self::NotCalled(_) | Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: OutcomeKind = OutcomeKind::OutOfBudget;

    const fn term(name: &'static str, weight: f64, score: Result<f64, NoScore>, range: (f64, f64)) -> Term<'static> {
        Term { name, weight, gate: None, score, range: Some(range) }
    }

    #[test]
    fn an_exhausted_judge_adds_the_least_that_it_can() {
        let scored = term("format", 0.5, Ok(1.0), (0.0, 1.0));
        let exhausted = |weight| term("math", weight, Err(NoScore::Exhausted), (-1.0, 3.0));
        assert_eq!(lowest_sum(&[scored, exhausted(2.0)], KIND), Some(0.5 - 2.0));
        // The other end of the range, where more is worse.
        assert_eq!(lowest_sum(&[scored, exhausted(-2.0)], KIND), Some(0.5 - 6.0));
        assert_eq!(lowest_sum(&[scored, exhausted(0.0)], KIND), Some(0.5));
        assert_eq!(lowest_sum(&[scored, Term { range: None, ..exhausted(2.0) }], KIND), None);
        for missing in [NoScore::Outcome(OutcomeKind::Fault), NoScore::Unknown, NoScore::NotCalled(NotCalled::NoGate)] {
            assert_eq!(lowest_sum(&[exhausted(2.0), term("other", 1.0, Err(missing), (0.0, 1.0))], KIND), None);
        }
        assert_eq!(lowest_sum(&[exhausted(1e30), term("other", 1e30, Ok(-1.0), (-1.0, 0.0))], KIND), None);
    }

    #[test]
    fn what_is_behind_an_exhausted_gate_adds_no_more_than_a_shut_one() {
        let gate = |weight| term("gate", weight, Err(NoScore::Exhausted), (0.0, 1.0));
        let behind = |name, gate, weight, range| Term {
            gate: Some(gate),
            ..term(name, weight, Err(NoScore::NotCalled(NotCalled::NoGate)), range)
        };
        let first = behind("first", "gate", 1.0, (-2.0, 1.0));
        assert_eq!(lowest_sum(&[gate(0.0), first], KIND), Some(-2.0));
        assert_eq!(lowest_sum(&[gate(-1.0), first, behind("second", "first", 1.0, (1.0, 2.0))], KIND), Some(-3.0));
        assert_eq!(lowest_sum(&[gate(1.0), Term { range: None, ..first }], KIND), None);
    }

    #[test]
    fn only_what_the_response_computes_is_held_against_it() {
        let is_exhausted = |budget, caused_by| {
            matches!(NoScore::of(OutcomeKind::OutOfBudget, Some(budget), Some(caused_by)), NoScore::Exhausted)
        };
        let held: Vec<Budget> =
            Budget::ALL.into_iter().filter(|each| is_exhausted(*each, CausedBy::Response)).collect();
        assert_eq!(held, [Budget::Cpu, Budget::Memory, Budget::Stack, Budget::Fuel]);
        assert!(Budget::ALL.into_iter().all(|each| !is_exhausted(each, CausedBy::Plugin)));
        assert!(Budget::ALL.into_iter().all(|each| !is_exhausted(each, CausedBy::Unknown)));
        assert!(matches!(NoScore::of(OutcomeKind::Fault, None, Some(CausedBy::Response)), NoScore::Outcome(_)));
    }

    #[test]
    fn a_judge_that_the_response_makes_abstain_is_of_a_kind_of_its_own() {
        let of = |caused_by| NoScore::of(OutcomeKind::Abstained, None, Some(caused_by));
        let provoked = term("judge", 2.0, Err(of(CausedBy::Response)), (-1.0, 1.0));
        let scored = term("format", 0.5, Ok(1.0), (0.0, 1.0));
        assert_eq!(lowest_sum(&[scored, provoked], OutcomeKind::Abstained), Some(0.5 - 2.0));
        assert_eq!(lowest_sum(&[scored, provoked], KIND), None);
        // Each kind has its own `on_outcome`, so that both together have no sum.
        let exhausted = term("math", 1.0, Err(NoScore::Exhausted), (0.0, 1.0));
        for kind in [KIND, OutcomeKind::Abstained] {
            assert_eq!(lowest_sum(&[exhausted, provoked], kind), None);
        }
        for caused_by in [CausedBy::Plugin, CausedBy::Unknown] {
            let abstained = Term { score: Err(of(caused_by)), ..provoked };
            assert_eq!(lowest_sum(&[scored, abstained], OutcomeKind::Abstained), None);
        }
    }
}
