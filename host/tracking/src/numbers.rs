//! The numbers of a step, as trackers have them.

use gavel_runs::Metrics;
use std::collections::BTreeSet;

/// When a line was written. Trackers have a time of their own for each step.
const TIMESTAMP: &str = "time/timestamp";

/// The numbers of a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Numbers {
    pub(crate) step: u64,
    /// When they were logged, in seconds since 1970 (UTC).
    pub(crate) at: Option<f64>,
    /// By name, in the order of the line.
    pub(crate) values: Vec<(String, f64)>,
}

impl Numbers {
    /// What is a number in a line, and finite.
    pub(crate) fn of(metrics: &Metrics) -> Self {
        let values = metrics.as_json().iter().filter(|(name, _)| !matches!(name.as_str(), "step" | TIMESTAMP));
        let values = values.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
        Self {
            step: metrics.get("step").unwrap_or_default() as u64,
            at: metrics.get(TIMESTAMP),
            values: values.filter(|(_, value)| value.is_finite()).collect(),
        }
    }

    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.values.iter().map(|(name, _)| name.clone()).collect()
    }

    /// When they were logged, in milliseconds since 1970; of an older version of Gavel, which logged no time, `otherwise`.
    pub(crate) fn milliseconds(&self, otherwise: f64) -> i64 {
        (self.at.unwrap_or(otherwise) * 1000.0).round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_numbers_are_sent() {
        let line = r#"{"step":7,"reward/mean":0.5,"note":"text","missing":null,"list":[1],"time/timestamp":12.25,"count":3,"large":1e308}"#;
        let numbers = Numbers::of(&Metrics::from_json(serde_json::from_str(line).unwrap()));
        let values =
            [("reward/mean", 0.5), ("count", 3.0), ("large", 1e308)].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(numbers, Numbers { step: 7, at: Some(12.25), values: values.to_vec() });
        assert_eq!(numbers.milliseconds(1.0), 12250);
    }
}
