//! The reward of a sample: the one place that says what a missing score means.

use gavel_data::{MOST_REWARD, NotCalled, OutcomeKind};

/// What a judge of a run adds to the reward of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term<'a> {
    /// Its name in the run.
    pub(crate) name: &'a str,
    /// The factor of its score; 0 makes it a shadow.
    pub(crate) weight: f64,
    /// The judge that its gate looks at.
    pub(crate) gate: Option<&'a str>,
    pub(crate) score: Result<f64, NoScore>,
}

/// Why a judge has no score.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NoScore {
    /// It was called, and this came of it.
    Outcome(OutcomeKind),
    /// It was not called.
    NotCalled(NotCalled),
    /// Nothing is known of it.
    Unknown,
}

/// Why a sample has no reward.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum NoReward<'a> {
    /// A judge with a weight other than 0 has no score: for want of that of
    /// this judge, which had this outcome, where that is known.
    Missing(Option<(&'a str, OutcomeKind)>),
    /// All judges with a weight are for other data sources.
    Elsewhere,
    /// The sum is not finite, or larger than [`MOST_REWARD`].
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

/// The sum of scores times weights, in this order. There is none unless every
/// judge with a weight other than 0 scored, or was rightly not called: what is
/// missing is never taken for a 0. A judge whose gate is shut adds 0, one for
/// other data sources nothing. One of weight 0 is a shadow: it is recorded and
/// decides nothing, unless another is gated on it.
///
/// # Errors
/// There is none, or none that can be learned from.
pub(crate) fn weighted_sum<'a>(terms: &[Term<'a>]) -> Result<f64, NoReward<'a>> {
    let weighted = || terms.iter().filter(|term| term.weight != 0.0);
    let (mut sum, mut elsewhere, mut counted) = (0.0, false, false);
    for term in weighted() {
        match term.score {
            Ok(score) => (sum, counted) = (sum + term.weight * score, true),
            Err(NoScore::NotCalled(NotCalled::Gate)) => counted = true,
            Err(NoScore::NotCalled(NotCalled::DataSource)) => elsewhere = true,
            Err(NoScore::Outcome(_) | NoScore::NotCalled(NotCalled::NoGate) | NoScore::Unknown) => {
                return Err(NoReward::Missing(weighted().find_map(|term| missing(terms, term))));
            }
        }
    }
    if elsewhere && !counted {
        return Err(NoReward::Elsewhere);
    }
    // What is not a number is not in the range either.
    if (-MOST_REWARD..=MOST_REWARD).contains(&sum) { Ok(sum) } else { Err(NoReward::TooLarge(sum)) }
}

/// The judge for the want of whose score `term` has none: its own, or its gate.
fn missing<'a>(terms: &[Term<'a>], term: &Term<'a>) -> Option<(&'a str, OutcomeKind)> {
    match term.score {
        Err(NoScore::Outcome(kind)) => Some((term.name, kind)),
        // Gates lead to no circle: a scorer with one does not start, a recording with one is not read.
        Err(NoScore::NotCalled(NotCalled::NoGate)) => {
            missing(terms, terms.iter().find(|other| Some(other.name) == term.gate)?)
        }
        _ => None,
    }
}
