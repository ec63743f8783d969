//! The connections of a rank with the others: how they are made, and how it waits in them for a rank that may be gone.

use super::cost::{Meter, Operation};
use super::error::{PeersError, RankProcess, Result};
use super::group::{Group, Running};
use super::rendezvous::Rendezvous;
use super::store::Store;
use super::watch::{self, Watch};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tch::{Device, Kind, Tensor};

/// How often a rank that waits looks whether the others are alive.
const LOOK: Duration = Duration::from_millis(100);

/// The connections of a rank among several.
pub(super) struct Joined {
    pub at: Rendezvous,
    pub processes: Vec<RankProcess>,
    /// The beginning of the keys in the store.
    pub prefix: String,
    pub store: Arc<Store>,
    pub watch: Watch,
    /// Not dropped after a failure: its threads may wait for a rank that is gone.
    group: ManuallyDrop<Group>,
    /// The same for GPUs, which connect at their first operation.
    gpus: ManuallyDrop<OnceLock<Group>>,
    has_failed: AtomicBool,
    meter: Mutex<Meter>,
}

/// An operation that runs since some time.
pub(super) struct Begun {
    running: Running,
    at: Instant,
}

impl Joined {
    /// Joins the other ranks, which do the same, and waits for all of them.
    pub fn join(at: Rendezvous) -> Result<Self> {
        let prefix = format!("gavel/{}/", at.attempt);
        let time = at.start_within + Duration::from_secs(15);
        let silent = || {
            let what = "what listens there does not answer".into();
            PeersError::Unreachable { rank: at.rank, address: at.place(), what }
        };
        let opened = at.clone();
        // What listens at the port may be no store, and answer nothing.
        let store = Arc::new(within(time, move || Store::open(&opened)).unwrap_or_else(|| Err(silent()))?);
        let (met, place, keys) = (store.clone(), at.clone(), prefix.clone());
        // The process that serves the store may be stopped.
        let meeting = within(time, move || -> Result<_> { Ok((meet(&met, &place, &keys)?, connect_store(&place)?)) });
        let meeting = meeting.unwrap_or_else(|| Err(silent()));
        let (processes, beats) = meeting.map_err(|error| without_store(&at, error))?;
        let watch = Watch::start(beats, &at, processes.clone(), &prefix);
        let group = connect(&store, &at, &prefix, &watch).inspect_err(|_| watch.leave(&store, &prefix))?;
        let (group, gpus) = (ManuallyDrop::new(group), ManuallyDrop::default());
        let (has_failed, meter) = (AtomicBool::new(false), Mutex::default());
        Ok(Self { at, processes, prefix, store, watch, group, gpus, has_failed, meter })
    }

    pub fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(
        &self,
        operation: &Operation,
        tensor: &Tensor,
        begin: impl FnOnce(&Group) -> Result<Running>,
    ) -> Result<Begun> {
        let group = match tensor.device() {
            Device::Cpu => &*self.group,
            device => self.gpus(device)?,
        };
        let at = Instant::now();
        let running = begin(group)?;
        self.meter().begin(operation, self.at.rank, self.at.size);
        Ok(Begun { running, at })
    }

    /// The connection of this rank's GPU with the other ranks' GPUs. The first call makes it, on all ranks together.
    pub fn gpus(&self, device: Device) -> Result<&Group> {
        if let Some(group) = self.gpus.get() {
            return Ok(group);
        }
        let own = connect_store(&self.at)?;
        let keys = format!("{}nccl", self.prefix);
        let group = Group::join_gpus(&own, &self.at, &keys).map_err(without_gpus)?;
        let connect = move || {
            // NCCL connects with the first operation, which waits for the slowest rank.
            let first = group.sum(&Tensor::f_zeros([1], (Kind::Float, device))?)?;
            while first.wait(LOOK)?.is_none() {}
            Ok(group)
        };
        let group = connect_within_sight(&self.store, &self.prefix, &self.watch, connect).inspect_err(|_| {
            self.has_failed.store(true, Ordering::Relaxed);
        });
        let group = group.map_err(without_gpus)?;
        Ok(self.gpus.get_or_init(|| group))
    }

    pub fn gather(&self, own: &Tensor, all: &Tensor) -> Result<()> {
        self.wait(&self.begin(&Operation::Gather(bytes(own)), own, |group| group.gather(own, all))?)
    }

    pub fn wait(&self, begun: &Begun) -> Result<()> {
        let start = Instant::now();
        let error = loop {
            match begun.running.wait(LOOK) {
                Ok(Some(ago)) => {
                    let now = Instant::now();
                    let ended = now.checked_sub(ago).unwrap_or(now);
                    self.meter().end(begun.at, ended, [start, now]);
                    return Ok(());
                }
                Ok(None) => match self.watch.verdict(&self.store, &self.prefix, None) {
                    Some(error) => break error,
                    None => continue,
                },
                Err(error) => break self.blame(error),
            }
        };
        self.has_failed.store(true, Ordering::Relaxed);
        Err(error)
    }

    /// Adds to a number in the store.
    pub fn count(&self, name: &str, more: i64) -> Result<i64> {
        self.store.add(&format!("{}count/{name}", self.prefix), more).map_err(|error| {
            self.has_failed.store(true, Ordering::Relaxed);
            self.blame(error)
        })
    }

    /// The rank that is gone where an operation failed, or the operation's own error.
    fn blame(&self, error: PeersError) -> PeersError {
        self.watch.blame(&self.store, &self.prefix, &error.to_string()).unwrap_or(error)
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.watch.leave(&self.store, &self.prefix);
        if !self.has_failed.load(Ordering::Relaxed) {
            // SAFETY: this value is dropped, so that nothing uses the groups after it.
            unsafe {
                ManuallyDrop::drop(&mut self.gpus);
                ManuallyDrop::drop(&mut self.group);
            }
        }
    }
}

/// Says in the store that this rank is there, and waits for the others. Returns their processes.
fn meet(store: &Store, at: &Rendezvous, prefix: &str) -> Result<Vec<RankProcess>> {
    if store.add(&watch::beat(prefix, at.rank), 1)? != 1 {
        return Err(PeersError::Twice { rank: at.rank });
    }
    let here = |rank: usize| format!("{prefix}here/{rank}");
    store.set(&here(at.rank), &place())?;
    let start = Instant::now();
    let mut absent: Vec<usize> = (0..at.size).collect();
    loop {
        let mut left = Vec::new();
        for rank in absent {
            if !store.has(&here(rank))? {
                left.push(rank);
            }
        }
        if left.is_empty() {
            break;
        }
        if start.elapsed() >= at.start_within || store.has(&given_up(prefix))? {
            give_up(store, at, prefix, at.size - left.len());
            return Err(PeersError::Absent { ranks: left, size: at.size, within: at.start_within });
        }
        absent = left;
        std::thread::sleep(LOOK / 5);
    }
    let places = store.get(&(0..at.size).map(here).collect::<Vec<_>>())?;
    Ok(places.into_iter().enumerate().map(|(rank, place)| RankProcess { rank, place }).collect())
}

/// How many ranks have given up to wait for others.
fn given_up(prefix: &str) -> String {
    format!("{prefix}given-up")
}

/// Says in the store that this rank waits no more for absent ranks, so that the others name them too. The rank that
/// serves the store stays until the `there` ranks have read this, or for 5 s: they would name it otherwise.
fn give_up(store: &Store, at: &Rendezvous, prefix: &str, there: usize) {
    let (start, key) = (Instant::now(), given_up(prefix));
    let mut ended = store.add(&key, 1);
    while at.rank == 0 && at.is_served_by_rank_0 && start.elapsed() < Duration::from_secs(5) {
        if ended.is_ok_and(|ended| ended >= there as i64) {
            break;
        }
        std::thread::sleep(LOOK / 5);
        ended = store.add(&key, 0);
    }
}

/// Connects this rank with the others.
fn connect(store: &Store, at: &Rendezvous, prefix: &str, watch: &Watch) -> Result<Group> {
    let (at, keys) = (at.clone(), format!("{prefix}gloo"));
    connect_within_sight(store, prefix, watch, move || Group::join(&connect_store(&at)?, &at, &keys))
}

/// A client of the store for a thread of its own.
fn connect_store(at: &Rendezvous) -> Result<Store> {
    Store::connect(&at.address, at.port, false, at.start_within)
}

/// Waits for a connection with the other ranks, unless one of them is gone by then.
fn connect_within_sight(
    store: &Store,
    prefix: &str,
    watch: &Watch,
    connect: impl FnOnce() -> Result<Group> + Send + 'static,
) -> Result<Group> {
    let group = in_background(connect);
    loop {
        match group.recv_timeout(LOOK) {
            Ok(Err(error)) => return Err(watch.blame(store, prefix, &error.to_string()).unwrap_or(error)),
            Ok(joined) => return joined,
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(PeersError::Torch("a thread ended".into())),
            Err(mpsc::RecvTimeoutError::Timeout) => match watch.verdict(store, prefix, None) {
                Some(error) => return Err(error),
                None => continue,
            },
        }
    }
}

/// The error of a rank that has lost the store before it knows the others.
fn without_store(at: &Rendezvous, error: PeersError) -> PeersError {
    let (address, what) = (at.place(), error.to_string());
    match error {
        PeersError::Torch(_) if at.is_served_by_rank_0 && at.rank != 0 => {
            PeersError::Unreachable { rank: at.rank, address, what }
        }
        PeersError::Torch(_) => PeersError::StoreGone { address, what },
        other => other,
    }
}

fn without_gpus(error: PeersError) -> PeersError {
    match error {
        PeersError::Torch(what) => PeersError::Gpus { what },
        other => other,
    }
}

pub(super) fn bytes(tensor: &Tensor) -> usize {
    tensor.numel() * tensor.kind().elt_size_in_bytes()
}

fn in_background<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> mpsc::Receiver<T> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        // Nobody may wait for it any more.
        let _ = send.send(body());
    });
    receive
}

/// What `body` returns, unless it takes longer than `time`.
fn within<T: Send + 'static>(time: Duration, body: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    in_background(body).recv_timeout(time).ok()
}

/// The process and machine of this rank.
pub(super) fn place() -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("process {} on {}", std::process::id(), machine.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn all_ranks_name_absent_ranks() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let start_within = Duration::from_secs(300);
        let at = move |rank: usize, start_within: Duration| Rendezvous {
            rank,
            size: 3,
            local_rank: rank,
            address: "127.0.0.1".into(),
            port,
            is_served_by_rank_0: true,
            attempt: 0,
            start_within,
        };
        let store = Store::connect("127.0.0.1", port, true, start_within).unwrap();
        let second = std::thread::spawn(move || {
            let at = at(1, start_within);
            meet(&connect_store(&at).unwrap(), &at, "run/")
        });
        while !store.has("run/here/1").unwrap() {
            assert!(!second.is_finished());
            std::thread::sleep(LOOK / 5);
        }
        let names_the_third = |error: PeersError| matches!(error, PeersError::Absent { ranks, .. } if ranks == [2]);
        assert!(names_the_third(meet(&store, &at(0, Duration::ZERO), "run/").unwrap_err()));
        assert!(names_the_third(second.join().unwrap().unwrap_err()));
        assert_eq!(store.add(&given_up("run/"), 0).unwrap(), 2);
    }
}
