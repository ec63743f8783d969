//! The grants of a plugin. It reaches nothing beyond its sample, unless the run's
//! configuration grants it.
//!
//! [`Grants`] are the grants in the configuration. At load they become `Granted`:
//! checked, with open folders and the values of variables. Each call gets a
//! share of them, which the host's side of the WASI interfaces uses. Memory and
//! processor time that grow with a guest's requests are charged to its
//! [`CallMeter`](crate::CallMeter).

mod call_outside;
mod chat;
mod clock;
mod environment;
mod error;
mod exec;
mod folder;
mod granted;
mod grants;
mod http;
mod import;
mod loggable;
mod poll;
mod random;

pub use chat::ChatReply;
pub(crate) use clock::HasMonotonicClock;
pub use environment::Environment;
pub use error::GrantError;
pub(crate) use folder::HasPreopens;
pub(crate) use granted::{CallGrants, Granted};
pub use grants::{ClockGrant, Grants, RandomGrant};
pub use http::HttpServers;
pub(crate) use http::Refusals;
pub use import::{GrantStatus, Import};
pub(crate) use poll::HasPoll;
