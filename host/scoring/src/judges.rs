//! The judges of a run, and the gates between them.

use crate::condition::When;
use crate::error::{ScorerError, Uncovered};
use crate::judge::Judge;
use gavel_data::Shown;
use std::sync::Arc;

/// A judge, how much it counts, and which samples it sees.
pub(crate) struct WeightedJudge {
    pub(crate) judge: Arc<dyn Judge>,
    /// The factor of its score in the reward; 0 makes it a shadow.
    pub(crate) weight: f64,
    pub(crate) when: When,
    /// The number of the judge that its condition is about.
    pub(crate) gate: Option<usize>,
}

/// The judges of a run, in the order of the configuration.
pub(crate) struct Judges(Vec<WeightedJudge>);

impl Judges {
    /// The judges of a run, whose gates [`gates`] found.
    ///
    /// # Errors
    /// One that sees groups would wait for another: a group is judged once.
    pub(crate) fn new(judges: Vec<WeightedJudge>) -> Result<Self, ScorerError> {
        let judges = Self(judges);
        for each in judges.0.iter().filter(|each| each.judge.sees_groups()) {
            if let Some(gate) = judges.gates(each).find(|gate| gate.judge.sees_groups()) {
                let (plugin, gate) = (each.judge.name().to_owned(), gate.judge.name().to_owned());
                return Err(ScorerError::GatedByJudger { plugin, gate });
            }
        }
        Ok(judges)
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &WeightedJudge> {
        self.0.iter()
    }

    /// The judge of this number.
    pub(crate) fn get(&self, number: usize) -> &WeightedJudge {
        &self.0[number]
    }

    /// The judge that the condition of `judge` is about, the one that the
    /// condition of that one is about, and so on.
    fn gates<'a>(&'a self, judge: &'a WeightedJudge) -> impl Iterator<Item = &'a WeightedJudge> {
        let gate = |of: &WeightedJudge| Some(&self.0[of.gate?]);
        std::iter::successors(gate(judge), move |judge| gate(judge))
    }

    /// Whether the rows of a data source get a reward: whether judges with a
    /// weight, and their gates, are for it.
    ///
    /// # Errors
    /// They are not, though there are judges with a weight.
    pub(crate) fn check_data_source(&self, data_source: Option<&str>) -> Result<(), Uncovered> {
        let rows = || match data_source {
            Some(source) => format!("the data source `{}`", Shown(source)),
            None => "rows without a data source".to_owned(),
        };
        let mut weighted = self.0.iter().filter(|each| each.weight != 0.0).peekable();
        if weighted.peek().is_none() {
            return Ok(());
        }
        let meant: Vec<_> = weighted.filter(|each| each.when.is_for(data_source)).collect();
        if meant.is_empty() {
            return Err(Uncovered::NoReward(rows()));
        }
        for each in meant {
            let way = || std::iter::once(each).chain(self.gates(each));
            if let Some((each, gate)) = way().zip(self.gates(each)).find(|(_, gate)| !gate.when.is_for(data_source)) {
                let (plugin, gate) = (each.judge.name().to_owned(), gate.judge.name().to_owned());
                return Err(Uncovered::GateElsewhere { plugin, gate, data_source: rows() });
            }
        }
        Ok(())
    }
}

/// For each of a run's judges, the number of the one that its condition is
/// about.
///
/// # Errors
/// A condition is about none of them, or leads back to the judge itself.
pub(crate) fn gates(judges: &[(&str, &When)]) -> Result<Vec<Option<usize>>, ScorerError> {
    let mut gates = Vec::with_capacity(judges.len());
    for (name, when) in judges {
        let gate = match &when.only_if {
            None => None,
            Some(condition) => {
                let found = judges.iter().position(|(other, _)| *other == condition.plugin);
                Some(found.ok_or_else(|| ScorerError::UnknownGate {
                    plugin: (*name).to_owned(),
                    gate: condition.plugin.clone(),
                    known: judges.iter().map(|(name, _)| (*name).to_owned()).collect(),
                })?)
            }
        };
        gates.push(gate);
    }
    for (number, (name, _)) in judges.iter().enumerate() {
        // A way that is longer than there are judges never ends.
        let way = std::iter::successors(Some(number), |at| gates[*at]);
        if way.take(judges.len() + 1).count() > judges.len() {
            return Err(ScorerError::GateCircle((*name).to_owned()));
        }
    }
    Ok(gates)
}
