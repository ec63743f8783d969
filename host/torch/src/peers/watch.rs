//! Which ranks are alive. Gloo only reports that a neighbour's connection closed, and nothing at all where the network
//! was cut. So each rank counts up a number in the store, and looks at the numbers of the others.

use super::error::{PeersError, RankProcess, Result};
use super::rendezvous::Rendezvous;
use super::store::Store;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a rank says that it is alive.
const BEAT: Duration = Duration::from_millis(500);

/// A rank that says nothing for this long is gone.
const SILENCE: Duration = Duration::from_secs(10);

/// The same where something else shows that a rank is gone: a closed connection, or its own word.
const SILENCE_OF_SUSPECT: Duration = Duration::from_secs(3);

/// A process that was stopped for this long may be taken for gone by the others: it said nothing for a beat before, and
/// is slow to begin.
const STOPPED: Duration = Duration::from_secs(9);

/// What a rank says last.
const LEFT: &str = "left";

/// Where a rank's number is in the store.
pub(super) fn beat(prefix: &str, rank: usize) -> String {
    format!("{prefix}beat/{rank}")
}

/// The look-out for the other ranks.
pub(super) struct Watch {
    at: Rendezvous,
    processes: Vec<RankProcess>,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    is_over: AtomicBool,
    seen: Mutex<Seen>,
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was seen in the store.
struct Seen {
    /// When the store answered last.
    round: Instant,
    /// How long this process ran since then. While it is stopped, as by SIGSTOP, it waits for no answer.
    unanswered: Duration,
    /// When this process ran last, as far as it looked.
    ticked: Instant,
    /// The longest time since the last answer in which it did not run.
    stopped: Duration,
    /// Since when it fails, and how.
    fails: Option<(Instant, String)>,
    /// What each rank said last, and when it was seen first.
    beats: Vec<(String, Instant)>,
    /// The rank that was found to be gone first, and how.
    gone: Option<(usize, String)>,
}

impl Seen {
    fn new(size: usize) -> Self {
        let now = Instant::now();
        let (unanswered, stopped) = (Duration::ZERO, Duration::ZERO);
        let beats = vec![(String::new(), now); size];
        Self { round: now, unanswered, ticked: now, stopped, fails: None, beats, gone: None }
    }

    /// Notes that this process runs, a beat after the last time.
    fn tick(&mut self) {
        self.stopped = self.stopped();
        self.ticked = Instant::now();
        self.unanswered += BEAT;
    }

    fn stopped(&self) -> Duration {
        self.stopped.max(self.ticked.elapsed())
    }
}

impl Watch {
    /// Begins to watch the ranks, which have all begun their number. `store` is for this alone: others may wait in
    /// theirs.
    pub fn start(store: Store, at: &Rendezvous, processes: Vec<RankProcess>, prefix: &str) -> Self {
        let shared = Arc::new(Shared { is_over: AtomicBool::new(false), seen: Mutex::new(Seen::new(at.size)) });
        let ticking = shared.clone();
        std::thread::spawn(move || {
            while !ticking.is_over.load(Ordering::Relaxed) {
                std::thread::sleep(BEAT);
                ticking.seen().tick();
            }
        });
        let (mine, prefix, rank, size) = (shared.clone(), prefix.to_owned(), at.rank, at.size);
        let thread = std::thread::spawn(move || {
            while !mine.is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let found = look(&store, &prefix, rank, size);
                note(&mut mine.seen(), begun, found);
                std::thread::park_timeout(BEAT);
            }
        });
        Self { at: at.clone(), processes, shared, thread }
    }

    /// The rank that is gone, if one is. `broken` is how something else showed that: then less silence is enough.
    pub fn verdict(&self, store: &Store, prefix: &str, broken: Option<&str>) -> Option<PeersError> {
        let silent = {
            let seen = self.shared.seen();
            if let Some((rank, what)) = &seen.gone {
                return Some(self.gone(*rank, what.clone()));
            }
            if let Some(error) = self.without_store(&seen, broken) {
                return Some(error);
            }
            // Up to the last answer of the store, so that a stop of this process is not the silence of others.
            let silences = seen.beats.iter().map(|(last, since)| (last, seen.round.saturating_duration_since(*since)));
            let others = silences.enumerate().filter(|(rank, _)| *rank != self.at.rank);
            let longest = others.max_by_key(|(_, (_, silence))| *silence)?;
            let (rank, (last, silence)) = longest;
            let has_left = last == LEFT;
            if silence < if has_left || broken.is_some() { SILENCE_OF_SUSPECT } else { SILENCE } {
                return None;
            }
            let heard = format!("nothing was heard of it for {:.0} s", silence.as_secs_f64());
            match (has_left, broken) {
                (true, _) => (rank, "it left the run; see its own message".to_owned()),
                (false, Some(broken)) => (rank, format!("{heard} ({broken})")),
                (false, None) => (rank, heard),
            }
        };
        // All ranks name the rank that was found first: those that notice later may see others leave for its sake.
        let (rank, what) = silent;
        let claimed = store.claim(&gone_key(prefix), &format!("{rank} {what}"));
        let (rank, what) = claimed.ok().and_then(|claimed| parse(&claimed)).unwrap_or((rank, what));
        self.shared.seen().gone = Some((rank, what.clone()));
        Some(self.gone(rank, what))
    }

    /// The error if the store does not answer.
    fn without_store(&self, seen: &Seen, broken: Option<&str>) -> Option<PeersError> {
        let what = match &seen.fails {
            Some((since, what)) if broken.is_some() || since.elapsed() >= SILENCE_OF_SUSPECT => what.clone(),
            _ if seen.unanswered >= SILENCE => "it does not answer".into(),
            _ => return None,
        };
        let stopped = seen.stopped();
        if stopped >= STOPPED {
            let what =
                format!("it was stopped for {:.0} s, and the others have ended without it", stopped.as_secs_f64());
            return Some(self.gone(self.at.rank, what));
        }
        let address = self.at.place();
        Some(match self.at.is_served_by_rank_0 && self.at.rank != 0 {
            true => self.gone(0, format!("its store at {address} does not answer: {what}")),
            false => PeersError::StoreGone { address, what },
        })
    }

    fn gone(&self, rank: usize, what: String) -> PeersError {
        let unknown = || RankProcess { rank, place: "unknown".into() };
        PeersError::Gone { process: self.processes.get(rank).cloned().unwrap_or_else(unknown), what }
    }

    /// Waits for the rank that is gone where an operation failed.
    pub fn blame(&self, store: &Store, prefix: &str, broken: &str) -> Option<PeersError> {
        let start = Instant::now();
        while start.elapsed() < SILENCE + 2 * BEAT {
            if let Some(error) = self.verdict(store, prefix, Some(broken)) {
                return Some(error);
            }
            std::thread::sleep(BEAT / 5);
        }
        None
    }

    /// Ends the watch and says that this rank leaves. The rank that serves the store stays until the others have left,
    /// or for 5 s, so that they can read who is gone.
    pub fn leave(&self, store: &Store, prefix: &str) {
        let start = Instant::now();
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        // It is blocked where the store cannot be reached, and may be slow on a busy machine. The others take a rank that
        // leaves without its word for a rank that was killed.
        while !self.thread.is_finished() && start.elapsed() < SILENCE_OF_SUSPECT {
            std::thread::sleep(BEAT / 100);
        }
        if !self.thread.is_finished() || store.set(&beat(prefix, self.at.rank), LEFT).is_err() {
            return;
        }
        let gone = self.shared.seen().gone.as_ref().map(|(rank, _)| *rank);
        let others = (1..self.at.size).filter(|rank| Some(*rank) != gone);
        let keys: Vec<String> = others.map(|rank| beat(prefix, rank)).collect();
        while self.at.rank == 0 && self.at.is_served_by_rank_0 && start.elapsed() < Duration::from_secs(5) {
            if store.get(&keys).is_ok_and(|beats| beats.iter().all(|last| last == LEFT)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn gone_key(prefix: &str) -> String {
    format!("{prefix}gone")
}

/// The rank and the rest of a text like `3 nothing was heard of it`.
fn parse(text: &str) -> Option<(usize, String)> {
    let (rank, what) = text.split_once(' ')?;
    Some((rank.parse().ok()?, what.to_owned()))
}

/// Says that this rank is alive. Returns what the ranks said last, and which is gone.
fn look(store: &Store, prefix: &str, rank: usize, size: usize) -> Result<(Vec<String>, Option<String>)> {
    store.add(&beat(prefix, rank), 1)?;
    let beats = store.get(&(0..size).map(|rank| beat(prefix, rank)).collect::<Vec<_>>())?;
    let key = gone_key(prefix);
    let gone = if store.has(&key)? { store.get(&[key])?.pop() } else { None };
    Ok((beats, gone))
}

/// Notes what a look has found that was begun then.
fn note(seen: &mut Seen, begun: Instant, found: Result<(Vec<String>, Option<String>)>) {
    let now = Instant::now();
    match found {
        Ok((beats, gone)) => {
            (seen.round, seen.unanswered, seen.fails) = (now, Duration::ZERO, None);
            // The answer may be from before a stop in the middle of the look.
            if now.saturating_duration_since(begun) < STOPPED {
                (seen.stopped, seen.ticked) = (Duration::ZERO, now);
            }
            for (known, last) in seen.beats.iter_mut().zip(beats) {
                if known.0 != last {
                    *known = (last, now);
                }
            }
            seen.gone = gone.as_deref().and_then(parse).or(seen.gone.take());
        }
        Err(error) => {
            let since = seen.fails.as_ref().map_or(now, |(since, _)| *since);
            seen.fails = Some((since, error.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_of_this_process_is_not_the_silence_of_the_store() {
        let answer = || Ok((vec!["1".to_owned(), "1".to_owned()], None));
        let mut seen = Seen::new(2);
        let before = Instant::now().checked_sub(2 * SILENCE).unwrap();
        seen.ticked = before;
        assert!(seen.stopped() >= STOPPED, "it is known before the next tick");
        seen.tick();
        assert!(seen.stopped() >= STOPPED && seen.unanswered == BEAT);
        // The answer to what was asked before the stop says nothing of the time after it.
        note(&mut seen, before, answer());
        assert!(seen.stopped() >= STOPPED && seen.unanswered.is_zero());
        note(&mut seen, Instant::now(), answer());
        assert!(seen.stopped() < STOPPED);
        (0..20).for_each(|_| seen.tick());
        assert!(seen.unanswered >= SILENCE && seen.stopped() < STOPPED);
    }
}
