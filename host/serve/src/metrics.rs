//! Metrics of a server for Prometheus.

use gavel_data::FinishReason;
use gavel_rollout::{Observer, RolloutError};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;

/// Seconds, from a token of a small model to a long response of a large one.
const SECONDS: [f64; 12] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];

/// Counts and times of a server, as Prometheus reads them.
pub struct Metrics {
    registry: Registry,
    running: Gauge,
    waiting: Gauge,
    prompt_tokens: Counter,
    generated_tokens: Counter,
    preemptions: Counter,
    requests: Family<Vec<(&'static str, &'static str)>, Counter>,
    first_token: Histogram,
    whole: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("gavel");
        let (running, waiting) = (Gauge::default(), Gauge::default());
        let (prompt_tokens, generated_tokens, preemptions) =
            (Counter::default(), Counter::default(), Counter::default());
        let requests = Family::default();
        let (first_token, whole) = (Histogram::new(SECONDS), Histogram::new(SECONDS));
        registry.register("requests_running", "Responses that are being decoded", running.clone());
        registry.register("requests_waiting", "Requests that wait for a place", waiting.clone());
        registry.register("prompt_tokens", "Tokens of prompts", prompt_tokens.clone());
        registry.register("generated_tokens", "Tokens drawn", generated_tokens.clone());
        registry.register("preemptions", "Responses put back because the cache was full", preemptions.clone());
        registry.register("requests", "Requests that ended, by the reason", requests.clone());
        let seconds = |registry: &mut Registry, name: &str, help: &str, of: &Histogram| {
            registry.register_with_unit(name, help, Unit::Seconds, of.clone());
        };
        seconds(&mut registry, "time_to_first_token", "From the request to its first token", &first_token);
        seconds(&mut registry, "request_duration", "From the request to its end", &whole);
        Self { registry, running, waiting, prompt_tokens, generated_tokens, preemptions, requests, first_token, whole }
    }
}

impl Observer for Metrics {
    fn load(&self, running: usize, waiting: usize) {
        self.running.set(running as i64);
        self.waiting.set(waiting as i64);
    }

    fn accepted(&self, prompt_tokens: usize) {
        self.prompt_tokens.inc_by(prompt_tokens as u64);
    }

    fn stepped(&self, tokens: usize, preemptions: u64) {
        self.generated_tokens.inc_by(tokens as u64);
        self.preemptions.inc_by(preemptions.saturating_sub(self.preemptions.get()));
    }

    fn first_token(&self, after: Duration) {
        self.first_token.observe(after.as_secs_f64());
    }

    fn completed(&self, reason: FinishReason, after: Duration) {
        self.count(reason.as_str());
        self.whole.observe(after.as_secs_f64());
    }

    fn cancelled(&self) {
        self.count("cancelled");
    }

    fn failed(&self, error: &RolloutError) {
        tracing::error!("a request failed: {error}");
        self.count("error");
    }
}

impl Metrics {
    fn count(&self, reason: &'static str) {
        self.requests.get_or_create(&vec![("reason", reason)]).inc();
    }

    /// In the text format of OpenMetrics.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
