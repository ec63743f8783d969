//! Metrics of the service for Prometheus.

use gavel_data::{OutcomeKind, SampleOutcome};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Seconds, from a short call to a call that waits for a language model.
const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0];

/// Counts and times of the service.
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) running: Gauge,
    pub(crate) waiting: Gauge,
    rows: Family<Vec<(&'static str, &'static str)>, Counter>,
    refused: Counter,
    duration: Histogram,
    counts: Mutex<BTreeMap<OutcomeKind, u64>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("gavel");
        let (running, waiting) = (Gauge::default(), Gauge::default());
        let (rows, refused, duration) = (Family::default(), Counter::default(), Histogram::new(SECONDS));
        registry.register("rows_running", "Rows that are being scored", running.clone());
        registry.register("rows_waiting", "Rows that wait for a place", waiting.clone());
        registry.register("rows", "Rows that were answered, by their outcome", rows.clone());
        registry.register("refused_requests", "Requests refused because too many rows waited", refused.clone());
        let help = "From the start of a row to its outcome";
        registry.register_with_unit("row_duration", help, Unit::Seconds, duration.clone());
        Self { registry, running, waiting, rows, refused, duration, counts: Mutex::default() }
    }
}

impl Metrics {
    pub(crate) fn count(&self, outcome: &SampleOutcome, after: Duration) {
        let kind = outcome.outcome;
        self.rows.get_or_create(&vec![("outcome", kind.as_str())]).inc();
        self.duration.observe(after.as_secs_f64());
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default() += 1;
    }

    pub(crate) fn refuse(&self) {
        self.refused.inc();
    }

    /// The rows of each kind of outcome so far.
    pub(crate) fn counts(&self) -> BTreeMap<OutcomeKind, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// In the text format of OpenMetrics.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
