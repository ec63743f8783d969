//! Turns that another process gives, such as the one process of a cluster that has the limits.

use super::asker::Asker;
use crate::reported::Reported;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// What a process reports to the process that gives the turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum TurnEvent {
    /// The request `number` waits for a turn of `limiter`.
    Wanted {
        /// The number, which no other request of this process has.
        number: u64,
        /// The name of the limiter.
        limiter: String,
        /// The plugin that asks.
        plugin: String,
        /// The group of the sample, as this process counts groups.
        group: u64,
        /// The sample in its group.
        sample: u32,
        /// The tokens that the request will cost, about.
        tokens: f64,
    },
    /// The turn of the request `number` has ended, or the request was given up.
    Ended {
        /// The number.
        number: u64,
        /// The tokens that it did cost, if they are known.
        spent: Option<f64>,
        /// The server's own limits.
        reported: Reported,
    },
}

/// Carries events to the process that gives turns, and turns from there. Clones are one courier.
#[derive(Clone, Default)]
pub struct Courier(Arc<(Mutex<Post>, Condvar)>);

#[derive(Default)]
struct Post {
    events: Vec<TurnEvent>,
    /// The requests that wait, with what they reported.
    waiting: BTreeMap<u64, (TurnEvent, oneshot::Sender<()>)>,
    numbers: u64,
}

/// A limiter whose turns a courier brings.
pub(super) struct Elsewhere {
    courier: Courier,
    limiter: String,
}

/// The place of a request. Dropping it reports its end.
pub(super) struct Place {
    courier: Courier,
    number: u64,
    spent: Option<f64>,
    reported: Reported,
}

impl Courier {
    /// Takes the events that were not taken yet; none if there are none within this time.
    pub fn take(&self, within: Duration) -> Vec<TurnEvent> {
        let waited = self.0.1.wait_timeout_while(self.post(), within, |post| post.events.is_empty());
        let (mut post, _) = waited.unwrap_or_else(PoisonError::into_inner);
        mem::take(&mut post.events)
    }

    /// Hands out the turns of these requests.
    pub fn bring(&self, numbers: &[u64]) {
        let mut post = self.post();
        for number in numbers {
            if let Some((_, turn)) = post.waiting.remove(number) {
                // It fails where the request was given up at this moment, which its place reports.
                let _ = turn.send(());
            }
        }
    }

    /// Reports all requests that wait once more, to a process that may not know of them.
    pub fn report_again(&self) {
        let mut post = self.post();
        let post = &mut *post;
        post.events.retain(|event| matches!(event, TurnEvent::Ended { .. }));
        post.events.extend(post.waiting.values().map(|(wanted, _)| wanted.clone()));
        self.0.1.notify_all();
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Elsewhere {
    pub(super) fn new(courier: Courier, limiter: String) -> Self {
        Self { courier, limiter }
    }

    /// Waits for the turn of a request.
    pub(super) async fn turn(&self, asker: &Asker, tokens: f64) -> Place {
        let (turn, received) = oneshot::channel();
        let place = {
            let mut post = self.courier.post();
            let number = post.numbers;
            post.numbers += 1;
            let Asker { plugin, group, sample } = asker.clone();
            let (limiter, plugin) = (self.limiter.clone(), plugin.to_string());
            let wanted = TurnEvent::Wanted { number, limiter, plugin, group, sample, tokens };
            post.events.push(wanted.clone());
            post.waiting.insert(number, (wanted, turn));
            Place { courier: self.courier.clone(), number, spent: None, reported: Reported::default() }
        };
        self.courier.0.1.notify_all();
        // The courier has the other side until it brings the turn.
        let _ = received.await;
        place
    }
}

impl Place {
    /// Notes how the request ended.
    pub(super) fn note(&mut self, spent: Option<f64>, reported: Reported) {
        (self.spent, self.reported) = (spent, reported);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Self { courier, number, spent, reported } = self;
        let mut post = courier.post();
        post.waiting.remove(number);
        post.events.push(TurnEvent::Ended { number: *number, spent: *spent, reported: *reported });
        courier.0.1.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limiter, LimiterTable};
    use super::*;

    fn numbers(events: &[TurnEvent]) -> Vec<(bool, u64)> {
        let number = |event: &TurnEvent| match event {
            TurnEvent::Wanted { number, .. } => (true, *number),
            TurnEvent::Ended { number, .. } => (false, *number),
        };
        events.iter().map(number).collect()
    }

    #[tokio::test]
    async fn a_turn_comes_with_the_courier_and_its_end_is_reported() {
        let limiter = Limiter::open(&LimiterTable::default()).unwrap();
        let courier = Courier::default();
        limiter.ask(courier.clone(), "judge");
        let asking = tokio::spawn({
            let limiter = limiter.clone();
            async move { limiter.turn(&Asker::alone("quality"), 7.0).await }
        });
        let taken = tokio::task::spawn_blocking({
            let courier = courier.clone();
            move || courier.take(Duration::from_secs(60))
        });
        let wanted = taken.await.unwrap();
        assert!(
            matches!(&*wanted, [TurnEvent::Wanted { number: 0, limiter, plugin, tokens: 7.0, .. }] if limiter == "judge" && plugin == "quality"),
            "{wanted:?}"
        );
        assert!(!asking.is_finished());
        courier.report_again();
        assert_eq!(courier.take(Duration::ZERO), wanted);
        courier.bring(&[0, 5]);
        let mut turn = asking.await.unwrap();
        turn.spend(3.0);
        drop(turn);
        courier.report_again();
        let ended = courier.take(Duration::ZERO);
        assert!(matches!(&*ended, [TurnEvent::Ended { number: 0, spent: Some(3.0), .. }]), "{ended:?}");
        courier.report_again();
        assert_eq!(courier.take(Duration::ZERO), []);
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_is_reported() {
        let limiter = Limiter::open(&LimiterTable::default()).unwrap();
        let courier = Courier::default();
        limiter.ask(courier.clone(), "judge");
        let asking = tokio::spawn(async move { drop(limiter.turn(&Asker::default(), 0.0).await) });
        tokio::task::yield_now().await;
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        assert_eq!(numbers(&courier.take(Duration::ZERO)), [(true, 0), (false, 0)]);
    }
}
