//! From a task to a sample: conversations of the policy with tools.
//!
//! An [`Episode`] is one attempt at a task. It asks a [`Policy`] for turns and a [`ToolSet`] for answers, and ends as a
//! [`gavel_data::Sample`]. In an [`AgentEpisode`], a component of the user does the asking. No libtorch here: the policy
//! is any implementation of the trait.

mod agent_episode;
mod agent_link;
mod agent_run;
mod argument_check;
mod child_program;
mod conversation;
mod descendants;
mod episode;
mod mcp;
mod open_conversation;
mod policy;
mod policy_waits;
mod progress;
mod row_settings;
mod run_tool;
mod tool_failure;
mod tool_output;
mod tool_set;
mod waits_for;

pub use agent_episode::AgentEpisode;
pub use agent_run::agent_failure;
pub use child_program::{ChildProgram, SHOWN_VARIABLES};
pub use conversation::{Conversation, PromptOptions};
pub use episode::{Episode, EpisodeError, EpisodeLimits, History, Tools};
pub use mcp::{McpError, McpServer, McpSource, McpSpec};
pub use policy::{ConversationKey, PendingTurn, Policy, Turn, TurnRequest};
pub use policy_waits::{PolicyWait, PolicyWaits};
pub use progress::{EpisodeProgress, EpisodeWait};
pub use row_settings::agent_settings;
pub use run_tool::{RunTool, ToolSource};
pub use tool_failure::{OnFailedCall, OnToolFailure};
pub use tool_output::LeftOut;
pub use tool_set::{ToolLimits, ToolSet, ToolSetError};
pub use waits_for::WaitsFor;
