//! What every `[train]` table can do.

use super::error::ConfigError;

/// What `[train]` of a command must be able to say of itself.
pub trait TrainTable {
    /// Whether the command changes weights.
    const LEARNS: bool;
    /// Whether it draws what it learns from.
    const DRAWS: bool;

    /// Fills in what depends on how many versions behind the policy its data may be.
    fn complete(&mut self, _max_staleness: u64) {}

    /// The share of samples that may fail.
    fn max_failure_rate(&self) -> f64 {
        0.5
    }

    /// Refuses what no run could mean, naming the key.
    fn validate(&self) -> Result<(), ConfigError>;
}

/// For commands that only look: any `[train]` will do.
impl TrainTable for toml::Table {
    const LEARNS: bool = false;
    const DRAWS: bool = false;

    fn validate(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}
