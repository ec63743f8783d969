//! Agents: components that attempt a task themselves, over conversations with the policy.

mod component;
mod episode;
mod episode_link;
mod run;
mod task;

pub use component::Agent;
pub(crate) use episode::Episode;
pub use episode_link::{AgentTurn, EpisodeLink, EpisodeOver, PolicyRefusal, TurnOptions};
pub use run::AgentReport;
pub use task::AgentTask;
