//! The scorer of the service, and the places of the rows that it scores.

use crate::config::{OpenRlhf, Service};
use crate::error::ServiceError;
use crate::metrics::Metrics;
use futures::future::join_all;
use gavel_data::{ColumnNames, Columns, OutcomeKind, Row, Sample};
use gavel_scoring::{RowGroup, RowGroups, RowOutcome, Scorer, ScorerError, StartedRow, completion};
use prometheus_client::metrics::gauge::Gauge;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Semaphore, SemaphorePermit};

/// What the service takes at once.
struct Bounds {
    /// The most rows that are scored.
    running: usize,
    /// The most rows; more are refused.
    rows: usize,
    /// The most bytes of their bodies, in KiB.
    kib: usize,
}

const BOUNDS: Bounds = Bounds { running: 1024, rows: 65_536, kib: 1 << 20 };

/// The state that all requests share.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) scorer: Scorer,
    seed: u64,
    columns: ColumnNames,
    pub(crate) openrlhf: OpenRlhf,
    pub(crate) metrics: Metrics,
    bounds: Bounds,
    running: Semaphore,
    rows: Semaphore,
    kib: Semaphore,
}

/// A number of rows in a gauge, until it is dropped.
struct Counted<'a>(&'a Gauge, i64);

impl<'a> Counted<'a> {
    fn new(gauge: &'a Gauge, rows: usize) -> Self {
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        gauge.inc_by(rows);
        Self(gauge, rows)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.dec_by(self.1);
    }
}

impl Server {
    /// Loads the rewards.
    ///
    /// # Errors
    /// One of them cannot be loaded.
    pub fn start(service: Service) -> Result<Self, ScorerError> {
        Self::start_within(service, BOUNDS)
    }

    fn start_within(service: Service, bounds: Bounds) -> Result<Self, ScorerError> {
        let Service { plugins, scorer, seed, columns, openrlhf } = service;
        Ok(Self(Arc::new(Shared {
            scorer: Scorer::new(plugins, scorer)?,
            seed,
            columns,
            openrlhf,
            metrics: Metrics::default(),
            running: Semaphore::new(bounds.running),
            rows: Semaphore::new(bounds.rows),
            kib: Semaphore::new(bounds.kib),
            bounds,
        })))
    }

    /// Whether a reward judges whole groups, which only `/score` takes.
    pub fn has_judgers(&self) -> bool {
        self.0.scorer.has_judgers()
    }

    /// The rows of each kind of outcome so far.
    pub fn counts(&self) -> BTreeMap<OutcomeKind, u64> {
        self.0.metrics.counts()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }

    /// Refuses rows one at a time where a reward judges groups.
    pub(crate) fn check_no_judgers(&self) -> Result<(), ServiceError> {
        match self.has_judgers() {
            true => Err(ServiceError::invalid(
                "a reward judges whole groups, and this path has one row at a time\nhint: send groups to /score",
            )),
            false => Ok(()),
        }
    }

    /// The row with the columns that `[columns]` names.
    pub(crate) fn named(&self, mut columns: Columns) -> Result<Columns, String> {
        self.0.columns.apply(&mut columns).map_err(|error| error.to_string())?;
        Ok(columns)
    }

    /// Scores the rows of a body of so many bytes. Consecutive rows with the same id are a group. The calls end if this is
    /// dropped.
    pub(crate) async fn score(
        &self,
        rows: Vec<Result<Columns, String>>,
        bytes: usize,
    ) -> Result<Vec<RowOutcome>, ServiceError> {
        let _admitted = self.admit(rows.len(), bytes)?;
        let mut groups = RowGroups::default();
        let mut whole = Vec::new();
        for (position, row) in rows.into_iter().enumerate() {
            let row = row.and_then(|columns| sample(columns, position));
            whole.extend(groups.add(row.map_err(|what| format!("row {position}: {what}"))));
        }
        whole.extend(groups.end());
        let scored = join_all(whole.into_iter().map(|group| self.score_group(group))).await;
        Ok(scored.into_iter().flatten().collect())
    }

    /// Takes a place for each row, and for the bytes of their body: the rows wait here, and not where bodies are read.
    fn admit(&self, rows: usize, bytes: usize) -> Result<[SemaphorePermit<'_>; 2], ServiceError> {
        let Shared { bounds, metrics, rows: free, kib, .. } = self.shared();
        if rows > bounds.rows {
            return Err(ServiceError::too_large(format!("a request may have {} rows, not {rows}", bounds.rows)));
        }
        let permits = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        match (free.try_acquire_many(permits(rows)), kib.try_acquire_many(permits(bytes.div_ceil(1 << 10)))) {
            (Ok(rows), Ok(bytes)) => Ok([rows, bytes]),
            _ => {
                metrics.refuse();
                let most = bounds.rows;
                Err(ServiceError::unavailable(format!(
                    "the service is full: it takes {most} rows and {} MiB together\nhint: ask again later",
                    bounds.kib >> 10
                )))
            }
        }
    }

    async fn score_group(&self, group: RowGroup) -> Vec<RowOutcome> {
        let Shared { scorer, metrics, bounds, running, seed, .. } = self.shared();
        let rows = group.rows.len();
        // A larger group has all places. The semaphore is never closed.
        let places = u32::try_from(rows.min(bounds.running)).unwrap_or(u32::MAX);
        let waits = Counted::new(&metrics.waiting, rows);
        let _running = running.acquire_many(places).await;
        drop(waits);
        let _counted = Counted::new(&metrics.running, rows);
        let begun = Instant::now();
        let outcome = async |started: StartedRow| {
            let scored = started.outcome().await;
            metrics.count(&scored.outcome, begun.elapsed());
            scored
        };
        join_all(scorer.start_group(group, *seed).into_iter().map(outcome)).await
    }
}

/// The sample of a row, which has this position in its request.
fn sample(columns: Columns, position: usize) -> Result<Sample, String> {
    completion(Row { position, place: String::new(), columns }, "data").map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;
    use axum::http::header::RETRY_AFTER;
    use axum::response::IntoResponse;
    use futures::poll;
    use gavel_plugin::{Limits, PluginSpec, SandboxConfig};
    use gavel_scoring::WeightedPlugin;
    use std::num::NonZeroUsize;
    use std::path::Path;
    use std::pin::pin;
    use std::time::Duration;

    /// A service whose reward never ends for the response `Answer: 5`.
    fn server(bounds: Bounds) -> Server {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guests/loops.wasm");
        let long = Duration::from_secs(3000);
        let limits = Limits { cpu: long, deadline: long, ..Limits::default() };
        let service = Service {
            plugins: vec![WeightedPlugin::new(PluginSpec { limits, ..PluginSpec::new("loops", path) }, 1.0)],
            scorer: SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap()).into(),
            seed: 0,
            columns: ColumnNames::default(),
            openrlhf: OpenRlhf::default(),
        };
        Server::start_within(service, bounds).unwrap()
    }

    fn rows(answers: &[&str]) -> Vec<Result<Columns, String>> {
        let row = |answer: &&str| format!(r#"{{"response": "Answer: {answer}", "ground_truth": "4"}}"#);
        answers.iter().map(|answer| Ok(serde_json::from_str(&row(answer)).unwrap())).collect()
    }

    #[test]
    fn a_full_service_refuses_rows_and_those_that_are_given_up_make_room() {
        let server = server(Bounds { running: 1, rows: 3, kib: 2 });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let refused = async |answers: &[&str], bytes| {
                let response = server.score(rows(answers), bytes).await.err().unwrap().into_response();
                (response.status(), response.headers().contains_key(RETRY_AFTER))
            };
            assert_eq!(refused(&["4"; 4], 1).await, (StatusCode::PAYLOAD_TOO_LARGE, false));
            assert_eq!(refused(&["4"], 2049).await, (StatusCode::SERVICE_UNAVAILABLE, true));
            let mut waiting = Box::pin(server.score(rows(&["4"]), 1));
            {
                let mut endless = pin!(server.score(rows(&["5"]), 1));
                assert!(poll!(&mut endless).is_pending());
                assert!(poll!(&mut waiting).is_pending());
                let Shared { metrics, .. } = server.shared();
                assert_eq!((metrics.running.get(), metrics.waiting.get()), (1, 1));
                assert_eq!(refused(&["4"; 2], 0).await, (StatusCode::SERVICE_UNAVAILABLE, true));
                assert_eq!(refused(&["4"], 1).await, (StatusCode::SERVICE_UNAVAILABLE, true));
            }
            let scored = waiting.await.unwrap();
            assert_eq!((scored[0].id.as_deref(), scored[0].outcome.reward), (Some("data/row-0"), Some(1.0)));
        });
    }
}
