//! Requests that were refused, and their messages.

use super::target::Target;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use wasmtime_wasi_http::Error;

/// The number of refusals whose messages are kept.
const KEPT: usize = 3;

/// A request that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No grant covers it.
    NotGranted(Target),
    /// A grant covers its name, but not the address that the name resolves to.
    Address(Target, IpAddr),
}

impl Refusal {
    /// The error that the guest gets.
    pub(super) fn error(&self) -> Error {
        match self {
            Self::NotGranted(_) => Error::HttpRequestDenied,
            Self::Address(..) => Error::DestinationIpProhibited,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted(target) => write!(f, "the request to {target} was refused: it is not granted"),
            Self::Address(target, address) => write!(
                f,
                "the request to {target} was refused: its address {address} is not public, and not granted by itself"
            ),
        }
    }
}

/// The requests that were refused in a call. They outlive the call's store.
#[derive(Clone, Default)]
pub(crate) struct Refusals(Arc<Mutex<Refused>>);

#[derive(Default)]
struct Refused {
    kept: Vec<Refusal>,
    count: usize,
}

impl Refusals {
    pub(super) fn note(&self, refusal: Refusal) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused.count += 1;
        if refused.kept.len() < KEPT && !refused.kept.contains(&refusal) {
            refused.kept.push(refusal);
        }
    }

    /// All refusals in one line, if there are any.
    pub(crate) fn text(&self) -> Option<String> {
        let refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: Vec<String> = refused.kept.iter().map(Refusal::to_string).collect();
        match refused.count - kept.len() {
            0 if kept.is_empty() => None,
            0 => Some(kept.join("; ")),
            more => Some(format!("{}; and {more} more", kept.join("; "))),
        }
    }
}
