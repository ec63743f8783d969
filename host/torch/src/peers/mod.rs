//! The ranks of a run: processes that train one model together, each on its share of the data. They meet in c10d's
//! TCPStore and compute over Gloo and NCCL, so that torchrun, Slurm and Kubernetes start them as they start PyTorch's.
//!
//! A process by itself is a run of one rank: every operation is then the identity and costs nothing.

mod address;
mod cost;
mod error;
mod group;
mod rendezvous;
mod store;
mod watch;

pub use cost::Cost;
pub use error::{PeersError, RankProcess};
pub use rendezvous::Rendezvous;

use cost::{Meter, Operation};
use error::Result;
use group::{Group, Running};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};
use store::Store;
use tch::{Device, Kind, Tensor};
use watch::Watch;

/// How often a rank that waits looks whether the others are alive.
const LOOK: Duration = Duration::from_millis(100);

/// The bytes for each rank that Gloo reduces to one rank in one operation. Of longer tensors it sends parts twice.
const REDUCED_AT_ONCE: usize = 2 << 20;

/// The ranks of a run, seen from one of them. A clone is the same rank.
///
/// All ranks call the same operations in the same order. An operation waits for the slowest rank, for at most 30
/// minutes. Where a rank ends, is killed or cannot be reached any more, those that wait get an error that names it
/// within 15 seconds; nothing can be computed with them after that.
#[derive(Clone)]
pub struct Peers {
    local_rank: usize,
    joined: Option<Arc<Joined>>,
}

/// The connections of a rank among several.
struct Joined {
    at: Rendezvous,
    processes: Vec<RankProcess>,
    /// The beginning of the keys in the store.
    prefix: String,
    store: Store,
    watch: Watch,
    /// Not dropped after a failure: its threads may wait for a rank that is gone.
    group: ManuallyDrop<Group>,
    /// The same for GPUs, which connect at their first operation.
    gpus: ManuallyDrop<OnceLock<Group>>,
    has_failed: AtomicBool,
    meter: Mutex<Meter>,
}

/// An operation that runs since some time.
struct Begun {
    running: Running,
    at: Instant,
}

/// A sum that is computed in the background.
#[must_use = "the sum is there after `wait`"]
pub struct PendingSum(Option<(Vec<Begun>, Arc<Joined>)>);

impl PendingSum {
    /// Waits until the tensor has the sum.
    ///
    /// # Errors
    /// A rank is gone, or libtorch fails.
    pub fn wait(self) -> Result<()> {
        match self.0 {
            Some((parts, joined)) => parts.iter().try_for_each(|begun| joined.wait(begun)),
            None => Ok(()),
        }
    }
}

impl Peers {
    /// A run of one rank.
    pub fn alone() -> Self {
        Self { local_rank: 0, joined: None }
    }

    /// Joins the ranks that the environment describes; a run of one rank without such variables.
    ///
    /// # Errors
    /// As [`Rendezvous::from_environment`] and [`join`](Self::join).
    pub fn from_environment() -> Result<Self> {
        Rendezvous::from_environment()?.map_or_else(|| Ok(Self::alone()), Self::join)
    }

    /// Joins the other ranks, which do the same, and waits for all of them.
    ///
    /// # Errors
    /// The port is taken, a rank does not start in time, two have the same number, or the network fails.
    pub fn join(at: Rendezvous) -> Result<Self> {
        if at.size == 1 {
            return Ok(Self { local_rank: at.local_rank, joined: None });
        }
        let prefix = format!("gavel/{}/", at.attempt);
        let opened = at.clone();
        // What listens at the port may be no store, and answer nothing.
        let store =
            within(at.start_within + Duration::from_secs(15), move || Store::open(&opened)).unwrap_or_else(|| {
                let what = "what listens there does not answer".into();
                Err(PeersError::Unreachable { rank: at.rank, address: at.place(), what })
            })?;
        let processes = meet(&store, &at, &prefix)?;
        let beats = Store::connect(&at.address, at.port, false, at.start_within)?;
        let watch = Watch::start(beats, &at, processes.clone(), &prefix);
        let group = connect(&store, &at, &prefix, &watch).inspect_err(|_| watch.leave(&store, &prefix))?;
        let local_rank = at.local_rank;
        let (group, gpus) = (ManuallyDrop::new(group), ManuallyDrop::default());
        let (has_failed, meter) = (AtomicBool::new(false), Mutex::default());
        let joined = Joined { at, processes, prefix, store, watch, group, gpus, has_failed, meter };
        Ok(Self { local_rank, joined: Some(Arc::new(joined)) })
    }

    /// The number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.joined.as_ref().map_or(0, |joined| joined.at.rank)
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.joined.as_ref().map_or(1, |joined| joined.at.size)
    }

    /// The number of this rank among those of its machine, which is that of its device.
    pub fn local_rank(&self) -> usize {
        self.local_rank
    }

    /// The process of a rank, for messages.
    pub fn process(&self, rank: usize) -> RankProcess {
        let known = self.joined.as_ref().and_then(|joined| joined.processes.get(rank));
        known.cloned().unwrap_or_else(|| RankProcess { rank, place: place() })
    }

    /// The rank that is gone, if one is, without an operation: for work between operations that takes long.
    pub fn failure(&self) -> Option<PeersError> {
        let joined = self.joined.as_ref()?;
        joined.watch.verdict(&joined.store, &joined.prefix, None)
    }

    /// Sums a tensor over all ranks, in place. All ranks get the same numbers, on the CPU the same each time.
    ///
    /// # Errors
    /// A rank is gone, the tensor is not contiguous, it is on a GPU and NCCL does not connect the ranks, or libtorch
    /// fails.
    pub fn sum(&self, tensor: &Tensor) -> Result<()> {
        self.begin_sum(tensor)?.wait()
    }

    /// Begins a sum in the background. Until it has ended the tensor is not to be touched.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    pub fn begin_sum(&self, tensor: &Tensor) -> Result<PendingSum> {
        let Some(joined) = &self.joined else { return Ok(PendingSum(None)) };
        let begun = joined.begin(&Operation::Sum(bytes(tensor)), tensor, |group| group.sum(tensor))?;
        Ok(PendingSum(Some((vec![begun], joined.clone()))))
    }

    /// Begins a sum in the background that the rank `to` alone gets, in place. The tensors of the
    /// others have no meaning afterwards.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    pub fn begin_reduce(&self, tensor: &Tensor, to: usize) -> Result<PendingSum> {
        let Some(joined) = &self.joined else { return Ok(PendingSum(None)) };
        if !tensor.is_contiguous() {
            return Err(PeersError::Torch("a tensor of several ranks must be contiguous".into()));
        }
        let longest = match tensor.device() {
            Device::Cpu => REDUCED_AT_ONCE * joined.at.size / tensor.kind().elt_size_in_bytes(),
            _ => tensor.numel().max(1),
        };
        let parts = tensor.f_detach()?.f_flatten(0, -1)?.f_split(longest as i64, 0)?;
        let begin =
            |part: &Tensor| joined.begin(&Operation::Reduce(bytes(part), to), part, |group| group.reduce(part, to));
        Ok(PendingSum(Some((parts.iter().map(begin).collect::<Result<_>>()?, joined.clone()))))
    }

    /// The cost of the operations since the last call.
    pub fn take_cost(&self) -> Cost {
        self.joined.as_ref().map_or_else(Cost::default, |joined| joined.meter().take())
    }

    /// Overwrites a tensor with that of the rank `from`, of the same shape and kind.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    pub fn broadcast(&self, tensor: &Tensor, from: usize) -> Result<()> {
        match &self.joined {
            Some(joined) => {
                let operation = Operation::Broadcast(bytes(tensor), from);
                joined.wait(&joined.begin(&operation, tensor, |group| group.broadcast(tensor, from))?)
            }
            None => Ok(()),
        }
    }

    /// The bytes of all ranks, in their order; each may have as many as it wants.
    ///
    /// # Errors
    /// A rank is gone, or libtorch fails.
    pub fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let Some(joined) = &self.joined else { return Ok(vec![own.to_vec()]) };
        let zeros = |size: usize, kind| Tensor::f_zeros([size as i64], (kind, Device::Cpu));
        let lengths = zeros(joined.at.size, Kind::Int64)?;
        joined.gather(&Tensor::f_from_slice(&[own.len() as i64])?, &lengths)?;
        let lengths: Vec<usize> = Vec::<i64>::try_from(lengths)?.into_iter().map(|length| length as usize).collect();
        let longest = lengths.iter().copied().max().unwrap_or_default();
        if longest == 0 {
            return Ok(vec![Vec::new(); joined.at.size]);
        }
        let padded = zeros(longest, Kind::Uint8)?;
        padded.f_narrow(0, 0, own.len() as i64)?.f_copy_(&Tensor::f_from_slice(own)?)?;
        let all = zeros(longest * joined.at.size, Kind::Uint8)?;
        joined.gather(&padded, &all)?;
        let all = Vec::<u8>::try_from(all)?;
        Ok(all.chunks(longest).zip(lengths).map(|(bytes, length)| bytes[..length].to_vec()).collect())
    }

    /// Adds to a number that all ranks share, 0 at first, and returns it. Unlike other operations this waits for nobody,
    /// and ranks may call it when they like. A run of one rank has no such numbers: it is always 0.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn count(&self, name: &str, more: i64) -> Result<i64> {
        match &self.joined {
            Some(joined) => joined.store.add(&format!("{}count/{name}", joined.prefix), more),
            None => Ok(0),
        }
    }

    /// Refuses ranks that would compute something else: each gives the same list of what must be equal, such as
    /// `("configuration", its hash)`.
    ///
    /// # Errors
    /// A rank differs from rank 0; it is named, and what differs, on all ranks.
    pub fn agree(&self, terms: &[(&str, &str)]) -> Result<()> {
        if self.joined.is_none() {
            return Ok(());
        }
        let own: Vec<&str> = terms.iter().flat_map(|(what, value)| [*what, *value]).collect();
        let all = self.gather(own.join("\0").as_bytes())?;
        let all: Vec<String> = all.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
        let all: Vec<Vec<&str>> = all.iter().map(|text| text.split('\0').collect()).collect();
        let term = |rank: usize, at: usize| all[rank].get(at).copied().unwrap_or("nothing");
        for rank in 1..all.len() {
            let length = all[0].len().max(all[rank].len());
            if let Some(at) = (0..length).find(|&at| term(rank, at) != term(0, at)) {
                // Names and values take turns.
                let what = term(0, at - at % 2).to_owned();
                let (found, expected) = (term(rank, at).to_owned(), term(0, at).to_owned());
                return Err(PeersError::Differs { process: self.process(rank), what, found, expected });
            }
        }
        Ok(())
    }
}

impl Joined {
    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(
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

    /// The connection of this rank's GPU with those of the others. The first call makes it, on all ranks together.
    fn gpus(&self, device: Device) -> Result<&Group> {
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

    fn gather(&self, own: &Tensor, all: &Tensor) -> Result<()> {
        self.wait(&self.begin(&Operation::Gather(bytes(own)), own, |group| group.gather(own, all))?)
    }

    fn wait(&self, begun: &Begun) -> Result<()> {
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
                Err(error) => {
                    let broken = error.to_string();
                    break self.watch.blame(&self.store, &self.prefix, &broken).unwrap_or(error);
                }
            }
        };
        self.has_failed.store(true, Ordering::Relaxed);
        Err(error)
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
        if start.elapsed() >= at.start_within {
            return Err(PeersError::Absent { ranks: left, size: at.size, within: at.start_within });
        }
        absent = left;
        std::thread::sleep(LOOK / 5);
    }
    let places = store.get(&(0..at.size).map(here).collect::<Vec<_>>())?;
    Ok(places.into_iter().enumerate().map(|(rank, place)| RankProcess { rank, place }).collect())
}

/// Connects this rank with the others.
fn connect(store: &Store, at: &Rendezvous, prefix: &str, watch: &Watch) -> Result<Group> {
    let (own, at, keys) = (connect_store(at)?, at.clone(), format!("{prefix}gloo"));
    connect_within_sight(store, prefix, watch, move || Group::join(&own, &at, &keys))
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

fn without_gpus(error: PeersError) -> PeersError {
    match error {
        PeersError::Torch(what) => PeersError::Gpus { what },
        other => other,
    }
}

fn bytes(tensor: &Tensor) -> usize {
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
fn place() -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("process {} on {}", std::process::id(), machine.trim())
}

#[cfg(test)]
mod tests;
