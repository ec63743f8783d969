//! A component and its sandbox: load, inspect, limit, meter and call.
//!
//! A [`Sandbox`] has the resources that all plugins of a process share: the
//! engine, the threads, the memory. A [`Plugin`] is a component loaded into it
//! with its parameters, limits and grants. A call of [`Plugin::score`] runs in a
//! fresh instance that reaches only its sample and its [`Grants`]. It always
//! returns within its budgets, with a [`gavel_data::Evaluation`].

mod agent;
mod bindings;
mod cache;
mod call;
mod call_meter;
mod call_report;
mod chat;
mod child_limits;
mod code;
mod compile;
mod component;
mod contract;
mod credit;
mod engine;
mod engine_config;
mod error;
mod exchange;
mod exec;
mod exports;
mod fault;
mod first_slice;
mod fresh_call;
mod grant;
mod idle_instances;
mod imports;
mod info;
mod init;
mod inspect;
mod instance;
mod instance_slots;
mod lanes;
mod limits;
mod limits_table;
mod load;
mod loaded;
mod machine_limits;
mod memory_budget;
mod memory_reservation;
mod outside;
mod outside_waits;
mod pauses;
mod plugin;
mod program;
mod question;
mod request_budget;
mod resources;
mod sandbox;
mod session_rooms;
mod shared;
mod snapshot;
mod spec;
mod state;
mod stdio;
mod tape;
mod ticking_engines;
mod time_budget;
mod tool;
mod trusted;
mod verdict;

pub use agent::{Agent, AgentReport, AgentTask, AgentTurn, EpisodeLink, EpisodeOver, PolicyRefusal, TurnOptions};
pub use cache::component_cache;
pub use call_meter::{CallMeter, Held};
pub use chat::{ChatBody, ChatError, ChatModel, ChatRequest, JsonChunks, JsonPieces, RewardModel};
pub use compile::{COMPILE_COMMAND, LoadBudget, LoadLimits, TooCostly, compile_command, compile_with};
pub use contract::CONTRACT;
pub use error::LoadError;
pub use grant::{ClockGrant, Environment, GrantError, GrantStatus, Grants, HttpServers, Import, RandomGrant};
pub use info::Info;
pub use inspect::{Inspection, exports, inspect};
pub use limits::Limits;
pub use limits_table::{LimitsTable, ZeroLimit};
pub use memory_budget::NoMemory;
pub use outside::HttpResponder;
pub use outside_waits::{OutsideWait, OutsideWaits};
pub use plugin::{Plugin, RowCall, TasksetError};
pub use sandbox::{Sandbox, SandboxConfig};
pub use session_rooms::SessionRooms;
pub use spec::{PluginSpec, ProgramSpec};
pub use tape::{CallTape, Player, Recorder, RequestHash, Tape, TapeError};
pub use tool::{Tool, ToolFunction, ToolReport, ToolSession, ToolSpec};
