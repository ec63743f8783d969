//! Which server is asked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};

/// Which servers answer, and what each of them is asked at the moment.
pub(super) struct Pool {
    state: Mutex<State>,
    /// The most requests that a server has at once. Each takes a connection, of which servers close those that are too
    /// many.
    most: usize,
    /// Notified when a place may be found that was not found before, or when a server is lost.
    changed: Notify,
}

struct State {
    servers: Vec<Member>,
    /// The server of each conversation.
    conversations: HashMap<u64, usize>,
    /// How often a server was chosen.
    chosen: u64,
    /// Why the last server was lost.
    last_failure: String,
}

struct Member {
    is_up: bool,
    under_way: usize,
    last_chosen: u64,
    /// How often it was lost.
    lost: watch::Sender<u64>,
}

/// What there is for a request.
pub(super) enum Placing<'a> {
    /// A place.
    Found(Place<'a>),
    /// No place: the servers that it may go to have as many requests as they may.
    Full,
    /// No server is up.
    Down,
}

/// A request's place at a server, until it is dropped.
pub(super) struct Place<'a> {
    pool: &'a Pool,
    /// The number of the server.
    pub(super) server: usize,
    lost: watch::Receiver<u64>,
}

impl Pool {
    /// A pool of servers that may not be asked yet, each of which has at most `most` requests at once.
    pub(super) fn new(count: usize, most: usize) -> Self {
        let member = || Member { is_up: false, under_way: 0, last_chosen: 0, lost: watch::Sender::new(0) };
        let servers = std::iter::repeat_with(member).take(count).collect();
        let state = State { servers, conversations: HashMap::new(), chosen: 0, last_failure: String::new() };
        Self { state: Mutex::new(state), most, changed: Notify::new() }
    }

    /// A place at the server of a conversation, or at the server with the fewest requests.
    pub(super) fn place(&self, conversation: Option<u64>) -> Placing<'_> {
        let mut state = self.lock();
        let known = conversation.and_then(|conversation| state.conversations.get(&conversation).copied());
        let up = state.servers.iter().enumerate().filter(|(_, member)| member.is_up);
        let fewest = || up.min_by_key(|(_, member)| (member.under_way, member.last_chosen)).map(|(server, _)| server);
        let Some(server) = known.filter(|server| state.servers[*server].is_up).or_else(fewest) else {
            return Placing::Down;
        };
        if state.servers[server].under_way >= self.most {
            return Placing::Full;
        }
        if let Some(conversation) = conversation {
            state.conversations.insert(conversation, server);
        }
        state.chosen += 1;
        let chosen = state.chosen;
        let member = &mut state.servers[server];
        (member.under_way, member.last_chosen) = (member.under_way + 1, chosen);
        Placing::Found(Place { pool: self, server, lost: member.lost.subscribe() })
    }

    /// Ends when a place may be found that was not found before, or when a server is lost. It counts from the moment in
    /// which it is enabled.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// A conversation has no further turn.
    pub(super) fn forget(&self, conversation: u64) {
        self.lock().conversations.remove(&conversation);
    }

    /// The servers that may be asked.
    pub(super) fn servers_up(&self) -> Vec<usize> {
        let state = self.lock();
        (0..state.servers.len()).filter(|server| state.servers[*server].is_up).collect()
    }

    /// Whether it may be asked.
    pub(super) fn is_up(&self, server: usize) -> bool {
        self.lock().servers[server].is_up
    }

    /// Lets it be asked.
    pub(super) fn raise(&self, server: usize) {
        self.lock().servers[server].is_up = true;
        self.changed.notify_waiters();
    }

    /// Leaves it out; the requests that it has learn of it. Returns whether it was up.
    pub(super) fn lose(&self, server: usize, why: &str) -> bool {
        let mut state = self.lock();
        state.last_failure = why.to_owned();
        let member = &mut state.servers[server];
        if !std::mem::replace(&mut member.is_up, false) {
            return false;
        }
        member.lost.send_modify(|lost| *lost += 1);
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Why the last server was lost.
    pub(super) fn last_failure(&self) -> String {
        self.lock().last_failure.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// Waits until the server is lost.
    pub(super) async fn lost(&mut self) {
        // The pool, which has the sender, outlives the place.
        let _ = self.lost.changed().await;
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        let member = &mut state.servers[self.server];
        let was_full = member.under_way >= self.pool.most;
        member.under_way = member.under_way.saturating_sub(1);
        drop(state);
        if was_full {
            self.pool.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::pin::pin;

    fn found(placing: Placing<'_>) -> Place<'_> {
        match placing {
            Placing::Found(place) => place,
            Placing::Full => panic!("it is full"),
            Placing::Down => panic!("it is down"),
        }
    }

    #[test]
    fn a_conversation_stays_and_others_go_where_least_is_under_way() {
        let pool = Pool::new(3, 8);
        assert!(matches!(pool.place(None), Placing::Down));
        (0..3).for_each(|server| pool.raise(server));
        let places: Vec<Place<'_>> = [Some(7), None, None, Some(7)].map(|of| found(pool.place(of))).into();
        assert_eq!(places.iter().map(|place| place.server).collect::<Vec<_>>(), [0, 1, 2, 0]);
        let mut places = places.into_iter();
        // The second one ends.
        let (_first, second) = (places.next(), places.next());
        drop(second);
        assert_eq!(found(pool.place(None)).server, 1);
        assert!(pool.lose(0, "gone") && !pool.lose(0, "gone"));
        assert_eq!(found(pool.place(Some(7))).server, 1);
        pool.raise(0);
        // It has moved, with what the other server keeps of it.
        assert_eq!(found(pool.place(Some(7))).server, 1);
        pool.forget(7);
        assert_eq!((pool.servers_up(), pool.last_failure()), (vec![0, 1, 2], "gone".to_owned()));
    }

    #[test]
    fn a_server_has_no_more_requests_than_it_may() {
        let pool = Pool::new(2, 2);
        (0..2).for_each(|server| pool.raise(server));
        let mut places: Vec<Place<'_>> = [Some(7), None, Some(7), None].map(|of| found(pool.place(of))).into();
        assert_eq!(places.iter().map(|place| place.server).collect::<Vec<_>>(), [0, 1, 0, 1]);
        let mut changed = pin!(pool.changed());
        changed.as_mut().enable();
        assert!(matches!(pool.place(None), Placing::Full) && matches!(pool.place(Some(7)), Placing::Full));
        assert!(changed.as_mut().now_or_never().is_none());
        // A place at the other server is none for the conversation.
        drop(places.remove(1));
        assert!(changed.as_mut().now_or_never().is_some());
        assert!(matches!(pool.place(Some(7)), Placing::Full));
        assert_eq!(found(pool.place(None)).server, 1);
        let mut changed = pin!(pool.changed());
        changed.as_mut().enable();
        // Those that wait for a place at a server learn that it is lost.
        pool.lose(0, "gone");
        assert!(changed.as_mut().now_or_never().is_some());
        assert_eq!(found(pool.place(Some(7))).server, 1);
    }

    #[tokio::test]
    async fn requests_learn_that_their_server_is_lost() {
        let pool = Pool::new(1, 8);
        pool.raise(0);
        let mut place = found(pool.place(None));
        pool.lose(0, "gone");
        place.lost().await;
        assert!(matches!(pool.place(None), Placing::Down));
    }
}
