//! The task of an agent.

use gavel_data::Sample;
use std::sync::Arc;

/// The task that an agent attempts.
#[derive(Clone)]
pub struct AgentTask {
    /// The task and the number of the attempt, without trajectories.
    pub attempt: Arc<Sample>,
    /// What the row sets for the agent, as a JSON object.
    pub settings: String,
}
