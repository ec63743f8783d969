//! Trackio: a run of a server, by the API of its own client. A server keeps an entry once, by its id, and notes the time
//! at which it gets it.

use crate::about::About;
use crate::error::{Result, SendError, TrackingError};
use crate::http::{KeyHeader, Server};
use crate::numbers::Numbers;
use crate::sent::Sent;
use crate::table::TrackerTable;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The version of the API.
const API: u64 = 1;
const BULK_LOG: &str = "/api/bulk_log";
/// The most steps of a request.
const STEPS: usize = 128;

/// A server of Trackio.
pub(crate) struct Trackio {
    server: Server,
    project: String,
}

impl Trackio {
    pub(crate) fn new(table: &TrackerTable, timeout: Duration) -> std::result::Result<Self, TrackingError> {
        let server = Server::new(table, KeyHeader::Named("x-trackio-write-token"), timeout)?;
        Ok(Self { server, project: table.project().to_owned() })
    }

    pub(crate) fn target(&self) -> String {
        format!("trackio {} {}", self.server.shown(), self.project)
    }

    /// Checks that the server has the API.
    pub(crate) async fn begin(&self) -> Result<()> {
        let version = self.server.get("/version").await?;
        match version.get("api_version").and_then(Value::as_u64) {
            Some(API) => Ok(()),
            Some(other) => Err(SendError::Nonsense {
                url: format!("{}/version", self.server.shown()),
                what: format!("its API has version {other}, and gavel knows {API}"),
            }),
            None => Err(self.server.lacks("/version", "api_version")),
        }
    }

    pub(crate) async fn log(&self, about: &About, sent: &Sent, numbers: &[Numbers]) -> Result<()> {
        for steps in numbers.chunks(STEPS) {
            let logs: Vec<Value> = steps.iter().map(|step| self.entry(about, sent, step)).collect();
            let body = json!({"args": [], "kwargs": {"logs": logs, "hf_token": null}});
            let answer = self.server.post(BULK_LOG, &body).await?;
            if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
                return Err(SendError::Refused {
                    url: format!("{}{BULK_LOG}", self.server.shown()),
                    status: 200,
                    answer: error.to_string(),
                });
            }
        }
        Ok(())
    }

    fn entry(&self, about: &About, sent: &Sent, numbers: &Numbers) -> Value {
        let metrics: Map<String, Value> =
            numbers.values.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
        // What a validation adds to a step is another entry.
        let names = metrics.keys().map(String::as_str).collect::<Vec<_>>().join("\n");
        let hash = blake3::hash(format!("{} {} {:?}\n{names}", sent.id, numbers.step, numbers.at).as_bytes()).to_hex();
        let config = if sent.last.is_none() { Value::Object(about.config.clone()) } else { Value::Null };
        json!({
            "project": self.project,
            "run": about.name,
            "run_id": sent.id,
            "metrics": metrics,
            "step": numbers.step,
            "config": config,
            "log_id": hash[..32],
        })
    }
}
