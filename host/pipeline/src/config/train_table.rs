//! What every `[train]` table defines.

use super::error::ConfigError;

/// The `[train]` table of a command.
pub trait TrainTable {
    /// Whether the command changes weights.
    const LEARNS: bool;
    /// Whether the command draws the samples that it learns from.
    const DRAWS: bool;

    /// Fills in the defaults that depend on `schedule.max_staleness` and on other keys.
    fn complete(&mut self, _max_staleness: u64) {}

    /// The share of samples that may fail.
    fn max_failure_rate(&self) -> f64 {
        0.5
    }

    /// Refuses values out of range and keys that do not fit together, naming the key.
    fn validate(&self) -> Result<(), ConfigError>;
}

/// For commands that do not learn: they accept any `[train]`.
impl TrainTable for toml::Table {
    const LEARNS: bool = false;
    const DRAWS: bool = false;

    fn validate(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}
