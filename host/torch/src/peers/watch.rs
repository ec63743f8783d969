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

/// The most time between two ticks that counts as time in which this process ran.
const TICK: Duration = Duration::from_secs(1);

/// A process that was stopped for this long may be taken for gone by the others: it may have said nothing for some time
/// before, as on a busy machine.
const STOPPED: Duration = Duration::from_secs(5);

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

/// What was seen in the store. Its times are those in which this process ran: while it is stopped, as by SIGSTOP, nobody
/// is silent.
struct Seen {
    /// How long this process ran.
    ran: Duration,
    ticked: Instant,
    /// When it ran again after it was stopped, the last time, and how long that took.
    stopped: Option<(Duration, Duration)>,
    /// When the last look began that the store has answered.
    answered: Duration,
    /// Since when it fails, and how.
    fails: Option<(Duration, String)>,
    /// What each rank said last, and when the look began that saw it first.
    beats: Vec<(String, Duration)>,
    /// The rank that was found to be gone first, and how.
    gone: Option<(usize, String)>,
}

impl Seen {
    fn new(size: usize) -> Self {
        Self {
            ran: Duration::ZERO,
            ticked: Instant::now(),
            stopped: None,
            answered: Duration::ZERO,
            fails: None,
            beats: vec![(String::new(), Duration::ZERO); size],
            gone: None,
        }
    }

    /// Notes that this process runs. Returns how long it ran.
    fn tick(&mut self) -> Duration {
        let passed = self.ticked.elapsed();
        self.ticked += passed;
        self.ran += passed.min(TICK);
        if passed >= STOPPED {
            self.stopped = Some((self.ran, passed));
        }
        self.ran
    }

    /// The fault of this process where it has heard nothing since this time, and was stopped after it: the others take it
    /// for gone, and end without it.
    fn own_fault(&self, since: Duration) -> Option<String> {
        let (_, passed) = self.stopped.filter(|(again, _)| since < *again)?;
        Some(format!("it was stopped for {:.0} s, and the others have ended without it", passed.as_secs_f64()))
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
                let begun = mine.seen().tick();
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
            let mut seen = self.shared.seen();
            seen.tick();
            if let Some((rank, what)) = &seen.gone {
                return Some(self.gone(*rank, what.clone()));
            }
            if let Some(error) = self.without_store(&seen, broken) {
                return Some(error);
            }
            // Up to the last answer of the store: while it is slow, nobody is silent.
            let others = seen.beats.iter().enumerate().filter(|(rank, _)| *rank != self.at.rank);
            let (rank, (last, since)) = others.min_by_key(|(_, (_, since))| *since)?;
            let silence = seen.answered.saturating_sub(*since);
            let has_left = last == LEFT;
            if silence < if has_left || broken.is_some() { SILENCE_OF_SUSPECT } else { SILENCE } {
                return None;
            }
            let heard = format!("nothing was heard of it for {:.0} s", silence.as_secs_f64());
            // Where this process serves the store, it hears after a stop what others had sent before they ended.
            let since = since.saturating_sub(SILENCE_OF_SUSPECT);
            match (seen.own_fault(since), has_left, broken) {
                (Some(own), ..) => (self.at.rank, own),
                (None, true, _) => (rank, "it left the run; see its own message".to_owned()),
                (None, false, Some(broken)) => (rank, format!("{heard} ({broken})")),
                (None, false, None) => (rank, heard),
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
            Some((since, what)) if broken.is_some() || seen.ran - *since >= SILENCE_OF_SUSPECT => what.clone(),
            _ if seen.ran - seen.answered >= SILENCE => {
                format!("it said nothing for {:.0} s", (seen.ran - seen.answered).as_secs_f64())
            }
            _ => return None,
        };
        if let Some(own) = seen.own_fault(seen.answered) {
            return Some(self.gone(self.at.rank, own));
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
fn note(seen: &mut Seen, begun: Duration, found: Result<(Vec<String>, Option<String>)>) {
    let now = seen.tick();
    match found {
        Ok((beats, gone)) => {
            (seen.answered, seen.fails) = (begun, None);
            for (known, last) in seen.beats.iter_mut().zip(beats) {
                if known.0 != last {
                    *known = (last, begun);
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

    /// As if the process had been stopped for 20 s.
    fn stop(seen: &mut Seen) {
        seen.ticked = Instant::now().checked_sub(2 * SILENCE).unwrap();
    }

    fn beats(number: u32) -> Result<(Vec<String>, Option<String>)> {
        Ok((vec![number.to_string(), number.to_string()], None))
    }

    #[test]
    fn a_stop_of_this_process_is_not_the_silence_of_others() {
        let mut seen = Seen::new(2);
        let begun = seen.tick();
        note(&mut seen, begun, beats(1));
        let begun = seen.tick();
        stop(&mut seen);
        // The look was begun before the stop.
        note(&mut seen, begun, beats(2));
        assert!(seen.ran <= 3 * TICK && seen.answered == begun, "{:?}", seen.ran);
        let own = seen.own_fault(seen.answered).unwrap();
        assert!(own.starts_with("it was stopped for 2"), "{own}");
        // All ranks were stopped together, and run again.
        let begun = seen.tick();
        note(&mut seen, begun, beats(3));
        assert_eq!((seen.own_fault(seen.answered), seen.own_fault(seen.beats[0].1)), (None, None));
        assert!(seen.ran - seen.answered < SILENCE_OF_SUSPECT);
    }

    #[test]
    fn a_rank_that_says_nothing_more_is_silent_in_the_time_that_this_process_runs() {
        let mut seen = Seen::new(2);
        note(&mut seen, Duration::ZERO, beats(1));
        for _ in 0..20 {
            seen.ticked = Instant::now().checked_sub(TICK).unwrap();
            let begun = seen.tick();
            note(&mut seen, begun, beats(1));
        }
        assert!(seen.answered - seen.beats[0].1 >= SILENCE && seen.own_fault(seen.beats[0].1).is_none());
        note(&mut seen, Duration::ZERO, Err(PeersError::Torch("failed".into())));
        assert_eq!(seen.fails.as_ref().map(|(_, what)| what.as_str()), Some("libtorch: failed"));
    }
}
