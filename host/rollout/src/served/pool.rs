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
    /// Why it is never asked again.
    given_up: Option<String>,
    under_way: usize,
    last_chosen: u64,
    standing: watch::Sender<Standing>,
}

/// What the requests that a server has must know of it.
#[derive(Clone, Copy, Default)]
struct Standing {
    /// How often it was lost.
    lost: u64,
    /// Whether it has weights that are not checked yet.
    is_unchecked: bool,
}

/// What there is for a request.
pub(super) enum Placing<'a> {
    /// A place.
    Found(Place<'a>),
    /// No place: the servers that it may go to have as many requests as they may.
    Full,
    /// No server is up.
    Down,
    /// No server will be up again.
    GivenUp(GivenUp),
}

/// A server that is never asked again.
pub(super) struct GivenUp {
    /// The number of the server.
    pub(super) server: usize,
    pub(super) why: String,
}

/// A request's place at a server, until it is dropped.
pub(super) struct Place<'a> {
    pool: &'a Pool,
    /// The number of the server.
    pub(super) server: usize,
    /// How often the server had been lost before.
    lost_before: u64,
    standing: watch::Receiver<Standing>,
}

impl Pool {
    /// A pool of servers that may not be asked yet, each of which has at most `most` requests at once.
    pub(super) fn new(count: usize, most: usize) -> Self {
        let standing = || watch::Sender::new(Standing::default());
        let member = || Member { is_up: false, given_up: None, under_way: 0, last_chosen: 0, standing: standing() };
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
            return given_up(&state).map_or(Placing::Down, Placing::GivenUp);
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
        let standing = member.standing.subscribe();
        let lost_before = standing.borrow().lost;
        Placing::Found(Place { pool: self, server, lost_before, standing })
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

    /// Lets it be asked, with weights that are checked.
    pub(super) fn raise(&self, server: usize) {
        let mut state = self.lock();
        let member = &mut state.servers[server];
        member.is_up = member.given_up.is_none();
        member.standing.send_modify(|standing| standing.is_unchecked = false);
        drop(state);
        self.changed.notify_waiters();
    }

    /// Sets whether it has weights that are not checked yet.
    pub(super) fn set_unchecked(&self, server: usize, is_unchecked: bool) {
        self.lock().servers[server].standing.send_modify(|standing| standing.is_unchecked = is_unchecked);
    }

    /// Leaves it out; the requests that it has learn of it. Returns whether it was up.
    pub(super) fn lose(&self, server: usize, why: &str) -> bool {
        let mut state = self.lock();
        state.last_failure = why.to_owned();
        let was_up = take_down(&mut state.servers[server]);
        drop(state);
        if was_up {
            self.changed.notify_waiters();
        }
        was_up
    }

    /// Leaves it out for good. Returns whether this was not done before.
    pub(super) fn give_up(&self, server: usize, why: &str) -> bool {
        let mut state = self.lock();
        let member = &mut state.servers[server];
        if member.given_up.is_some() {
            return false;
        }
        member.given_up = Some(why.to_owned());
        take_down(member);
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Whether it was left out for good.
    pub(super) fn is_given_up(&self, server: usize) -> bool {
        self.lock().servers[server].given_up.is_some()
    }

    /// One of the servers, if all were left out for good.
    pub(super) fn given_up(&self) -> Option<GivenUp> {
        given_up(&self.lock())
    }

    /// Why the last server was lost.
    pub(super) fn last_failure(&self) -> String {
        self.lock().last_failure.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take_down(member: &mut Member) -> bool {
    if !std::mem::replace(&mut member.is_up, false) {
        return false;
    }
    member.standing.send_modify(|standing| *standing = Standing { lost: standing.lost + 1, is_unchecked: false });
    true
}

fn given_up(state: &State) -> Option<GivenUp> {
    let all: Option<Vec<&String>> = state.servers.iter().map(|member| member.given_up.as_ref()).collect();
    all?.first().map(|why| GivenUp { server: 0, why: (*why).clone() })
}

impl Place<'_> {
    /// Waits until the server is lost.
    pub(super) async fn lost(&mut self) {
        let before = self.lost_before;
        // The pool, which has the sender, outlives the place.
        let _ = self.standing.wait_for(|standing| standing.lost != before).await;
    }

    /// Waits until the weights of the server are checked. Returns whether it was not lost.
    pub(super) async fn checked(&mut self) -> bool {
        let before = self.lost_before;
        let known = self.standing.wait_for(|standing| standing.lost != before || !standing.is_unchecked).await;
        known.is_ok_and(|standing| standing.lost == before)
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
            Placing::Down | Placing::GivenUp(_) => panic!("it is down"),
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
        assert!(!place.checked().await);
    }

    #[test]
    fn requests_wait_until_the_weights_of_their_server_are_checked() {
        let pool = Pool::new(1, 8);
        pool.raise(0);
        let (mut first, mut second) = (found(pool.place(None)), found(pool.place(None)));
        assert_eq!(first.checked().now_or_never(), Some(true));
        pool.set_unchecked(0, true);
        assert_eq!(first.checked().now_or_never(), None);
        pool.set_unchecked(0, false);
        assert_eq!(first.checked().now_or_never(), Some(true));
        pool.set_unchecked(0, true);
        pool.lose(0, "its weights are wrong");
        assert_eq!(second.checked().now_or_never(), Some(false));
    }

    #[test]
    fn a_server_that_is_given_up_stays_out() {
        let pool = Pool::new(2, 8);
        (0..2).for_each(|server| pool.raise(server));
        let mut place = found(pool.place(None));
        assert!(pool.give_up(0, "taken") && !pool.give_up(0, "again"));
        assert_eq!(place.checked().now_or_never(), Some(false));
        pool.raise(0);
        assert_eq!((pool.servers_up(), pool.is_given_up(0)), (vec![1], true));
        pool.lose(1, "gone");
        // The other one may come back.
        assert!(matches!(pool.place(None), Placing::Down) && pool.given_up().is_none());
        pool.give_up(1, "taken");
        let Placing::GivenUp(GivenUp { server, why }) = pool.place(None) else { panic!("it waits") };
        assert_eq!((server, why.as_str()), (0, "taken"));
    }
}
