//! Turns, one request after another, as the limits allow.

mod asker;
mod bucket;
mod elsewhere;
mod folder;
mod queue;
mod state;
mod store;
mod table;

pub use asker::{Asker, group_number};
pub use elsewhere::{Courier, TurnEvent};
pub use table::LimiterTable;

use crate::reported::Reported;
use elsewhere::{Elsewhere, Place};
use gavel_data::disk;
use queue::Queue;
use serde::{Deserialize, Serialize};
use state::Booked;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use store::Store;
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

/// The interval of checks for ended requests of other processes.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Limits that cannot be kept.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LimiterError {
    /// A field is wrong.
    #[error("{0}")]
    Field(String),
    /// The folder cannot be used.
    #[error("share: cannot use the folder {}: {source}{}", path.display(), disk::hint(source))]
    Share { path: PathBuf, source: io::Error },
}

/// Gives turns to requests, as the limits allow. Clones share their limits.
#[derive(Clone)]
pub struct Limiter(Arc<Shared>);

struct Shared {
    /// Absent if there is no limit.
    store: Option<Store>,
    /// Set if another process gives the turns.
    elsewhere: OnceLock<Elsewhere>,
    /// The most tokens that a request counts for: the limit of a minute. A larger number is a mistake or malice, after
    /// which nobody would have a turn for long.
    most_tokens: f64,
    waiting: Mutex<Waiting>,
    /// Signals that a request has ended.
    ended: Notify,
}

#[derive(Default)]
struct Waiting {
    queue: Queue<Request>,
    /// Whether a task hands out turns.
    is_served: bool,
    waits: Waits,
}

struct Request {
    tokens: f64,
    turn: oneshot::Sender<Turn>,
}

/// How long requests waited for their turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// The turns.
    pub turns: u64,
    /// The sum of the waits.
    pub total: Duration,
    /// The longest wait.
    pub longest: Duration,
}

/// The turn of a request. Dropping it ends the turn.
pub struct Turn {
    /// Absent if its place was passed on.
    limiter: Option<Limiter>,
    /// Its place in another process, if that gave the turn.
    place: Option<Place>,
    booked: f64,
    spent: Option<f64>,
    reported: Reported,
}

impl Limiter {
    /// A limiter with these limits.
    ///
    /// # Errors
    /// A field is wrong, or the folder to share them through cannot be used.
    pub fn open(table: &LimiterTable) -> Result<Self, LimiterError> {
        table.check().map_err(LimiterError::Field)?;
        let share = |source| LimiterError::Share { path: table.share.clone().unwrap_or_default(), source };
        let most_tokens = table.tokens_per_minute.map_or(f64::from(u32::MAX), |tokens| tokens.get() as f64);
        Ok(Self::of(Some(Store::open(table).map_err(share)?), most_tokens))
    }

    /// A limiter without limits, of a server that is never asked.
    pub fn unlimited() -> Self {
        Self::of(None, f64::from(u32::MAX))
    }

    fn of(store: Option<Store>, most_tokens: f64) -> Self {
        let (waiting, ended, elsewhere) = (Mutex::default(), Notify::new(), OnceLock::new());
        Self(Arc::new(Shared { store, elsewhere, most_tokens, waiting, ended }))
    }

    /// Takes its turns from now on from the process that `courier` asks, which has a limiter of this name. The first
    /// call counts.
    pub fn ask(&self, courier: Courier, name: &str) {
        self.0.elsewhere.get_or_init(|| Elsewhere::new(courier, name.to_owned()));
    }

    /// The tokens that a request counts for.
    fn counted(&self, tokens: f64) -> f64 {
        // The larger of a number that is not one and 0 is 0.
        tokens.max(0.0).min(self.0.most_tokens)
    }

    /// Waits for the turn of a request that will cost about `tokens`. Dropping the future gives the place up.
    pub async fn turn(&self, asker: &Asker, tokens: f64) -> Turn {
        let start = Instant::now();
        if let Some(elsewhere) = self.0.elsewhere.get() {
            let place = elsewhere.turn(asker, tokens).await;
            self.waiting().waits.add(start.elapsed());
            let mut turn = self.granted(tokens);
            turn.place = Some(place);
            return turn;
        }
        let Some(store) = &self.0.store else { return self.granted(0.0) };
        let tokens = self.counted(tokens);
        let turn = loop {
            let received = {
                let mut waiting = self.waiting();
                if !waiting.is_served
                    && let Some(turn) = self.at_once(store, tokens)
                {
                    break turn;
                }
                let (sender, received) = oneshot::channel();
                waiting.queue.push(asker.clone(), Request { tokens, turn: sender });
                if !std::mem::replace(&mut waiting.is_served, true) {
                    tokio::spawn(Server(self.clone()).serve());
                }
                received
            };
            // Fails only where the runtime that hands out turns is shut down.
            if let Ok(turn) = received.await {
                break turn;
            }
        };
        self.waiting().waits.add(start.elapsed());
        turn
    }

    /// How long requests waited since the last call of this.
    pub fn take_waits(&self) -> Waits {
        std::mem::take(&mut self.waiting().waits)
    }

    /// The turn, if nobody waits and it need not wait.
    fn at_once(&self, store: &Store, tokens: f64) -> Option<Turn> {
        store.change(|state, id, now| match state.book(id, tokens, now) {
            Booked::At(time) if time <= now => Some(self.granted(tokens)),
            Booked::At(_) => {
                state.cancel(id, tokens);
                None
            }
            Booked::Full => None,
        })
    }

    fn granted(&self, booked: f64) -> Turn {
        Turn { limiter: Some(self.clone()), place: None, booked, spent: None, reported: Reported::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waits {
    /// The wait of a turn, on average.
    pub fn mean(&self) -> Duration {
        self.total.div_f64(self.turns.max(1) as f64)
    }

    /// Adds the waits of other requests.
    pub fn join(&mut self, Self { turns, total, longest }: Self) {
        (self.turns, self.total, self.longest) = (self.turns + turns, self.total + total, self.longest.max(longest));
    }

    fn add(&mut self, wait: Duration) {
        self.join(Self { turns: 1, total: wait, longest: wait });
    }
}

/// The task that hands out turns while requests wait.
struct Server(Limiter);

impl Server {
    async fn serve(self) {
        let Some(store) = &self.0.0.store else { return };
        while let Some(tokens) = self.next_tokens() {
            match store.change(|state, id, now| (state.book(id, tokens, now), now)) {
                (Booked::At(time), now) => {
                    let mut wait = time - now;
                    while wait > 0.0 {
                        sleep(Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX)).await;
                        // The server may have asked for a pause meanwhile.
                        wait = store.change(|state, _, now| state.paused_for(now));
                    }
                    self.hand_over(store, tokens);
                }
                (Booked::Full, _) => self.wait_for_an_end(store).await,
            }
        }
    }

    /// What the next request will cost; `None` ends the task, as no request waits.
    fn next_tokens(&self) -> Option<f64> {
        let mut waiting = self.0.waiting();
        while waiting.queue.next().is_some_and(|request| request.turn.is_closed()) {
            waiting.queue.pop(|_| false);
        }
        let next = waiting.queue.next().map(|request| request.tokens);
        waiting.is_served = next.is_some();
        next
    }

    /// Gives a place to the request whose turn it is now.
    fn hand_over(&self, store: &Store, booked: f64) {
        let mut booked = booked;
        loop {
            let next = self.0.waiting().queue.pop(|request| !request.turn.is_closed());
            let Some(Request { tokens, turn }) = next else {
                return store.change(|state, id, _| state.cancel(id, booked));
            };
            if turn.is_closed() {
                continue;
            }
            store.change(|state, id, _| state.exchange(id, booked, tokens));
            booked = tokens;
            match turn.send(self.0.granted(tokens)) {
                Ok(()) => return,
                // It was given up at this moment: the next one has the place.
                Err(mut turn) => turn.limiter = None,
            }
        }
    }

    async fn wait_for_an_end(&self, store: &Store) {
        let ended = self.0.0.ended.notified();
        if !store.is_shared() {
            return ended.await;
        }
        if timeout(LOOK_EVERY, ended).await.is_err() {
            store.forget_the_dead();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Where its runtime is shut down, those who wait look for another one.
        let mut waiting = self.0.waiting();
        if std::mem::take(&mut waiting.is_served) {
            waiting.queue = Queue::default();
        }
    }
}

impl Turn {
    /// Notes the tokens that the request did cost.
    pub fn spend(&mut self, tokens: f64) {
        self.spent = Some(tokens);
    }

    /// Notes what the server reported of its own limits.
    pub fn report(&mut self, reported: Reported) {
        self.reported = reported;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(place) = &mut self.place {
            return place.note(self.spent, self.reported);
        }
        let Some(limiter) = &self.limiter else { return };
        let Some(store) = &limiter.0.store else { return };
        let spent = self.spent.map_or(self.booked, |spent| limiter.counted(spent));
        let booked = self.booked;
        store.change(|state, id, now| state.end(id, booked, spent, &self.reported, now));
        limiter.0.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;
    use std::fs::File;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn limiter(table: &str) -> Limiter {
        Limiter::open(&toml::from_str(table).unwrap()).unwrap()
    }

    fn shared(folder: &Path, table: &str) -> Limiter {
        limiter(&format!("share = {folder:?}\n{table}"))
    }

    #[tokio::test]
    async fn no_number_of_tokens_keeps_others_from_their_turns() {
        for tokens in [1e300, f64::INFINITY, f64::NAN, -1e300] {
            let limiter = limiter("tokens_per_minute = 600000");
            let mut first = limiter.turn(&Asker::alone("judge"), tokens).await;
            // What the server counted is what counts in the end.
            first.spend(1.0);
            drop(first);
            let next = timeout(Duration::from_secs(5), limiter.turn(&Asker::alone("judge"), 1.0)).await;
            assert!(next.is_ok(), "{tokens}");
            assert!((0.0..=6e5).contains(&limiter.counted(tokens)), "{tokens}");
        }
    }

    /// Takes this many turns at once, and returns the most that were held at the same time.
    async fn take(limiters: &[Limiter], count: usize, held_for: Duration) -> usize {
        let (held, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let turns = (0..count).map(async |number| {
            let turn = limiters[number % limiters.len()].turn(&Asker::alone("judge"), 0.0).await;
            most.fetch_max(held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            sleep(held_for).await;
            held.fetch_sub(1, Ordering::SeqCst);
            drop(turn);
        });
        join_all(turns).await;
        most.into_inner()
    }

    #[tokio::test]
    async fn turns_are_no_faster_than_the_rate() {
        let limiter = limiter("requests_per_second = 200");
        let start = Instant::now();
        take(std::slice::from_ref(&limiter), 41, Duration::ZERO).await;
        assert!(start.elapsed() >= Duration::from_millis(150), "{:?}", start.elapsed());
        let waits = limiter.take_waits();
        assert_eq!(waits.turns, 41);
        assert!(waits.longest >= Duration::from_millis(150) && waits.total >= waits.longest, "{waits:?}");
        assert_eq!(limiter.take_waits(), Waits::default());
    }

    #[tokio::test]
    async fn no_more_turns_are_held_than_allowed() {
        let limiter = limiter("concurrency = 3");
        assert_eq!(take(std::slice::from_ref(&limiter), 20, Duration::from_millis(1)).await, 3);
        let unlimited = Limiter::unlimited();
        assert_eq!(take(&[unlimited], 20, Duration::from_millis(20)).await, 20);
    }

    #[tokio::test]
    async fn a_place_that_is_given_up_goes_to_the_next() {
        let limiter = limiter("concurrency = 1");
        let asker = Asker::alone("judge");
        let held = limiter.turn(&asker, 0.0).await;
        let given_up = tokio::spawn({
            let (limiter, asker) = (limiter.clone(), asker.clone());
            async move { drop(limiter.turn(&asker, 0.0).await) }
        });
        let next = tokio::spawn({
            let (limiter, asker) = (limiter.clone(), asker.clone());
            async move { drop(limiter.turn(&asker, 0.0).await) }
        });
        sleep(Duration::from_millis(10)).await;
        given_up.abort();
        drop(held);
        next.await.unwrap();
        drop(limiter.turn(&asker, 0.0).await);
    }

    #[tokio::test]
    async fn a_pause_of_the_server_is_everybody_s() {
        let limiter = limiter("");
        let mut turn = limiter.turn(&Asker::default(), 0.0).await;
        turn.report(Reported { retry_after: Some(Duration::from_millis(120)), ..Reported::default() });
        let start = Instant::now();
        drop(turn);
        drop(limiter.turn(&Asker::default(), 0.0).await);
        assert!(start.elapsed() >= Duration::from_millis(110), "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn a_folder_is_shared() {
        let folder = tempfile::tempdir().unwrap();
        let both = [0, 1].map(|_| shared(folder.path(), "requests_per_second = 200\nconcurrency = 2"));
        let start = Instant::now();
        assert!(take(&both, 41, Duration::from_millis(1)).await <= 2);
        assert!(start.elapsed() >= Duration::from_millis(150), "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn requests_of_a_process_that_is_gone_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let limiter = shared(folder.path(), "concurrency = 1");
        let held = limiter.turn(&Asker::default(), 0.0).await;
        // As if another process had made the request, and nobody holds its lock.
        let path = folder.path().join("state.json");
        let state = std::fs::read_to_string(&path).unwrap().replace("\"in_flight\":{\"1\"", "\"in_flight\":{\"9\"");
        std::fs::write(&path, state).unwrap();
        drop(limiter.turn(&Asker::default(), 0.0).await);
        drop(held);
        // Half a state, as of a process that was killed while it wrote.
        std::fs::write(&path, "{\"requests\":").unwrap();
        drop(limiter.turn(&Asker::default(), 0.0).await);
    }

    #[tokio::test]
    async fn no_content_of_the_folder_keeps_a_request_from_its_turn() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        let limiter = shared(folder.path(), "requests_per_second = 1e6\ntokens_per_minute = 60_000_000");
        drop(limiter.turn(&Asker::default(), 0.0).await);
        let state: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for (place, value) in [
            ("/paused_until", 1e308),
            ("/paused_until", 1e10),
            ("/requests/level", -1e308),
            ("/tokens/level", -1e308),
            ("/tokens/rate", 0.0),
            ("/at", 1e308),
        ] {
            let mut state = state.clone();
            *state.pointer_mut(place).unwrap() = value.into();
            std::fs::write(&path, state.to_string()).unwrap();
            drop(limiter.turn(&Asker::default(), 1.0).await);
            // Nobody finds it after that.
            let state: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            assert_ne!(state.pointer(place), Some(&value.into()), "{place}");
        }
    }

    /// Puts something in the place of a path; the other path is a file that a link may lead to.
    type Put = fn(&Path, &Path);

    const PUTS: [(Put, &str); 4] = [
        (|path, _| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()), "it is not a regular file"),
        (|path, other| symlink(other, path).unwrap(), "it is a link, and nothing is written through links"),
        (|path, _| symlink("/dev/zero", path).unwrap(), "it is a link, and nothing is written through links"),
        (|path, _| File::create(path).unwrap().set_len(8 << 30).unwrap(), "it has more than 1048576 bytes"),
    ];

    #[tokio::test]
    async fn files_that_no_process_makes_are_refused() {
        for (put, what) in PUTS {
            let folder = tempfile::tempdir().unwrap();
            let (state, other) = (folder.path().join("state.json"), folder.path().join("other"));
            std::fs::write(&other, "mine").unwrap();
            let table = LimiterTable { share: Some(folder.path().into()), ..LimiterTable::default() };
            put(&state, &other);
            let error = Limiter::open(&table).err().unwrap().to_string();
            assert_eq!(error, format!("share: cannot use the folder {}: state.json: {what}", folder.path().display()));
            // Where it comes later, the limits hold in this process.
            std::fs::remove_file(&state).unwrap();
            let limiter = shared(folder.path(), "concurrency = 1");
            std::fs::remove_file(&state).unwrap();
            put(&state, &other);
            let held = limiter.turn(&Asker::default(), 0.0).await;
            let store = limiter.0.store.as_ref().unwrap();
            assert!(limiter.at_once(store, 0.0).is_none());
            drop(held);
            drop(limiter.turn(&Asker::default(), 0.0).await);
            assert_eq!(std::fs::read_to_string(&other).unwrap(), "mine");
        }
    }

    #[test]
    fn a_lock_that_no_process_makes_is_refused() {
        for (put, what) in &PUTS[..3] {
            let folder = tempfile::tempdir().unwrap();
            let table = LimiterTable { share: Some(folder.path().into()), ..LimiterTable::default() };
            put(&folder.path().join("1.lock"), &folder.path().join("other"));
            let error = Limiter::open(&table).err().unwrap().to_string();
            assert_eq!(error, format!("share: cannot use the folder {}: 1.lock: {what}", folder.path().display()));
            assert!(!folder.path().join("other").exists());
        }
    }
}
