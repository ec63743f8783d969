//! Errors of the ranks of a run.

use std::time::Duration;
use tch::TchError;

/// The process of a rank, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankProcess {
    /// Its rank.
    pub rank: usize,
    /// Its process and machine, such as `process 12 on node-3`.
    pub place: String,
}

impl RankProcess {
    /// The machine of the process.
    pub(super) fn machine(&self) -> &str {
        self.place.split_once(" on ").map_or("", |(_, machine)| machine)
    }
}

impl std::fmt::Display for RankProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} ({})", self.rank, self.place)
    }
}

/// A failure to join the ranks of a run, or to compute something with them.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum PeersError {
    /// A variable of the environment that is missing or wrong.
    #[error("the variable {name} {what}\nhint: {hint}")]
    Variable { name: &'static str, what: String, hint: &'static str },
    /// Another program has the port of the store.
    #[error("port {port} of this machine is taken\nhint: set MASTER_PORT to a free port, the same on all ranks")]
    PortTaken { port: u16 },
    /// Nothing answers at the address of the store.
    #[error(
        "rank {rank} cannot reach rank 0 at {address}: {what}\nhint: check MASTER_ADDR and MASTER_PORT, and that rank 0 runs"
    )]
    Unreachable {
        /// The rank that tried.
        rank: usize,
        /// `host:port`
        address: String,
        what: String,
    },
    /// A rank that others, on other machines, would have to reach by loopback.
    #[error(
        "{process} reaches {address} by loopback, and ranks on other machines cannot reach it there\nhint: set MASTER_ADDR to an address of its machine that the others reach, such as 10.0.0.1"
    )]
    OnlyLoopback {
        process: RankProcess,
        /// The host of the store.
        address: String,
    },
    /// Ranks that were not started, or not in time.
    #[error("{} of {size} did not start within {} s", list(ranks), within.as_secs())]
    Absent {
        ranks: Vec<usize>,
        /// How many ranks the run has.
        size: usize,
        /// How long they were waited for.
        within: Duration,
    },
    /// Two processes with one rank.
    #[error("two processes have rank {rank}\nhint: give each process another RANK, or each run another MASTER_PORT")]
    Twice { rank: usize },
    /// A rank that would compute something else.
    #[error("{process} has another {what} than rank 0: {found} instead of {expected}\nhint: start all ranks alike")]
    Differs { process: RankProcess, what: String, found: String, expected: String },
    /// A rank that ended, or that the network no longer reaches.
    #[error("{process} is gone: {what}")]
    Gone {
        process: RankProcess,
        /// How that was noticed.
        what: String,
    },
    /// The store is gone, and it is not known with whom.
    #[error("the store of the run at {address} is gone: {what}")]
    StoreGone {
        /// `host:port`
        address: String,
        /// How that was noticed.
        what: String,
    },
    /// GPUs that NCCL does not connect.
    #[error("the GPUs of several ranks cannot be connected: {what}\nhint: train with one rank, or on the CPU")]
    Gpus { what: String },
    /// Something that a rank sent cannot be read.
    #[error("rank {rank} sent what is not {expected}")]
    Message { rank: usize, expected: &'static str },
    /// libtorch failed.
    #[error("libtorch: {0}")]
    Torch(String),
}

fn list(ranks: &[usize]) -> String {
    let numbers: Vec<String> = ranks.iter().map(usize::to_string).collect();
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, numbers.join(", "))
}

/// The first line of libtorch's message that has a text; a C++ backtrace follows it.
pub(super) fn first_line(error: &TchError) -> String {
    let text = match error {
        TchError::Torch(text) => text.clone(),
        other => other.to_string(),
    };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("it failed without a message").to_owned()
}

impl From<TchError> for PeersError {
    fn from(error: TchError) -> Self {
        Self::Torch(first_line(&error))
    }
}

pub(super) type Result<T> = std::result::Result<T, PeersError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_libtorch_is_never_empty() {
        let shown = |text: &str| PeersError::from(TchError::Torch(text.into())).to_string();
        let traced = "\nfailed to recv, got 0 bytes\nException raised from recvBytes at Utils.hpp:678";
        assert_eq!(shown(traced), "libtorch: failed to recv, got 0 bytes");
        assert_eq!(shown(" \n"), "libtorch: it failed without a message");
    }
}
