//! MLflow: a run of a tracking server, by its REST API (<https://mlflow.org/docs/latest/api_reference/rest-api.html>).
//! A server that stores in a database keeps a number once, however often it is sent with the same time.

use crate::about::About;
use crate::config_values::flat;
use crate::error::{Result, SendError, TrackingError};
use crate::http::{KeyHeader, Server};
use crate::numbers::Numbers;
use crate::sent::Sent;
use crate::table::TrackerTable;
use gavel_runs::{EndKind, Ending};
use serde_json::{Value, json};
use std::time::Duration;

/// The most numbers and the most parameters of a request.
const METRICS: usize = 1000;
const PARAMS: usize = 100;
/// The most characters of names and values. Older servers allow no longer values.
const NAME: usize = 250;
const VALUE: usize = 500;
const ERROR: usize = 5000;

const API: &str = "/api/2.0/mlflow";
/// Where a server stores artifacts that it keeps itself.
const ARTIFACTS: &str = "/api/2.0/mlflow-artifacts/artifacts";

/// The tag with the id that Gavel gave a run, by which it is found again.
const ID_TAG: &str = "gavel.id";

/// A tracking server.
pub(crate) struct Mlflow {
    server: Server,
    experiment: String,
    name: String,
}

impl Mlflow {
    pub(crate) fn new(table: &TrackerTable, timeout: Duration) -> std::result::Result<Self, TrackingError> {
        let server = Server::new(table, KeyHeader::Bearer, timeout)?;
        Ok(Self { server, experiment: table.project().to_owned(), name: table.name().to_owned() })
    }

    pub(crate) fn target(&self) -> String {
        format!("mlflow {} {}", self.server.shown(), self.experiment)
    }

    /// Finds or creates the run, and sends its configuration as parameters and as a file.
    pub(crate) async fn begin(&self, about: &About, sent: &mut Sent) -> Result<()> {
        if sent.remote.is_none() {
            let experiment = self.experiment().await?;
            let run = match self.find(&experiment, &sent.id).await? {
                Some(run) => run,
                None => self.create(&experiment, about, sent).await?,
            };
            sent.remote = Some(run);
        }
        let run = run_of(sent);
        let params: Vec<Value> = flat(&about.config)
            .into_iter()
            .map(|(name, value)| json!({"key": metric_name(&name), "value": cut(&value, VALUE)}))
            .collect();
        for params in params.chunks(PARAMS) {
            let body = json!({"run_id": run, "metrics": [], "params": params, "tags": []});
            match self.post("/runs/log-batch", &body).await {
                // Parameters are never changed, so a run whose configuration was sent before keeps it.
                Err(error @ SendError::Refused { status: 400, .. }) => {
                    tracing::warn!("{}: parameters are left out: {error}", self.name);
                }
                sent => sent.map(drop)?,
            }
        }
        self.keep_config(about, run).await
    }

    async fn experiment(&self) -> Result<String> {
        let name: String = percent_encoded(&self.experiment);
        let path = format!("{API}/experiments/get-by-name?experiment_name={name}");
        let found = match self.server.get(&path).await {
            Ok(answer) => answer.pointer("/experiment/experiment_id").cloned(),
            Err(SendError::Refused { status: 404, answer, .. }) if answer.contains("RESOURCE_DOES_NOT_EXIST") => {
                let created = self.post("/experiments/create", &json!({"name": self.experiment})).await?;
                created.get("experiment_id").cloned()
            }
            Err(error) => return Err(error),
        };
        text(found.as_ref()).ok_or_else(|| self.server.lacks(&path, "experiment_id"))
    }

    /// The run that was created before, by a process that ended before it had noted that.
    async fn find(&self, experiment: &str, id: &str) -> Result<Option<String>> {
        let filter = format!("tags.`{ID_TAG}` = '{id}'");
        let body = json!({"experiment_ids": [experiment], "filter": filter, "run_view_type": "ALL", "max_results": 1});
        let found = self.post("/runs/search", &body).await?;
        Ok(text(found.pointer("/runs/0/info/run_id")))
    }

    async fn create(&self, experiment: &str, about: &About, sent: &Sent) -> Result<String> {
        let tags = [
            (ID_TAG, sent.id.clone()),
            ("mlflow.runName", about.name.clone()),
            ("mlflow.source.name", "gavel".to_owned()),
            ("gavel.folder", about.run.display().to_string()),
            ("gavel.host", about.host.clone()),
            ("gavel.version", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        let tags: Vec<Value> =
            tags.iter().map(|(key, value)| json!({"key": key, "value": cut(value, ERROR)})).collect();
        let start = (sent.since * 1000.0).round() as i64;
        let body = json!({"experiment_id": experiment, "run_name": about.name, "start_time": start, "tags": tags});
        let created = self.post("/runs/create", &body).await?;
        text(created.pointer("/run/info/run_id")).ok_or_else(|| self.server.lacks("/runs/create", "run_id"))
    }

    /// Keeps the configuration as an artifact, where the server itself keeps artifacts.
    async fn keep_config(&self, about: &About, run: &str) -> Result<()> {
        let path = format!("{API}/runs/get?run_id={}", percent_encoded(run));
        let found = self.server.get(&path).await?;
        let place = found.pointer("/run/info/artifact_uri").and_then(Value::as_str).unwrap_or_default();
        let Some(place) = place.strip_prefix("mlflow-artifacts:/") else { return Ok(()) };
        let path = format!("{ARTIFACTS}/{}/config.toml", place.trim_matches('/'));
        self.server.put(&path, about.config_text().into_bytes()).await
    }

    /// Sends numbers, as many in a request as a server takes.
    pub(crate) async fn log(&self, sent: &Sent, numbers: &[Numbers]) -> Result<()> {
        let metrics: Vec<Value> = numbers
            .iter()
            .flat_map(|numbers| {
                let at = numbers.milliseconds(sent.since);
                numbers.values.iter().map(move |(name, value)| {
                    json!({"key": metric_name(name), "value": value, "timestamp": at, "step": numbers.step})
                })
            })
            .collect();
        for metrics in metrics.chunks(METRICS) {
            let body = json!({"run_id": run_of(sent), "metrics": metrics, "params": [], "tags": []});
            self.post("/runs/log-batch", &body).await?;
        }
        Ok(())
    }

    pub(crate) async fn resume(&self, sent: &Sent) -> Result<()> {
        self.post("/runs/update", &json!({"run_id": run_of(sent), "status": "RUNNING"})).await.map(drop)
    }

    pub(crate) async fn end(&self, sent: &Sent, ending: &Ending) -> Result<()> {
        let status = match ending.kind {
            EndKind::Ended => "FINISHED",
            EndKind::Stopped => "KILLED",
            EndKind::Failed => "FAILED",
        };
        let run = run_of(sent);
        if let Some(error) = &ending.error {
            let body = json!({"run_id": run, "key": "gavel.error", "value": cut(error, ERROR)});
            self.post("/runs/set-tag", &body).await?;
        }
        let end = (ending.at * 1000.0).round() as i64;
        self.post("/runs/update", &json!({"run_id": run, "status": status, "end_time": end})).await.map(drop)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.server.post(&format!("{API}{path}"), body).await
    }
}

/// The id of the run at the server, which [`Mlflow::begin`] notes first.
fn run_of(sent: &Sent) -> &str {
    sent.remote.as_deref().unwrap_or_default()
}

/// An id, which servers may give as a number.
fn text(id: Option<&Value>) -> Option<String> {
    match id? {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// A name as MLflow allows it: letters, digits and `_-. :/`, in parts as of a path.
fn metric_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "_-. :".contains(c) { c } else { '_' };
    let parts = name.split('/').map(|part| part.chars().map(allowed).collect::<String>());
    let parts = parts.map(|part| if part.chars().all(|c| c == '.') { "_".repeat(part.len().max(1)) } else { part });
    let whole: String = parts.collect::<Vec<_>>().join("/");
    whole[..whole.len().min(NAME)].trim_end_matches('/').to_owned()
}

/// The first `most` characters.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count() <= most {
        true => text.to_owned(),
        false => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

fn percent_encoded(text: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_mlflow_allows_them() {
        for (name, allowed) in [
            ("reward/exact-answer/mean", "reward/exact-answer/mean"),
            ("val/openai/gsm8k@4/accuracy", "val/openai/gsm8k_4/accuracy"),
            ("train/../x//y/", "train/__/x/_/y/_"),
            ("/a", "_/a"),
            ("größe", "gr__e"),
        ] {
            assert_eq!(metric_name(name), allowed);
        }
        assert_eq!(metric_name(&"a/".repeat(200)).len(), NAME - 1);
    }

    #[test]
    fn long_values_are_cut() {
        assert_eq!((cut("abc", 3), cut("äbcd", 3)), ("abc".into(), "äb…".into()));
        assert_eq!(percent_encoded("a b/ä"), "a%20b%2F%C3%A4");
    }
}
