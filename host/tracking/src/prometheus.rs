//! The last numbers of a run for Prometheus, at `/metrics`.

use crate::about::About;
use crate::error::Result;
use crate::numbers::Numbers;
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gavel_endpoint::pauses;
use gavel_runs::{EndKind, MetricsFollower};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

type Number = Gauge<f64, AtomicU64>;
type Labelled = Family<Vec<(&'static str, String)>, Number>;

/// The most lines that are in memory at once.
const LINES: u64 = 256;

/// The last steps that trackers have, by the name of the tracker.
pub(crate) type Steps = Arc<Mutex<BTreeMap<String, Option<u64>>>>;

/// Reads the last numbers of a run when it is asked.
struct Shown {
    run: PathBuf,
    follower: MetricsFollower,
    last: BTreeMap<String, f64>,
    step: Option<u64>,
    at: Option<f64>,
    trackers: Steps,
}

/// The service.
pub(crate) fn router(run: &Path, trackers: Steps) -> Router {
    let shown = Shown {
        run: run.to_owned(),
        follower: MetricsFollower::new(run),
        last: BTreeMap::new(),
        step: None,
        at: None,
        trackers,
    };
    let shown = Arc::new(Mutex::new(shown));
    Router::new().route("/metrics", get(async move || answer(&shown)))
}

fn answer(shown: &Mutex<Shown>) -> Response {
    match shown.lock().unwrap_or_else(PoisonError::into_inner).text() {
        Ok(text) => {
            ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

impl Shown {
    fn read(&mut self) -> Result<()> {
        loop {
            let new = self.follower.read_at_most(LINES)?;
            if new.is_anew {
                (self.last, self.step, self.at) = (BTreeMap::new(), None, None);
            }
            for step in &new.steps {
                let numbers = Numbers::of(step);
                (self.step, self.at) = (Some(numbers.step), numbers.at.or(self.at));
                self.last.extend(numbers.values);
            }
            if ((new.steps.len() + new.damaged.len()) as u64) < LINES {
                return Ok(());
            }
        }
    }

    /// In the text format of OpenMetrics.
    fn text(&mut self) -> Result<String> {
        self.read()?;
        let about = About::read(&self.run)?;
        let mut registry = Registry::with_prefix("gavel_run");
        let gauge = |value: f64| {
            let gauge = Number::default();
            gauge.set(value);
            gauge
        };
        let labelled = |label: &'static str, values: Vec<(String, f64)>| {
            let family = Labelled::default();
            for (name, value) in values {
                family.get_or_create(&vec![(label, name)]).set(value);
            }
            family
        };
        registry.register("info", "The run", labelled("run", vec![(about.name.clone(), 1.0)]));
        let state = match about.ending(true)?.map(|ending| ending.kind) {
            Some(EndKind::Ended) => "ended",
            Some(EndKind::Stopped) => "stopped",
            Some(EndKind::Failed) => "failed",
            None if !pauses().is_empty() => "paused",
            None => "running",
        };
        let states = ["running", "paused", "ended", "stopped", "failed"];
        let states = states.map(|name| (name.to_owned(), f64::from(u8::from(name == state))));
        registry.register("state", "1 for the state that the run is in", labelled("state", states.to_vec()));
        if let Some(step) = self.step {
            registry.register("step", "The last step with numbers", gauge(step as f64));
        }
        if let Some(steps) = about.config.get("train").and_then(|train| train.get("steps")).and_then(Value::as_f64) {
            registry.register("steps", "The steps that the run is to take", gauge(steps));
        }
        if let Some(at) = self.at {
            let help = "When the last numbers were logged, since 1970";
            registry.register_with_unit("last_record", help, Unit::Seconds, gauge(at));
        }
        let last = self.last.iter().map(|(name, value)| (name.clone(), *value)).collect();
        registry.register(
            "metric",
            "The last value of each metric, by its name in metrics.jsonl",
            labelled("name", last),
        );
        let trackers = self.trackers.lock().unwrap_or_else(PoisonError::into_inner);
        let trackers =
            trackers.iter().map(|(name, step)| (name.clone(), step.map_or(-1.0, |step| step as f64))).collect();
        let help = "The last step that each tracker has; -1 for none";
        registry.register("tracker_step", help, labelled("tracker", trackers));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &registry);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_runs::layout;
    use std::fs;

    #[test]
    fn the_last_value_of_each_metric_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("demo");
        fs::create_dir(&run).unwrap();
        fs::write(layout::config(&run), "[train]\nsteps = 9\n").unwrap();
        let lines = "{\"step\":1,\"val/accuracy\":0.25,\"reward/\\\"x\\\"/mean\":1,\"time/timestamp\":5.5}\n{\"step\":2,\"loss\":-0.5,\"time/timestamp\":6.5}\n{\"step\":3,\"lo";
        fs::write(layout::metrics(&run), lines).unwrap();
        let trackers = Steps::default();
        trackers.lock().unwrap().insert("mlflow".into(), Some(1));
        let mut shown = Shown {
            run: run.clone(),
            follower: MetricsFollower::new(&run),
            last: BTreeMap::new(),
            step: None,
            at: None,
            trackers,
        };
        let text = shown.text().unwrap();
        for line in [
            "gavel_run_info{run=\"demo\"} 1.0",
            "gavel_run_state{state=\"running\"} 1.0",
            "gavel_run_state{state=\"failed\"} 0.0",
            "gavel_run_step 2.0",
            "gavel_run_steps 9.0",
            "gavel_run_last_record_seconds 6.5",
            "gavel_run_metric{name=\"val/accuracy\"} 0.25",
            "gavel_run_metric{name=\"reward/\\\"x\\\"/mean\"} 1.0",
            "gavel_run_metric{name=\"loss\"} -0.5",
            "gavel_run_tracker_step{tracker=\"mlflow\"} 1.0",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        gavel_data::files::write_whole(&layout::metrics(&run), b"{\"step\":1,\"loss\":2}\n").unwrap();
        fs::write(layout::ending(&run), "{\"kind\":\"failed\",\"at\":7.0,\"error\":\"x\"}").unwrap();
        let text = shown.text().unwrap();
        assert!(text.contains("gavel_run_step 1.0") && !text.contains("val/accuracy"), "{text}");
        assert!(text.contains("gavel_run_state{state=\"failed\"} 1.0"), "{text}");
    }
}
