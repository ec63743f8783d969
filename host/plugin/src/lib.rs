//! A component and its sandbox: load, inspect, limit, meter and call.
//!
//! A [`Sandbox`] has the resources that all plugins of a process share: the
//! engine, the threads, the memory. A [`Plugin`] is a component loaded into it
//! with its parameters, limits and grants. A call of [`Plugin::score`] runs in a
//! fresh instance that reaches only its sample and its [`Grants`]. It always
//! returns within its budgets, with a [`gavel_data::Evaluation`].

pub mod advantage;
mod agent;
mod bindings;
mod budget;
mod call;
mod compile;
mod decision;
mod engine;
mod episode;
mod error;
mod grant;
mod imports;
mod inspect;
mod load;
mod outside;
mod plugin;
pub mod sampler;
mod sandbox;
mod schema;
mod tape;
mod tool;

pub use agent::{Agent, AgentReport};
pub use budget::{Limits, LimitsTable, NoMemory, ZeroLimit};
pub use call::Info;
pub use compile::{
    COMPILE_COMMAND, CompilerProgram, LoadBudget, LoadLimits, TooCostly, compile_command, compile_with, component_cache,
};
pub use decision::{Decision, DecisionError, MOST_STATE};
pub use engine::SessionRooms;
pub use episode::{AgentTask, AgentTurn, EpisodeLink, EpisodeOver, PolicyRefusal, ToolFunction, ToolSpec, TurnOptions};
pub use error::LoadError;
pub use grant::{ClockGrant, Environment, GrantError, GrantStatus, Grants, HttpServers, Import, RandomGrant};
pub use inspect::{Inspection, exports, inspect};
pub use load::{PluginSpec, ProgramSpec};
pub use outside::{
    CallMeter, ChatBody, ChatError, ChatModel, ChatRequest, Held, HttpResponder, JsonChunks, JsonPieces,
};
pub use outside::{OutsideWait, OutsideWaits, RewardModel};
pub use plugin::{Plugin, RowCall, TasksetError};
pub use sandbox::{Sandbox, SandboxConfig};
pub use tape::{CallLog, CallTape, Player, Recorder, RequestHash, TakenCalls, Tape, TapeError};
pub use tool::{Tool, ToolReport, ToolSession};
