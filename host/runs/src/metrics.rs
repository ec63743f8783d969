//! The numbers of a step. Numbers that depend on the clock have their own names (`time/*`, `perf/*`,
//! `reward/*/latency_*`), so that two runs can be compared without them.

use serde::Serialize;
use serde_json::{Map, Value};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The time at which the numbers of a step were logged.
pub(crate) const TIMESTAMP: &str = "time/timestamp";

/// The numbers of one step, by name, in the order in which they were set.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Metrics(Map<String, Value>);

impl Metrics {
    /// The numbers of `step`.
    pub fn of_step(step: u64) -> Self {
        let mut metrics = Self::default();
        metrics.0.insert("step".into(), step.into());
        metrics
    }

    /// Sets a number; one that is not finite is left out, as JSON has none.
    pub fn set(&mut self, name: impl Into<String>, value: f64) {
        if value.is_finite() {
            // An empty sum of floats is -0.0, and so is a loss of advantages that are all 0.
            let unsigned_zero = value + 0.0;
            self.0.insert(name.into(), unsigned_zero.into());
        }
    }

    /// Sets a count.
    pub fn count(&mut self, name: impl Into<String>, value: u64) {
        self.0.insert(name.into(), value.into());
    }

    /// Sets `name/mean`, `name/std`, `name/min` and `name/max` if there are
    /// values. `name/std` is the population standard deviation.
    pub fn describe(&mut self, name: &str, values: &[f64]) {
        if values.is_empty() {
            return;
        }
        let mean = mean(values);
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        self.set(format!("{name}/mean"), mean);
        self.set(format!("{name}/std"), variance.sqrt());
        self.set(format!("{name}/min"), values.iter().copied().fold(f64::INFINITY, f64::min));
        self.set(format!("{name}/max"), values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    }

    /// Sets `time/<phase>` to the seconds since `start`.
    pub fn time(&mut self, phase: &str, start: Instant) -> f64 {
        let seconds = start.elapsed().as_secs_f64();
        self.set(format!("time/{phase}"), seconds);
        seconds
    }

    /// The numbers with `time/timestamp`: when they were logged, in seconds since 1970 (UTC).
    pub fn stamped(&self, now: SystemTime) -> Self {
        let mut metrics = self.clone();
        // A clock before 1970 is not set.
        metrics.set(TIMESTAMP, now.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()));
        metrics
    }

    /// A number by name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).and_then(Value::as_f64)
    }

    /// The numbers as a JSON object.
    pub fn as_json(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Adds the numbers of `other`.
    pub fn extend(&mut self, other: Metrics) {
        self.0.extend(other.0);
    }

    /// The numbers of a JSON object.
    pub fn from_json(object: Map<String, Value>) -> Self {
        Self(object)
    }
}

/// The mean; 0 without values.
pub fn mean(values: &[f64]) -> f64 {
    // An empty sum of floats is -0.0.
    values.iter().fold(0.0, |sum, value| sum + value) / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn nothing_is_zero_without_a_sign() {
        let mut metrics = Metrics::default();
        metrics.set("sum", [0.0_f64; 0].iter().sum());
        metrics.set("mean", mean(&[]));
        metrics.set("loss", -0.0);
        metrics.set("below", -0.5);
        assert_eq!(
            serde_json::Value::from(metrics.as_json().clone()).to_string(),
            r#"{"sum":0.0,"mean":0.0,"loss":0.0,"below":-0.5}"#
        );
        assert!(mean(&[]).is_sign_positive());
    }

    #[test]
    fn a_line_has_the_time_at_which_it_was_logged() {
        let mut metrics = Metrics::of_step(2);
        metrics.set("loss", 0.5);
        let stamped = metrics.stamped(UNIX_EPOCH + Duration::from_millis(1_700_000_000_250));
        assert_eq!(stamped.get("time/timestamp"), Some(1_700_000_000.25));
        assert_eq!((stamped.get("step"), stamped.get("loss")), (Some(2.0), Some(0.5)));
    }
}
