//! A webhook: JSON that is posted when the run ends, fails or pauses.

use crate::about::About;
use crate::error::{Result, TrackingError};
use crate::http::{KeyHeader, Server};
use crate::table::{RunEvent, TrackerTable};
use gavel_endpoint::{Pause, pauses};
use gavel_runs::{EndKind, Ending, Overview};
use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An address that is told what happens to a run.
pub(crate) struct Webhook {
    server: Server,
    table: TrackerTable,
    /// The last pause that it was told of.
    told: Option<u64>,
}

impl Webhook {
    pub(crate) fn new(table: &TrackerTable, timeout: Duration) -> std::result::Result<Self, TrackingError> {
        let server = Server::new(table, KeyHeader::Bearer, timeout)?;
        Ok(Self { server, table: table.clone(), told: None })
    }

    pub(crate) fn target(&self) -> String {
        format!("webhook {}", self.server.shown())
    }

    /// Tells how the run ended.
    pub(crate) async fn end(&self, about: &About, ending: &Ending) -> Result<()> {
        let event = match ending.kind {
            EndKind::Ended => RunEvent::Ended,
            EndKind::Stopped => RunEvent::Stopped,
            EndKind::Failed => RunEvent::Failed,
        };
        self.tell(event, about, ending.at, ending.error.as_deref()).await
    }

    /// Tells of the pauses of this process that it was not told of.
    pub(crate) async fn tell_pauses(&mut self, about: &About) -> Result<()> {
        for Pause { number, endpoint, why } in pauses() {
            if self.told.is_some_and(|told| told >= number) {
                continue;
            }
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
            self.tell(RunEvent::Paused, about, now, Some(&format!("waits for {endpoint}: {why}"))).await?;
            self.told = Some(number);
        }
        Ok(())
    }

    async fn tell(&self, event: RunEvent, about: &About, at: f64, why: Option<&str>) -> Result<()> {
        if !self.table.is_told(event) {
            return Ok(());
        }
        // A folder that cannot be read is no reason to be silent.
        let found = Overview::read(&about.run).ok();
        let (step, steps) = found.as_ref().map_or((None, None), |found| (found.step, found.steps));
        let mut body = Map::new();
        let mut set = |name: &str, value: Value| {
            if !value.is_null() {
                body.insert(name.to_owned(), value);
            }
        };
        set("event", event.as_str().into());
        set("run", about.name.as_str().into());
        set("folder", about.run.display().to_string().into());
        set("host", about.host.as_str().into());
        set("at", at.into());
        set("step", json!(step));
        set("steps", json!(steps));
        set("accuracy", json!(found.as_ref().and_then(|found| found.accuracy)));
        set("reward", json!(found.as_ref().and_then(|found| found.reward)));
        set("why", json!(why));
        // What Slack and Mattermost show, and what Discord shows.
        let text = sentence(event, &about.name, step, steps, why);
        set("text", text.as_str().into());
        set("content", text.into());
        self.server.tell(&Value::Object(body)).await
    }
}

fn sentence(event: RunEvent, run: &str, step: Option<u64>, steps: Option<u64>, why: Option<&str>) -> String {
    let event = event.as_str();
    let step = match (step, steps) {
        (Some(step), Some(steps)) => format!(" after step {step}/{steps}"),
        (Some(step), None) => format!(" after step {step}"),
        (None, _) => String::new(),
    };
    let why = why.and_then(|why| why.lines().next()).map(|why| format!(": {why}")).unwrap_or_default();
    format!("run {run} {event}{step}{why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_a_sentence() {
        let text = sentence(RunEvent::Failed, "demo", Some(3), Some(9), Some("out of memory\nhint: …"));
        assert_eq!(text, "run demo failed after step 3/9: out of memory");
        assert_eq!(sentence(RunEvent::Ended, "demo", None, None, None), "run demo ended");
    }
}
