//! Agents: components that attempt a task themselves, over conversations with the policy.

mod component;
mod run;
mod session_rooms;

pub use component::Agent;
pub use run::AgentReport;
