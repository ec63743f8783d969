//! What an episode can wait for.

/// What an episode can wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitsFor {
    /// A turn of the policy.
    Policy,
    /// Memory for the sessions of its tools.
    Memory,
    /// A place among the samples that its agent attempts at once.
    Place,
    /// The agent's own logic.
    Agent,
    /// Calls of these functions.
    Tools(Vec<String>),
}
