//! Histograms of scores by ranges of steps.

use crate::error::Result;
use crate::filter::{Filter, Resolved};
use crate::run::ViewedRun;
use serde::{Deserialize, Serialize};

/// The bins of a histogram.
const BINS: usize = 24;
/// The most ranges of steps.
const MOST_RANGES: usize = 24;

/// Which histogram.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistogramRequest {
    /// The plugin whose scores are counted; the reward without.
    pub plugin: Option<String>,
    /// The ranges of steps, at most 24.
    pub ranges: usize,
}

/// How many trajectories have which score, by steps.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Histogram {
    /// The lowest and the highest score.
    low: f64,
    high: f64,
    ranges: Vec<RangeCounts>,
}

/// The trajectories of a range of steps.
#[derive(Debug, Default, PartialEq, Serialize)]
struct RangeCounts {
    first: u64,
    last: u64,
    /// Trajectories without a score.
    unscored: u64,
    bins: Vec<u64>,
}

pub(crate) fn histogram(run: &ViewedRun, request: &HistogramRequest) -> Result<Histogram> {
    let index = run.index();
    let filter = Filter { plugin: request.plugin.clone(), ..Filter::default() };
    let filter = Resolved::of(&filter, &index)?;
    let score = |number: usize, reward: f64| match &request.plugin {
        Some(_) => filter.verdict(number).0,
        None => reward,
    };
    // A sample of several trajectories counts once.
    let rows = || index.rows.iter().enumerate().filter(|(_, row)| row.trajectory == 0);
    let scores = || rows().map(|(number, row)| score(number, row.reward)).filter(|score| !score.is_nan());
    let (low, high) = (scores().fold(f64::INFINITY, f64::min), scores().fold(f64::NEG_INFINITY, f64::max));
    let steps = || rows().map(|(_, row)| row.recorded);
    let (Some(first), Some(last)) = (steps().min(), steps().max()) else { return Ok(Histogram::default()) };
    let count = request.ranges.clamp(1, MOST_RANGES) as u64;
    let width = ((last - first) / count + 1).max(1);
    let mut ranges: Vec<RangeCounts> = (0..(last - first) / width + 1)
        .map(|number| RangeCounts {
            first: first + number * width,
            last: (first + (number + 1) * width - 1).min(last),
            unscored: 0,
            bins: vec![0; BINS],
        })
        .collect();
    for (number, row) in rows() {
        let Some(range) = ranges.get_mut(((row.recorded - first) / width) as usize) else { continue };
        let score = score(number, row.reward);
        if score.is_nan() {
            range.unscored += 1;
            continue;
        }
        let share = if high > low { (score - low) / (high - low) } else { 0.0 };
        let bin = ((share * BINS as f64) as usize).min(BINS - 1);
        if let Some(count) = range.bins.get_mut(bin) {
            *count += 1;
        }
    }
    let (low, high) = if low > high { (0.0, 0.0) } else { (low, high) };
    Ok(Histogram { low, high, ranges })
}
