//! One attempt at a task by an agent of the user.

use crate::episode::Tools;
use gavel_data::Task;
use gavel_plugin::Agent;
use std::sync::Arc;

/// One attempt at a task by an agent of the user.
pub struct AgentEpisode {
    /// The task.
    pub task: Arc<Task>,
    /// The number of the sample in its group.
    pub index: u32,
    /// The most tokens of the prompt with which the agent opens a conversation.
    pub max_prompt_tokens: usize,
    /// The most tokens after the prompt of a conversation, including those that the policy did not write.
    pub max_tokens: usize,
    /// The seed of the policy's draws.
    pub seed: u64,
    /// The seed of the random numbers that the agent and the tools see.
    pub tool_seed: u64,
    /// The agent; its limits include the time that the attempt may take.
    pub agent: Arc<Agent>,
    /// The tools that the agent may call, and the most turns of the policy.
    pub tools: Tools,
}
