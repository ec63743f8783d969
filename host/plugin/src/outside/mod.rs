//! What answers plugins from outside: language models, reward models, programs and servers, and the meter of each call
//! that asks them.

mod call_meter;
mod chat;
mod exchange;
mod exec;
mod responders;
mod waits;

pub(crate) use call_meter::Progress;
pub use call_meter::{CallMeter, Held};
pub use chat::{ChatBody, ChatError, ChatModel, ChatRequest, JsonChunks, JsonPieces, RewardModel};
pub(crate) use chat::{Endpoint, Endpoints, Written};
pub(crate) use exec::{ChildEnding, ChildJob, ChildReport, ExecError, ProgramHandle, Programs, RunProgram};
pub use responders::HttpResponder;
pub(crate) use responders::Outside;
pub use waits::{OutsideWait, OutsideWaits};
