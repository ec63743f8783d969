//! Samples in flight: each is one future, from its prompt to its outcome.

use crate::error::Result;
use futures::StreamExt;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use gavel_data::{Sample, SampleOutcome};
use gavel_scoring::Progress;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A sample: its draw, and its place in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SampleKey {
    pub(crate) draw: u64,
    pub(crate) index: usize,
}

/// What happened to a sample.
pub(crate) enum Event {
    /// Its last response ended, and its judges are asked.
    Drawn(SampleKey, Arc<Sample>, Progress),
    /// It has its outcome.
    Scored(SampleKey, Arc<Sample>, SampleOutcome),
}

/// Samples in flight. Dropping this cancels all of them.
pub(crate) struct SamplesInFlight {
    futures: FuturesUnordered<LocalBoxFuture<'static, Result<Event>>>,
    /// Outcomes that came together with the end of a response, which is reported first.
    scored: VecDeque<Result<Event>>,
    drawn: UnboundedReceiver<Event>,
    sender: UnboundedSender<Event>,
}

impl Default for SamplesInFlight {
    fn default() -> Self {
        let (sender, drawn) = unbounded_channel();
        Self { futures: FuturesUnordered::new(), scored: VecDeque::new(), drawn, sender }
    }
}

impl SamplesInFlight {
    /// Where a sample's future reports that the sample is drawn.
    pub(crate) fn reports(&self) -> UnboundedSender<Event> {
        self.sender.clone()
    }

    /// Adds the future of a sample, which ends with its outcome.
    pub(crate) fn push(&mut self, sample: impl Future<Output = Result<Event>> + 'static) {
        self.futures.push(Box::pin(sample));
    }

    /// The next event; nothing if no sample is in flight.
    pub(crate) async fn next(&mut self) -> Option<Result<Event>> {
        loop {
            // A sample is drawn before it is scored.
            if let Ok(event) = self.drawn.try_recv() {
                return Some(Ok(event));
            }
            if let Some(event) = self.scored.pop_front() {
                return Some(event);
            }
            tokio::select! {
                biased;
                Some(event) = self.drawn.recv() => return Some(Ok(event)),
                event = self.futures.next() => self.scored.push_back(event?),
            }
        }
    }
}
