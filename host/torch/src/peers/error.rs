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
pub enum PeersError {
    /// A variable of the environment that is missing or wrong.
    #[error("the variable {name} {what}\nhint: {hint}")]
    Variable {
        /// The variable.
        name: &'static str,
        /// What is wrong with it.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// Another program has the port of the store.
    #[error("port {port} of this machine is taken\nhint: set MASTER_PORT to a free port, the same on all ranks")]
    PortTaken {
        /// The port.
        port: u16,
    },
    /// Nothing answers at the address of the store.
    #[error(
        "rank {rank} cannot reach rank 0 at {address}: {what}\nhint: check MASTER_ADDR and MASTER_PORT, and that rank 0 runs"
    )]
    Unreachable {
        /// The rank that tried.
        rank: usize,
        /// `host:port`
        address: String,
        /// Why.
        what: String,
    },
    /// A rank that others, on other machines, would have to reach by loopback.
    #[error(
        "{process} reaches {address} by loopback, and ranks on other machines cannot reach it there\nhint: set MASTER_ADDR to an address of its machine that the others reach, such as 10.0.0.1"
    )]
    OnlyLoopback {
        /// The rank.
        process: RankProcess,
        /// The host of the store.
        address: String,
    },
    /// Ranks that were not started, or not in time.
    #[error("{} of {size} did not start within {} s", list(ranks), within.as_secs())]
    Absent {
        /// Those that are missing.
        ranks: Vec<usize>,
        /// How many ranks the run has.
        size: usize,
        /// How long they were waited for.
        within: Duration,
    },
    /// Two processes with one rank.
    #[error("two processes have rank {rank}\nhint: give each process another RANK, or each run another MASTER_PORT")]
    Twice {
        /// The rank.
        rank: usize,
    },
    /// A rank that would compute something else.
    #[error("{process} has another {what} than rank 0: {found} instead of {expected}\nhint: start all ranks alike")]
    Differs {
        /// The rank that differs from rank 0.
        process: RankProcess,
        /// What differs.
        what: String,
        /// What it has.
        found: String,
        /// What rank 0 has.
        expected: String,
    },
    /// A rank that ended, or that the network no longer reaches.
    #[error("{process} is gone: {what}")]
    Gone {
        /// The rank.
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
    Gpus {
        /// Why.
        what: String,
    },
    /// Something that a rank sent cannot be read.
    #[error("rank {rank} sent what is not {expected}")]
    Message {
        /// The rank.
        rank: usize,
        /// What was expected.
        expected: &'static str,
    },
    /// libtorch failed.
    #[error("libtorch: {0}")]
    Torch(String),
}

fn list(ranks: &[usize]) -> String {
    let numbers: Vec<String> = ranks.iter().map(usize::to_string).collect();
    format!("{} {}", if ranks.len() == 1 { "rank" } else { "ranks" }, numbers.join(", "))
}

/// The first line of libtorch's message; a C++ backtrace follows it.
pub(super) fn first_line(error: &TchError) -> String {
    let text = match error {
        TchError::Torch(text) => text.clone(),
        other => other.to_string(),
    };
    text.lines().next().unwrap_or_default().to_owned()
}

impl From<TchError> for PeersError {
    fn from(error: TchError) -> Self {
        Self::Torch(first_line(&error))
    }
}

pub(super) type Result<T> = std::result::Result<T, PeersError>;
