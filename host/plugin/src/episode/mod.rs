//! What an agent asks of the episode that it plays, behind the imports `policy` and `tools`.

mod function;
mod held;
mod link;
mod task;

pub use function::{ToolFunction, ToolSpec};
pub(crate) use held::Episode;
pub use link::{AgentTurn, EpisodeLink, EpisodeOver, PolicyRefusal, TurnOptions};
pub use task::AgentTask;
