//! The ranks of a run, as its schedule sees them: each draws and scores a share of the groups, and then all know all
//! groups. What follows from them is computed alike by all, except for what takes long, which they share again.

mod alike;
mod drawing;
mod exchanged_groups;

pub(crate) use alike::{check_configuration, check_plugins};
pub(crate) use exchanged_groups::{from_bytes, to_bytes, to_member, to_queued};

use crate::error::{PipelineError, Result};
use drawing::drawing_ranks;
use gavel_config::RewardModelTable;
use gavel_torch::peers::{Peers, PeersError};
use gavel_train::{Experience, shares};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How often a rank that waits looks whether the others are alive.
const LOOK: Duration = Duration::from_millis(100);

/// The ranks of a run, seen from one of them. A clone is the same rank.
#[derive(Clone)]
pub(crate) struct Ranks {
    peers: Peers,
    /// Those that draw groups, in their order.
    drawing: Arc<[usize]>,
}

impl Ranks {
    /// The ranks of a run with these reward models, some of which may be on ranks that draw nothing.
    ///
    /// # Errors
    /// A table names a rank that does not exist, or no rank is left that draws.
    pub(crate) fn of(peers: &Peers, reward_models: &BTreeMap<String, RewardModelTable>) -> Result<Self> {
        let drawing = drawing_ranks(reward_models, peers.size())?.into();
        Ok(Self { peers: peers.clone(), drawing })
    }

    /// A run of one process.
    pub(crate) fn alone() -> Self {
        Self { peers: Peers::alone(), drawing: [0].into() }
    }

    pub(crate) fn peers(&self) -> Peers {
        self.peers.clone()
    }

    pub(crate) fn rank(&self) -> usize {
        self.peers.rank()
    }

    pub(crate) fn size(&self) -> usize {
        self.peers.size()
    }

    /// Whether this is the rank that records what belongs to all.
    pub(crate) fn is_first(&self) -> bool {
        self.rank() == 0
    }

    pub(crate) fn are_several(&self) -> bool {
        self.size() > 1
    }

    /// How many ranks draw groups.
    pub(crate) fn drawing(&self) -> usize {
        self.drawing.len()
    }

    /// Whether the rank `rank` draws groups.
    pub(crate) fn draws(&self, rank: usize) -> bool {
        self.drawing.contains(&rank)
    }

    /// Whether this rank draws the group of this number if groups are dealt out.
    pub(crate) fn is_dealt(&self, number: u64) -> bool {
        self.drawing.get((number % self.drawing() as u64) as usize) == Some(&self.rank())
    }

    /// The address by which the other ranks reach this one.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn address(&self) -> Result<IpAddr> {
        Ok(self.peers.address()?)
    }

    /// The rows of a mini-batch that this rank computes: about as many tokens as the others.
    pub(crate) fn own_rows(&self, rows: Vec<Experience>) -> Vec<Experience> {
        let share = self.own(rows.iter().map(|row| (&*row.prompt, row.response.len())));
        rows.into_iter().skip(share.start).take(share.len()).collect()
    }

    /// The share of this rank in rows, each a prompt and the number of tokens after it.
    pub(crate) fn own<'a>(&self, rows: impl IntoIterator<Item = (&'a [u32], usize)>) -> Range<usize> {
        shares(rows, self.size()).swap_remove(self.rank())
    }

    /// What each rank gives, in their order. All ranks call this at the same place of the run, and it waits for them.
    ///
    /// # Errors
    /// A rank is gone.
    pub(crate) fn exchange_bytes(&self, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        match self.are_several() {
            true => Ok(self.peers.gather(&own)?),
            false => Ok(vec![own]),
        }
    }

    /// The same without blocking this thread.
    pub(crate) async fn exchange_bytes_beside(&self, own: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let ranks = self.clone();
        let exchanged = tokio::task::spawn_blocking(move || ranks.exchange_bytes(own)).await;
        exchanged
            .unwrap_or_else(|_| Err(PipelineError::Stopped("the exchange with the other ranks was stopped".into())))
    }

    /// The own value, if no rank has an error. Otherwise all ranks stop here, each with the first error. All ranks call
    /// this at the same place of the run.
    ///
    /// # Errors
    /// A rank has an error, or is gone.
    pub(crate) async fn or_stop_together<T>(&self, own: Result<T>) -> Result<T> {
        if !self.are_several() {
            return own;
        }
        // The text of an error may be empty.
        let why = own.as_ref().err().map(ToString::to_string);
        let why = serde_json::to_vec(&why).map_err(|error| unreadable(self.rank(), error))?;
        for (rank, why) in self.exchange_bytes_beside(why).await?.iter().enumerate() {
            if let Some(why) = serde_json::from_slice(why).map_err(|error| unreadable(rank, error))? {
                return Err(PipelineError::StoppedTogether(why));
            }
        }
        own
    }

    /// Rank 0's decision, on all ranks. `written` turns it into bytes, and `read` reads them. All ranks call this at the
    /// same place of the run.
    ///
    /// # Errors
    /// Rank 0 has an error, with which all ranks stop, or a rank is gone.
    pub(crate) async fn decided_by_first<T>(
        &self,
        decide: impl Future<Output = Result<T>>,
        written: impl Fn(&T) -> Vec<u8>,
        read: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T> {
        if !self.are_several() {
            return decide.await;
        }
        let own = if self.is_first() { decide.await.map(Some) } else { Ok(None) };
        let own = self.or_stop_together(own).await?;
        let all = self.exchange_bytes_beside(own.map(|own| written(&own)).unwrap_or_default()).await?;
        let first = all.first().map(Vec::as_slice).unwrap_or_default();
        read(first).ok_or_else(|| unreadable(0, "a decision that is cut"))
    }

    /// The values of all ranks, in their order.
    ///
    /// # Errors
    /// As [`exchange_bytes`](Self::exchange_bytes).
    pub(crate) fn exchange<T: Serialize + DeserializeOwned>(&self, own: &T) -> Result<Vec<T>> {
        let own = serde_json::to_vec(own).map_err(|error| unreadable(self.rank(), error))?;
        let all = self.exchange_bytes(own)?;
        let read =
            |(rank, bytes): (usize, &Vec<u8>)| serde_json::from_slice(bytes).map_err(|error| unreadable(rank, error));
        all.iter().enumerate().map(read).collect()
    }

    /// The value of rank 0.
    ///
    /// # Errors
    /// As [`exchange_bytes`](Self::exchange_bytes).
    pub(crate) fn of_first<T: Serialize + DeserializeOwned>(&self, own: Option<T>) -> Result<Option<T>> {
        Ok(self.exchange(&own)?.swap_remove(0))
    }

    /// Adds to a number that all ranks share, and returns it.
    ///
    /// # Errors
    /// A rank is gone.
    pub(crate) async fn count(&self, name: &'static str, more: i64) -> Result<i64> {
        let (send, mut counted) = oneshot::channel();
        let peers = self.peers.clone();
        // A thread of its own, which nobody waits for: where the network is cut it hears nothing for minutes.
        std::thread::spawn(move || drop(send.send(peers.count(name, more))));
        loop {
            match tokio::time::timeout(LOOK, &mut counted).await {
                Ok(Ok(counted)) => return Ok(counted?),
                Ok(Err(_)) => return Err(PipelineError::Stopped("a thread that counts for all ranks ended".into())),
                Err(_) => self.look()?,
            }
        }
    }

    /// Fails if a rank is gone.
    fn look(&self) -> Result<()> {
        self.peers.failure().map_or(Ok(()), |gone| Err(PipelineError::Ranks(gone)))
    }

    /// Waits until a number that all ranks share is at least `enough`.
    ///
    /// # Errors
    /// A rank is gone.
    pub(crate) async fn until_counted(&self, name: &'static str, enough: i64) -> Result<()> {
        // So that the store has about a thousand questions a second, however many ranks there are.
        let pause = Duration::from_millis(5) + self.size() as u32 * Duration::from_millis(1);
        loop {
            self.look()?;
            if self.count(name, 0).await? >= enough {
                return Ok(());
            }
            tokio::time::sleep(pause).await;
        }
    }
}

pub(crate) fn unreadable(rank: usize, what: impl std::fmt::Display) -> PipelineError {
    PipelineError::Stopped(format!("rank {rank} sent what cannot be read: {what}"))
}

impl From<PeersError> for PipelineError {
    fn from(error: PeersError) -> Self {
        Self::Ranks(error)
    }
}

#[cfg(test)]
mod tests;
