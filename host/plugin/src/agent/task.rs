//! What an agent is asked.

use gavel_data::Sample;
use std::sync::Arc;

/// What an agent is to attempt.
#[derive(Clone)]
pub struct AgentTask {
    /// The task and the number of the attempt, without trajectories.
    pub attempt: Arc<Sample>,
    /// What the row sets for the agent, as a JSON object.
    pub settings: String,
}
