//! A component and its sandbox: load, inspect, limit, meter and call.
//!
//! A [`Sandbox`] is what all plugins of a process share: the engine, the
//! threads, the memory. A [`Plugin`] is a component loaded into it with its
//! parameters, limits and grants; a call of [`Plugin::score`] runs in a fresh
//! instance that reaches its sample and what its [`Grants`] name, and always
//! comes back within its budgets as a [`gavel_data::Evaluation`].

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
mod shared;
mod snapshot;
mod spec;
mod state;
mod stdio;
mod tape;
mod ticking_engines;
mod time_budget;
mod tls;
mod trusted;
mod verdict;

pub use cache::component_cache;
pub use call_meter::{CallMeter, Held};
pub use chat::{ChatBody, ChatError, ChatModel, ChatRequest, JsonChunks, JsonPieces};
pub use compile::{COMPILE_COMMAND, LoadBudget, LoadLimits, TooCostly, compile_command, compile_with};
pub use contract::CONTRACT;
pub use error::LoadError;
pub use grant::{ClockGrant, GrantError, GrantStatus, Grants, Import, RandomGrant};
pub use info::Info;
pub use inspect::{Inspection, inspect};
pub use limits::Limits;
pub use limits_table::{LimitsTable, ZeroLimit};
pub use memory_budget::NoMemory;
pub use outside::HttpResponder;
pub use outside_waits::{OutsideWait, OutsideWaits};
pub use plugin::{Plugin, TasksetError};
pub use sandbox::{Sandbox, SandboxConfig};
pub use spec::{PluginSpec, ProgramSpec};
pub use tape::{CallTape, Player, Recorder, RequestHash, Tape, TapeError};
pub use tls::{NoRootCertificates, tls_client_config};
