//! What samples wait for, in words.

use crate::samples::samples_in_flight::SampleKey;
use gavel_agent::{EpisodeProgress, EpisodeWait, PolicyWaits, WaitsFor};
use gavel_plugin::OutsideWait;
use gavel_scoring::Progress;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A wait: since when, and for what.
pub(crate) type Wait = (Instant, String);

/// What a sample that is being drawn since `since` waits for.
pub(crate) fn of_draw(progress: &EpisodeProgress, since: Instant) -> Wait {
    let EpisodeWait { what, since: asked } = progress.now();
    let who = match &what {
        // The whole draw, with its wait for the device.
        WaitsFor::Policy => return (since, "generation".to_owned()),
        WaitsFor::Memory => return (asked, "memory for its tools or agent".to_owned()),
        WaitsFor::Place => return (asked, "a place among the samples of its agent".to_owned()),
        WaitsFor::Agent => "its agent".to_owned(),
        WaitsFor::Tools(names) => format!("tool {}", names.join(", ")),
    };
    match progress.outside() {
        None => (asked, who),
        Some(outside) => (outside.since, at_endpoint(&who, &outside)),
    }
}

/// What a sample that is being scored waits for; nothing if it waits for others of its group.
pub(crate) fn of_score(progress: &Progress) -> Vec<Wait> {
    let waits = progress.waits().into_iter().map(|asked| {
        let who = format!("reward {}", asked.judge);
        match &asked.outside {
            None => (asked.since, who),
            Some(outside) => (outside.since, at_endpoint(&who, outside)),
        }
    });
    waits.collect()
}

/// An endpoint that a judge or a tool waits for.
fn at_endpoint(who: &str, OutsideWait { endpoint, is_queued, .. }: &OutsideWait) -> String {
    match (endpoint.strip_prefix("limiter/"), is_queued) {
        (Some(limiter), _) => format!("its turn of the limiter {limiter}, for {who}"),
        (None, true) => format!("its turn at the endpoint {endpoint}, for {who}"),
        (None, false) => format!("the answer of the endpoint {endpoint}, for {who}"),
    }
}

/// The samples of a validation under way. Clones share their state.
#[derive(Clone, Default)]
pub(crate) struct ValidationWaits {
    /// The times in which no episode asked the policy.
    pub(crate) policy: PolicyWaits,
    samples: Arc<Mutex<BTreeMap<SampleKey, ValidatedSample>>>,
}

struct ValidatedSample {
    id: String,
    stage: Stage,
}

enum Stage {
    Drawn(EpisodeProgress, Instant),
    Scored(Progress),
}

impl ValidationWaits {
    /// Notes that a sample is about to be drawn. Gives the progress in which the sample notes what it waits for.
    pub(crate) fn draw(&self, key: SampleKey, id: String) -> EpisodeProgress {
        let progress = EpisodeProgress::among(&self.policy, id.clone());
        let stage = Stage::Drawn(progress.clone(), Instant::now());
        self.lock().insert(key, ValidatedSample { id, stage });
        progress
    }

    /// Notes that the judges of a sample are asked.
    pub(crate) fn score(&self, key: SampleKey, progress: Progress) {
        if let Some(sample) = self.lock().get_mut(&key) {
            sample.stage = Stage::Scored(progress);
        }
    }

    /// Notes that a sample has its outcome.
    pub(crate) fn end(&self, key: SampleKey) {
        self.lock().remove(&key);
    }

    /// What each sample waits for, with its id.
    pub(crate) fn now(&self) -> Vec<(String, Wait)> {
        let samples = self.lock();
        let waits = samples.values().flat_map(|ValidatedSample { id, stage }| {
            let waits = match stage {
                Stage::Drawn(progress, since) => vec![of_draw(progress, *since)],
                Stage::Scored(progress) => of_score(progress),
            };
            waits.into_iter().map(|wait| (id.clone(), wait))
        });
        waits.collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SampleKey, ValidatedSample>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
