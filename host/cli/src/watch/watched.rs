//! What stands in the folder of a run that is watched, read again as it grows.

use super::curve::Curve;
use super::step_samples::StepSamples;
use crate::outcomes::{Counts, join};
use anyhow::Result;
use gavel_data::OutcomeKind;
use gavel_runs::{Metrics, MetricsFollower, Overview, RunState};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time between two looks into the folder.
pub const PERIOD: Duration = Duration::from_millis(500);
/// The metrics that are shown first, where a run has them.
const FIRST: [&str; 12] = [
    "val/accuracy",
    "reward/mean",
    "loss",
    "response_length/mean",
    "response_length/clip_ratio",
    "frac_reward_zero_std",
    "entropy",
    "kl",
    "grad_norm",
    "learning_rate",
    "perf/tokens_per_second",
    "time/step",
];
/// Steps over which the time left is estimated.
const RECENT: usize = 16;

/// A run that is watched.
pub struct Watched {
    run: PathBuf,
    follower: MetricsFollower,
    /// How far it is.
    pub overview: Overview,
    /// Its metrics by name.
    pub curves: BTreeMap<String, Curve>,
    /// The outcomes of each reward since the first step, and in the last one.
    pub outcomes: BTreeMap<String, [Counts; 2]>,
    /// The samples of the newest step that recorded some.
    pub samples: Option<StepSamples>,
    /// The moments at which the last steps were logged, in seconds since 1970.
    logged: VecDeque<f64>,
    /// The lines of its metrics that cannot be read.
    pub damaged: usize,
}

impl Watched {
    /// A run of which only how far it is was read.
    ///
    /// # Errors
    /// It is no run, or one of its files cannot be read.
    pub fn open(run: &Path) -> Result<Self> {
        Ok(Self {
            run: run.to_owned(),
            follower: MetricsFollower::new(run),
            overview: Overview::read(run)?,
            curves: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            samples: None,
            logged: VecDeque::new(),
            damaged: 0,
        })
    }

    /// Its folder.
    pub fn run(&self) -> &Path {
        &self.run
    }

    /// Reads what was added since the last call, and returns the new steps.
    ///
    /// # Errors
    /// One of its files cannot be read.
    pub fn read_new(&mut self) -> Result<Vec<Metrics>> {
        // First: what a run writes before its end is read after the end is seen.
        self.overview = Overview::read(&self.run)?;
        let new = self.follower.read_new()?;
        if new.is_anew {
            (self.curves, self.outcomes, self.logged, self.damaged) = Default::default();
        }
        self.damaged += new.damaged.len();
        for metrics in &new.steps {
            self.add(metrics);
        }
        if !new.steps.is_empty() || self.samples.is_none() {
            self.samples = StepSamples::newest(&self.run)?;
        }
        Ok(new.steps)
    }

    fn add(&mut self, metrics: &Metrics) {
        let step = metrics.get("step").unwrap_or_default();
        if let Some(moment) = metrics.get("time/timestamp") {
            self.logged.push_back(moment);
            if self.logged.len() > RECENT {
                self.logged.pop_front();
            }
        }
        for [_, last] in self.outcomes.values_mut() {
            last.clear();
        }
        for (name, value) in metrics.as_json() {
            let Some(value) = value.as_f64() else { continue };
            if let Some((reward, kind)) = outcome(name) {
                let [all, last] = self.outcomes.entry(reward.to_owned()).or_default();
                if value > 0.0 {
                    let count = Counts::from([(kind.as_str(), value as u64)]);
                    join(all, count.clone());
                    join(last, count);
                }
            } else if name != "step" && name != "time/timestamp" {
                match self.curves.get_mut(name) {
                    Some(curve) => curve.push(step, value),
                    None => drop(self.curves.insert(name.clone(), Curve::new(step, value))),
                }
            }
        }
    }

    /// The names of its metrics, the most important first.
    pub fn names(&self) -> Vec<&str> {
        let first = FIRST.into_iter().filter(|name| self.curves.contains_key(*name));
        first.chain(self.curves.keys().map(String::as_str).filter(|name| !FIRST.contains(name))).collect()
    }

    /// The seconds until its last step, at the speed of the last steps; `None` if it is not running or has no last step.
    pub fn seconds_left(&self) -> Option<f64> {
        let left = self.overview.steps?.saturating_sub(self.overview.step?);
        let (first, last) = (self.logged.front()?, self.logged.back()?);
        let between = (last - first) / self.logged.len().checked_sub(1).filter(|steps| *steps > 0)? as f64;
        (self.overview.state == RunState::Running).then_some(left as f64 * between.max(0.0))
    }
}

/// The reward and the outcome that a metric of training counts.
fn outcome(name: &str) -> Option<(&str, OutcomeKind)> {
    let (reward, kind) = name.strip_prefix("outcome/")?.rsplit_once('/')?;
    Some((reward, OutcomeKind::ALL.into_iter().find(|known| known.as_str() == kind)?))
}
