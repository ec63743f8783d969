//! Which trajectories a table shows, and in which order.

use crate::error::{Result, ViewError};
use crate::index::Index;
use crate::row::{Row, Verdicts};
use gavel_data::{FinishReason, OutcomeKind};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// What the trajectories of a table have in common. An empty list and an absent bound let all pass; bounds are included.
/// A bound of a number lets none pass that lacks the number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// The first step that recorded them.
    pub step_min: Option<u64>,
    /// The last step.
    pub step_max: Option<u64>,
    /// The lowest reward.
    pub reward_min: Option<f64>,
    /// The highest reward.
    pub reward_max: Option<f64>,
    /// The fewest tokens after the prompt.
    pub length_min: Option<u32>,
    /// The most tokens.
    pub length_max: Option<u32>,
    /// The outcomes of all plugins together, or of `plugin`.
    pub outcomes: Vec<String>,
    /// Reasons to end.
    pub finish: Vec<String>,
    /// Sources of data.
    pub sources: Vec<String>,
    /// Speakers of an agent.
    pub speakers: Vec<String>,
    /// The plugin that `outcomes` and the bounds of the score are about.
    pub plugin: Option<String>,
    /// The plugin whose score the disagreement of `plugin` is to; the reward without.
    pub against: Option<String>,
    /// The lowest score of `plugin`.
    pub score_min: Option<f64>,
    /// The highest score of `plugin`.
    pub score_max: Option<f64>,
    /// A text in their messages.
    pub text: String,
    /// Whether ASCII letters of the text match in either case.
    pub ignore_case: bool,
}

/// What rows are sorted by. Rows without the number come last; rows with the same number are in the order of steps, groups and samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Step, group and sample.
    #[default]
    Step,
    /// The reward.
    Reward,
    /// The advantage.
    Advantage,
    /// Tokens after the prompt.
    Length,
    /// Turns of the policy.
    Turns,
    /// Time of all plugins.
    Time,
    /// The score of the filter's plugin.
    Score,
    /// The difference between the score of the filter's plugin and the reward, or the score of another plugin.
    Disagreement,
}

/// A filter with its names as numbers of an index.
pub(crate) struct Resolved<'a> {
    filter: &'a Filter,
    outcomes: Vec<u8>,
    finish: Vec<u8>,
    sources: Vec<u32>,
    speakers: Vec<u32>,
    verdicts: Option<&'a Verdicts>,
    against: Option<&'a Verdicts>,
}

impl<'a> Resolved<'a> {
    /// # Errors
    /// A name is none of an outcome or of a reason to end.
    pub(crate) fn of(filter: &'a Filter, index: &'a Index) -> Result<Self> {
        let outcomes = numbers(&filter.outcomes, "outcome", &OutcomeKind::ALL.map(OutcomeKind::as_str))?;
        let finish = numbers(&filter.finish, "reason to end", &FinishReason::ALL.map(FinishReason::as_str))?;
        // A name that the index does not have matches nothing.
        let find = |names: &[String], known: &crate::row::Interned| {
            names.iter().map(|name| known.find(name).unwrap_or(u32::MAX)).collect()
        };
        Ok(Self {
            filter,
            outcomes,
            finish,
            sources: find(&filter.sources, &index.sources),
            speakers: find(&filter.speakers, &index.speakers),
            verdicts: filter.plugin.as_ref().and_then(|name| index.plugins.get(name)),
            against: filter.against.as_ref().and_then(|name| index.plugins.get(name)),
        })
    }

    /// Whether a row passes, its texts aside.
    pub(crate) fn passes(&self, number: usize, row: &Row) -> bool {
        let filter = self.filter;
        let (score, outcome) = match &filter.plugin {
            Some(_) => self.verdict(number),
            None => (f64::NAN, row.outcome),
        };
        within(&row.recorded, filter.step_min.as_ref(), filter.step_max.as_ref())
            && within(&row.reward, filter.reward_min.as_ref(), filter.reward_max.as_ref())
            && within(&row.response_length, filter.length_min.as_ref(), filter.length_max.as_ref())
            && within(&score, filter.score_min.as_ref(), filter.score_max.as_ref())
            && is_one_of(&self.outcomes, &outcome)
            && is_one_of(&self.finish, &row.finish)
            && is_one_of(&self.sources, &row.source)
            && is_one_of(&self.speakers, &row.speaker)
            && (filter.plugin.is_none() || outcome != crate::row::NONE)
    }

    pub(crate) fn verdict(&self, number: usize) -> (f64, u8) {
        let found = self.verdicts.and_then(|all| Some((*all.scores.get(number)?, *all.outcomes.get(number)?)));
        found.unwrap_or((f64::NAN, crate::row::NONE))
    }

    /// The score of the plugin that the filter's is compared with, or the reward.
    fn other(&self, number: usize, row: &Row) -> f64 {
        match &self.filter.against {
            Some(_) => self.against.and_then(|all| all.scores.get(number).copied()).unwrap_or(f64::NAN),
            None => row.reward,
        }
    }

    /// Which of two rows comes first.
    pub(crate) fn compare(&self, by: Sort, descending: bool, rows: &[Row], one: u32, other: u32) -> Ordering {
        let (Some(first), Some(second)) = (rows.get(one as usize), rows.get(other as usize)) else {
            return one.cmp(&other);
        };
        let turned = |order: Ordering| if descending { order.reverse() } else { order };
        let (key, next) = (self.key(by, one, first), self.key(by, other, second));
        let by_key = match (key.is_nan(), next.is_nan()) {
            (false, false) => turned(key.total_cmp(&next)),
            (lacks, lacks_too) => lacks.cmp(&lacks_too),
        };
        by_key.then_with(|| turned(place(first).cmp(&place(second)))).then_with(|| one.cmp(&other))
    }

    /// The number that a row is sorted by.
    fn key(&self, sort: Sort, number: u32, row: &Row) -> f64 {
        let score = || self.verdict(number as usize).0;
        match sort {
            Sort::Step => 0.0,
            Sort::Reward => row.reward,
            Sort::Advantage => row.advantage,
            Sort::Length => f64::from(row.response_length),
            Sort::Turns => f64::from(row.turns),
            Sort::Time => f64::from(row.elapsed),
            Sort::Score => score(),
            Sort::Disagreement => (score() - self.other(number as usize, row)).abs(),
        }
    }
}

fn place(row: &Row) -> (u64, u64, u64, u32, u32) {
    (row.recorded, row.step, row.group, row.sample, row.trajectory)
}

fn within<T: PartialOrd>(value: &T, least: Option<&T>, most: Option<&T>) -> bool {
    // False where the value is not a number.
    least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most)
}

fn is_one_of<T: PartialEq>(wanted: &[T], value: &T) -> bool {
    wanted.is_empty() || wanted.contains(value)
}

fn numbers(names: &[String], kind: &str, known: &[&str]) -> Result<Vec<u8>> {
    let number = |name: &String| {
        let found = known.iter().position(|known| known == name);
        found.map(|number| number as u8).ok_or_else(|| {
            ViewError::bad(format!("there is no {kind} {name:?}"), "choose one of those that the page offers")
        })
    };
    names.iter().map(number).collect()
}
