//! Agents: components that attempt a task themselves, over conversations with the policy.

mod component;
mod episode_link;
mod run;

pub use component::Agent;
pub use episode_link::{AgentTurn, EpisodeLink, EpisodeOver, PolicyRefusal, TurnOptions};
pub use run::{AgentReport, AgentTask};
