//! Why there is no gateway, or no agent.

use gavel_endpoint::NoRootCertificates;
use std::net::SocketAddr;

/// Why there is no gateway, or no agent that asks it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum GatewayError {
    /// Another program has its port.
    #[error(
        "gateway.address: the port of {address} is taken\nhint: set another one, or port 0, with which each run has a free one"
    )]
    Taken { address: SocketAddr },
    /// It cannot listen.
    #[error("gateway.address: cannot listen at {address}: {source}")]
    Listen { address: SocketAddr, source: std::io::Error },
    /// A program does not exist.
    #[error(
        "{agent}.command: there is no program {program:?}\nhint: name one that is in PATH, or its path from the folder in which gavel starts"
    )]
    NoProgram { agent: String, program: String },
    /// The machine gives no random numbers.
    #[error("the machine gives no random numbers for the keys of sessions")]
    NoRandomness,
    /// Servers cannot be asked.
    #[error("{agent}.url: {source}")]
    Tls { agent: String, source: NoRootCertificates },
    /// The same.
    #[error("{agent}.url: {source}")]
    Client { agent: String, source: reqwest::Error },
}
