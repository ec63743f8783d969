//! What a plugin may reach beyond its sample: nothing, unless the run's
//! configuration grants it.
//!
//! [`Grants`] is what the configuration says. At load it becomes `Granted`:
//! checked, its folders open, its variables read. Each call gets a share of
//! that, from which the host's side of the WASI interfaces answers. Memory and
//! processor time that the host spends on a guest's behalf are the guest's:
//! whatever grows with what a guest asks is charged to its
//! [`CallMeter`](crate::CallMeter).

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
pub use error::GrantError;
pub(crate) use folder::HasPreopens;
pub(crate) use granted::{CallGrants, Granted};
pub use grants::{ClockGrant, Grants, RandomGrant};
pub(crate) use http::Refusals;
pub use import::{GrantStatus, Import};
pub(crate) use poll::HasPoll;
