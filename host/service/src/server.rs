//! The scorer of the service, and the places of the rows that it scores.

use crate::config::{OpenRlhf, Service};
use crate::error::ServiceError;
use crate::metrics::Metrics;
use futures::future::join_all;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{ColumnNames, Columns, OutcomeKind, Row, Sample, SampleOutcome};
use gavel_scoring::{Attempts, Pending, PendingGroup, Scorer, ScorerError, completion};
use prometheus_client::metrics::gauge::Gauge;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

/// The most rows that are scored at once.
const RUNNING: usize = 1024;
/// The most rows that are in the service at once; more are refused.
const ADMITTED: usize = 65_536;

/// The state that all requests share.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) scorer: Scorer,
    seed: u64,
    columns: ColumnNames,
    pub(crate) openrlhf: OpenRlhf,
    pub(crate) metrics: Metrics,
    running: Semaphore,
    admitted: Semaphore,
}

/// A row's outcome, with the id of its task unless it cannot be read.
pub(crate) struct Scored {
    pub(crate) id: Option<String>,
    pub(crate) outcome: SampleOutcome,
}

impl Scored {
    fn unreadable(what: String) -> Self {
        Self { id: None, outcome: SampleOutcome::without_calls(OutcomeKind::Fault, what) }
    }
}

/// A number of rows in a gauge, until it is dropped.
struct Counted<'a>(&'a Gauge, i64);

impl<'a> Counted<'a> {
    fn new(gauge: &'a Gauge, rows: usize) -> Self {
        // At most `ADMITTED`.
        let rows = rows as i64;
        gauge.inc_by(rows);
        Self(gauge, rows)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.dec_by(self.1);
    }
}

/// Ends a call that nobody waits for any more.
struct EndOnDrop(AbortHandle);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Server {
    /// Loads the rewards.
    ///
    /// # Errors
    /// One of them cannot be loaded.
    pub fn start(service: Service) -> Result<Self, ScorerError> {
        let Service { plugins, scorer, seed, columns, openrlhf } = service;
        Ok(Self(Arc::new(Shared {
            scorer: Scorer::new(plugins, scorer)?,
            seed,
            columns,
            openrlhf,
            metrics: Metrics::default(),
            running: Semaphore::new(RUNNING),
            admitted: Semaphore::new(ADMITTED),
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

    /// Scores rows. Consecutive rows with the same id are a group. The calls end if this is dropped.
    pub(crate) async fn score(&self, rows: Vec<Result<Columns, String>>) -> Result<Vec<Scored>, ServiceError> {
        let Shared { metrics, admitted, .. } = self.shared();
        let count = rows.len();
        if count > ADMITTED {
            return Err(ServiceError::too_large(format!("a request may have {ADMITTED} rows, not {count}")));
        }
        // At most `ADMITTED`, which is less than 2^32.
        let Ok(_admitted) = admitted.try_acquire_many(count as u32) else {
            metrics.refuse();
            return Err(ServiceError::unavailable(format!(
                "{} rows wait already\nhint: ask again later",
                ADMITTED - admitted.available_permits()
            )));
        };
        let mut attempts = Attempts::default();
        let mut groups: Vec<(usize, Vec<Result<Sample, String>>)> = Vec::new();
        for (position, row) in rows.into_iter().enumerate() {
            let row = row.and_then(|row| self.sample(row, position)).map(|sample| attempts.number(sample));
            match groups.last_mut() {
                Some((_, group)) if row.as_ref().is_ok_and(|sample| sample.index > 0) => group.push(row),
                _ => groups.push((position, vec![row])),
            }
        }
        let scored = join_all(groups.into_iter().map(|(first, group)| self.score_group(group, first))).await;
        Ok(scored.into_iter().flatten().collect())
    }

    /// The sample of a row, which has this position in its request.
    fn sample(&self, mut columns: Columns, position: usize) -> Result<Sample, String> {
        let place = format!("row {position}");
        self.0.columns.apply(&mut columns).map_err(|error| format!("{place}: {error}"))?;
        let row = Row { position, place: place.clone(), columns };
        completion(row, "data").map_err(|error| format!("{place}: {error}"))
    }

    /// Scores a group, whose first row has this position.
    async fn score_group(&self, rows: Vec<Result<Sample, String>>, first: usize) -> Vec<Scored> {
        let Shared { scorer, metrics, running, seed, .. } = self.shared();
        // A larger group has all places. The semaphore is never closed.
        let places = rows.len().min(RUNNING) as u32;
        let waits = Counted::new(&metrics.waiting, rows.len());
        let _running = running.acquire_many(places).await;
        drop(waits);
        let _counted = Counted::new(&metrics.running, rows.len());
        let begun = Instant::now();
        let group = PendingGroup::new(rows.iter().filter(|row| row.is_ok()).count());
        let begin = |(position, row): (usize, Result<Sample, String>)| {
            row.map(|sample| {
                let id = sample.task.id.clone();
                let seed = derive(*seed, 0, position as u64, Purpose::Plugin);
                let pending = scorer.start(&group, sample, seed);
                (id, EndOnDrop(pending.abort_handle()), pending)
            })
        };
        let started: Vec<_> = (first..).zip(rows).map(begin).collect();
        let outcome = async |started: Result<(String, EndOnDrop, Pending), String>| {
            let scored = match started {
                Ok((id, _call, pending)) => Scored { id: Some(id), outcome: pending.outcome().await },
                Err(what) => Scored::unreadable(what),
            };
            metrics.count(&scored.outcome, begun.elapsed());
            scored
        };
        join_all(started.into_iter().map(outcome)).await
    }
}
