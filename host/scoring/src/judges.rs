//! The judges of a run, and the judges that they wait for.

use crate::condition::When;
use crate::counterfactual::EmptyResponses;
use crate::error::{ScorerError, Uncovered};
use crate::judge::Judge;
use crate::waits::{Key, find_circle};
use gavel_data::Shown;
use std::sync::Arc;

/// A judge, its weight, and when it is called.
pub(crate) struct WeightedJudge {
    pub(crate) judge: Arc<dyn Judge>,
    /// The factor of its score in the reward; 0 makes it a shadow.
    pub(crate) weight: f64,
    pub(crate) when: When,
    pub(crate) waits: Waits,
}

/// The judges that a judge waits for, by number.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Waits {
    /// The judge in its condition.
    pub(crate) gate: Option<usize>,
    /// The judges whose verdicts it sees.
    pub(crate) after: Vec<usize>,
}

/// The judges of a run, in the order of the configuration.
pub(crate) struct Judges {
    all: Vec<WeightedJudge>,
    pub(crate) empty_responses: EmptyResponses,
}

impl Judges {
    /// The judges of a run, with the waits that [`waits`] found.
    ///
    /// # Errors
    /// A judge that sees samples one by one has `after`.
    pub(crate) fn new(judges: Vec<WeightedJudge>) -> Result<Self, ScorerError> {
        match judges.iter().find(|each| !each.waits.after.is_empty() && !each.judge.sees_groups()) {
            Some(each) => Err(ScorerError::AfterOfReward(each.judge.name().to_owned())),
            None => Ok(Self { all: judges, empty_responses: EmptyResponses::default() }),
        }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &WeightedJudge> {
        self.all.iter()
    }

    /// The judge of this number.
    pub(crate) fn get(&self, number: usize) -> &WeightedJudge {
        &self.all[number]
    }

    /// Whether calls of judge `number`, or of judges that it waits for, reach a model, a server or a clock.
    pub(crate) fn reaches_what_changes(&self, number: usize) -> bool {
        let each = self.get(number);
        each.judge.reaches_what_changes() || each.waits.after.iter().any(|other| self.reaches_what_changes(*other))
    }

    /// The gate of `judge`, the gate of this gate, and so on.
    fn gates<'a>(&'a self, judge: &'a WeightedJudge) -> impl Iterator<Item = &'a WeightedJudge> {
        let gate = |of: &WeightedJudge| Some(&self.all[of.waits.gate?]);
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
        let mut weighted = self.all.iter().filter(|each| each.weight != 0.0).peekable();
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

/// For each of a run's judges, the judges that it waits for.
///
/// # Errors
/// A condition or a list names an unknown judge, or judges wait for each other.
pub(crate) fn waits(judges: &[(&str, &When)]) -> Result<Vec<Waits>, ScorerError> {
    let number = |plugin: &str, key: Key, name: &str| {
        judges.iter().position(|(other, _)| *other == name).ok_or_else(|| {
            let known = judges.iter().map(|(name, _)| (*name).to_owned()).collect();
            let (plugin, name) = (plugin.to_owned(), name.to_owned());
            match key {
                Key::OnlyIf => ScorerError::UnknownGate { plugin, gate: name, known },
                Key::After => ScorerError::UnknownAfter { plugin, name, known },
            }
        })
    };
    let mut all = Vec::with_capacity(judges.len());
    for (plugin, when) in judges {
        let mut waits = Waits::default();
        for (key, name) in when.waits_for() {
            let number = number(plugin, key, name)?;
            match key {
                Key::OnlyIf => waits.gate = Some(number),
                Key::After => waits.after.push(number),
            }
        }
        all.push(waits);
    }
    match find_circle(judges) {
        Some(circle) => Err(ScorerError::Circle(circle)),
        None => Ok(all),
    }
}
