//! Calls of a loaded component: in a fresh instance or an idle one, with a report of each.

mod ask;
pub(crate) mod beside;
mod credit;
pub(crate) mod fault;
mod fresh;
mod info;
pub(crate) mod init;
mod loaded;
mod question;
mod report;
pub(crate) mod verdict;

pub(crate) use ask::{ask, make_ready};
pub(crate) use fresh::{CallSetup, kept_store};
pub use info::Info;
pub(crate) use loaded::{Loaded, loaded_accessors};
pub(crate) use question::{Get, Judge, Len, Question, Score};
pub(crate) use report::{CallDetails, CallReport, GuestResult, used_fuel};
pub(crate) use verdict::cut;
