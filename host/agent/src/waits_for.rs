//! What an episode can wait for.

/// What an episode can wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitsFor {
    /// A turn of the policy.
    Policy,
    /// Memory for the sessions of its tools.
    Memory,
    /// The agent's own logic.
    Agent,
    /// Calls of these functions.
    Tools(Vec<String>),
}
