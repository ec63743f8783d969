//! The large bodies that are in memory at once. They are bounded by client too, so that one client cannot take the places
//! of all.

use crate::connections::Client;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Places for large bodies.
pub(crate) struct LargeBodies {
    all: Semaphore,
    /// The most places of a client.
    most: usize,
    /// The places of each client that has or wants one.
    by_client: Mutex<BTreeMap<Client, Weak<Semaphore>>>,
}

/// The place of a body.
pub(crate) struct Place {
    _of_all: Option<SemaphorePermit<'static>>,
    _of_client: Option<OwnedSemaphorePermit>,
}

impl LargeBodies {
    /// `all` places, of which a client may have `most`.
    pub(crate) const fn new(all: usize, most: usize) -> Self {
        Self { all: Semaphore::const_new(all), most, by_client: Mutex::new(BTreeMap::new()) }
    }

    /// Waits for a place of this client. Those that wait for a place of their client are in nobody else's way.
    pub(crate) async fn place(&'static self, client: Client) -> Place {
        // Semaphores are never closed.
        let _of_client = self.of_client(client).acquire_owned().await.ok();
        Place { _of_all: self.all.acquire().await.ok(), _of_client }
    }

    fn of_client(&self, client: Client) -> Arc<Semaphore> {
        let mut by_client = self.by_client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = by_client.get(&client).and_then(Weak::upgrade) {
            return places;
        }
        by_client.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.most));
        by_client.insert(client, Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::future::join_all;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn client(address: &str) -> Client {
        Client::at(address.parse().unwrap())
    }

    #[test]
    fn a_client_with_a_thousand_bodies_leaves_places_to_others() {
        static BODIES: LargeBodies = LargeBodies::new(3, 2);
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(client);
        let place = |client| BODIES.place(client).now_or_never();
        let [first, second] = [place(one).unwrap(), place(one).unwrap()];
        let mut waiting = pin!(join_all((0..1000).map(|_| BODIES.place(one))));
        let mut go_on = || waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
        assert!(go_on());
        let third = place(other).unwrap();
        // Now all places are taken.
        assert!(place(other).is_none());
        drop(first);
        // One of the thousand takes it.
        assert!(go_on() && place(other).is_none());
        drop((second, third));
        assert!(place(other).is_some());
    }

    #[test]
    fn clients_without_bodies_are_forgotten() {
        static BODIES: LargeBodies = LargeBodies::new(3, 2);
        let place = BODIES.place(client("10.0.0.1")).now_or_never().unwrap();
        drop(BODIES.place(client("10.0.0.2")).now_or_never().unwrap());
        drop(BODIES.place(client("10.0.0.3")).now_or_never().unwrap());
        let known: Vec<Client> = BODIES.by_client.lock().unwrap().keys().copied().collect();
        assert_eq!(known, ["10.0.0.1", "10.0.0.3"].map(client));
        drop(place);
    }
}
