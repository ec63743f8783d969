//! Sends what a run records to trackers: Weights & Biases, MLflow, Trackio and webhooks; and shows it to Prometheus.
//!
//! The folder of the run is the source. A [`Tracking`] is a thread that reads what the run adds to it, and keeps in
//! `trackers/` what each tracker was sent. So a tracker that is down or slow only lags: nothing waits for it, and
//! [`send`] sends later what it missed.
//!
//! | file | subject |
//! |---|---|
//! | `table.rs` | a tracker as it is configured |
//! | `tracking.rs` | the thread of a run under way |
//! | `link.rs` | what is sent next to a tracker, and that it was sent |
//! | `feed.rs`, `numbers.rs` | the lines of `metrics.jsonl` that a tracker lacks |
//! | `sent.rs` | `trackers/NAME.json` |
//! | `tracker.rs` | what a tracker can be sent |
//! | `wandb/`, `mlflow.rs`, `trackio.rs`, `webhook.rs` | each of them |
//! | `prometheus.rs` | the last numbers for Prometheus |

mod about;
mod config_values;
mod error;
mod feed;
mod http;
mod link;
mod listener;
mod mlflow;
mod numbers;
mod progress;
mod prometheus;
mod send;
mod sent;
mod table;
mod tracker;
mod tracking;
mod trackio;
mod wandb;
mod webhook;

pub use error::{SendError, TrackingError};
pub use listener::MetricsListener;
pub use send::{SentTo, send};
pub use table::{RunEvent, TrackerKind, TrackerTable, check_trackers};
pub use tracking::{Tracking, check_environment};
#[cfg(test)]
mod tests;
