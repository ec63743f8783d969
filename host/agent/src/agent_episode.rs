//! One attempt at a task by an agent of the user.

use crate::episode::Tools;
use gavel_data::Task;
use gavel_plugin::Agent;
use std::sync::Arc;

/// An attempt that an agent is to make.
pub struct AgentEpisode {
    /// What is attempted.
    pub task: Arc<Task>,
    /// The number of the sample in its group.
    pub index: u32,
    /// The most tokens of the prompt with which the agent opens a conversation.
    pub max_prompt_tokens: usize,
    /// The most tokens after the prompt of a conversation, those that the policy did not write included.
    pub max_tokens: usize,
    /// The seed of what is drawn.
    pub seed: u64,
    /// The seed of what the agent and tools see as random.
    pub tool_seed: u64,
    /// Who attempts it. Its limits have the time that it has.
    pub agent: Arc<Agent>,
    /// The tools that the agent may call, and the most turns of the policy.
    pub tools: Tools,
}
