//! The ranks of a run: processes that train one model together, each on its share of the data. They meet in c10d's
//! TCPStore and compute over Gloo and NCCL, so that torchrun, Slurm and Kubernetes start them as they start PyTorch's.
//!
//! A process by itself is a run of one rank: every operation is then the identity and costs nothing.

mod address;
mod cost;
mod error;
mod group;
mod joined;
mod rendezvous;
mod store;
mod watch;

pub use cost::Cost;
pub use error::{PeersError, RankProcess};
pub use rendezvous::Rendezvous;

use cost::Operation;
use error::Result;
use joined::{Begun, Joined, bytes, place};
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

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
        let local_rank = at.local_rank;
        let joined = Joined::join(at)?;
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

    /// The number of this rank among the ranks of its machine, which is also the number of its device.
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

    /// Overwrites a tensor with the tensor of the rank `from`, of the same shape and kind.
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
    /// The store does not answer. The error names the rank that is gone, if one is.
    pub fn count(&self, name: &str, more: i64) -> Result<i64> {
        self.joined.as_ref().map_or(Ok(0), |joined| joined.count(name, more))
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

#[cfg(test)]
mod tests;
