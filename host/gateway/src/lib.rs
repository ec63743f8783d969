//! A gateway that records tokens, and agents that are ordinary programs.
//!
//! A [`ProgramEpisode`] is one attempt at a task by a program that asks a model over HTTP. Its [`Gateway`] answers with
//! turns of the policy, and records them token by token: a request that continues a recorded conversation continues its
//! tokens, and any other begins another trajectory of the sample.

mod answer;
mod answers;
#[cfg(test)]
mod attacks;
mod call;
mod dialects;
mod digest;
mod error;
mod gateway;
mod http;
mod keys;
mod limits;
mod listener;
mod plan;
mod process;
mod program;
mod program_episode;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod property;
mod recording;
mod registry;
mod remote;
#[cfg(test)]
mod scripted;
mod session;
mod task_text;

pub use call::{Call, Retry};
pub use error::GatewayError;
pub use gateway::{Gateway, GatewayAddress};
pub use limits::SessionLimits;
pub use program::{ProgramAgent, ProgramSource, ProgramSpec};
pub use program_episode::ProgramEpisode;
pub use registry::OpenSession;
pub use session::{ChatSession, Session};
