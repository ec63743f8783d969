//! The requests that a call waits for, for display.

use crate::tape::QueueTime;
use gavel_endpoint::{Asker, Limiter, Turn};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The requests to language models that a call waits for. Clones share their state.
#[derive(Debug, Clone, Default)]
pub struct OutsideWaits {
    asker: Asker,
    /// The id of the sample or the group that the call is made for.
    made_for: Option<Arc<str>>,
    requests: Arc<Mutex<Requests>>,
}

#[derive(Debug, Default)]
struct Requests {
    next: u64,
    /// Requests without an answer, the oldest first.
    open: BTreeMap<u64, OutsideWait>,
    /// When the oldest one became the oldest.
    since: Option<Instant>,
    spent: BTreeMap<String, Duration>,
    is_unanswered: bool,
}

/// A request without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideWait {
    /// The endpoint that it goes to.
    pub endpoint: String,
    /// Whether it waits for its turn there, and not for the answer.
    pub is_queued: bool,
    /// When this wait began.
    pub since: Instant,
}

impl OutsideWaits {
    /// The waits of calls on behalf of `asker`.
    pub fn of(asker: Asker) -> Self {
        Self { asker, ..Self::default() }
    }

    /// The same waits, of calls for the sample or the group with this id.
    pub fn made_for(self, id: Option<Arc<str>>) -> Self {
        Self { made_for: id, ..self }
    }

    /// The id of the sample or the group that the calls are made for.
    pub(crate) fn subject(&self) -> Option<&Arc<str>> {
        self.made_for.as_ref()
    }

    /// On whose behalf the calls wait.
    pub(crate) fn asker(&self) -> &Asker {
        &self.asker
    }

    /// The oldest request, which stands for what the call waits for.
    pub fn oldest(&self) -> Option<OutsideWait> {
        self.lock().open.values().next().cloned()
    }

    /// The time that the call has waited for each endpoint. While it waits for several requests, the time counts for
    /// the endpoint of the oldest one.
    pub fn spent(&self) -> BTreeMap<String, Duration> {
        let mut requests = self.lock();
        requests.settle();
        requests.spent.clone()
    }

    /// Whether a model did not answer one of the call's requests.
    pub fn is_unanswered(&self) -> bool {
        self.lock().is_unanswered
    }

    /// Notes that a model did not answer.
    pub(crate) fn note_unanswered(&self) {
        self.lock().is_unanswered = true;
    }

    /// Waits for the turn of a request that costs no tokens. Meanwhile, the call is shown as waiting for
    /// `limiter/NAME`.
    pub async fn turn(&self, name: &str, limiter: &Limiter) -> Turn {
        let _open = self.queue(&format!("limiter/{name}"), Arc::default());
        limiter.turn(&self.asker, 0.0).await
    }

    /// Notes that a request waits for its turn at an endpoint. The waits for turns add up in `queued`.
    pub(crate) fn queue(&self, endpoint: &str, queued: Arc<QueueTime>) -> OpenRequest {
        queued.start();
        let mut requests = self.lock();
        requests.settle();
        let number = requests.next;
        requests.next += 1;
        let wait = OutsideWait { endpoint: endpoint.to_owned(), is_queued: true, since: Instant::now() };
        requests.open.insert(number, wait);
        OpenRequest { waits: self.clone(), number, queued }
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Requests {
    /// Counts the time until now. It must be called before a request is added or removed.
    fn settle(&mut self) {
        let now = Instant::now();
        if let (Some(oldest), Some(since)) = (self.open.values().next(), self.since) {
            *self.spent.entry(oldest.endpoint.clone()).or_default() += now - since;
        }
        self.since = Some(now);
    }
}

/// An open request; dropping it ends the wait.
pub(crate) struct OpenRequest {
    waits: OutsideWaits,
    number: u64,
    queued: Arc<QueueTime>,
}

impl OpenRequest {
    /// Notes that its turn has come, and that it waits for the answer.
    pub(crate) fn serve(&self) {
        self.queued.stop();
        self.set_queued(false);
    }

    /// Notes that it waits for another turn.
    pub(crate) fn queue(&self) {
        self.queued.start();
        self.set_queued(true);
    }

    fn set_queued(&self, is_queued: bool) {
        if let Some(wait) = self.waits.lock().open.get_mut(&self.number) {
            (wait.is_queued, wait.since) = (is_queued, Instant::now());
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut requests = self.waits.lock();
        requests.settle();
        requests.open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_spent_on_the_oldest_request() {
        let waits = OutsideWaits::default();
        let pause = Duration::from_millis(5);
        let first = waits.queue("a", Arc::default());
        let second = waits.queue("b", Arc::default());
        assert!(waits.oldest().unwrap().is_queued);
        first.serve();
        let oldest = waits.oldest().unwrap();
        assert_eq!((oldest.endpoint.as_str(), oldest.is_queued), ("a", false));
        std::thread::sleep(pause);
        assert!(waits.spent()["a"] >= pause && !waits.spent().contains_key("b"));
        drop(first);
        assert_eq!(waits.oldest().unwrap().endpoint, "b");
        std::thread::sleep(pause);
        drop(second);
        let spent = waits.spent();
        assert!(spent["b"] >= pause, "{spent:?}");
        std::thread::sleep(pause);
        assert_eq!((waits.oldest(), waits.spent()), (None, spent));
    }
}
