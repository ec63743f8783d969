//! `[schedule]`: when an update starts, and how old its data may be.

use crate::error::ConfigError;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `[schedule]` of `gavel train`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleTable {
    /// Whether an update begins as soon as a mini-batch of groups is scored, without waiting for the whole batch; no by
    /// default.
    pub stream: bool,
    /// The most versions between the policy that starts a group and the policy that is trained on the group; 0 by
    /// default, which is on-policy. A version is a whole step.
    pub max_staleness: u64,
    /// Whether responses under way continue under new weights, so that an update does not wait for them; no by default.
    pub partial_rollout: bool,
    /// Whether the keys and values of responses under way are computed again under new weights; no by default.
    pub recompute_cache: bool,
    /// How often a sample with the outcome `unavailable` is drawn again; 0 by default.
    pub retries: u32,
    /// Whether a checkpoint has the responses of groups under way; yes by default. Otherwise a resumed run draws these
    /// groups again.
    pub checkpoint_groups: bool,
    /// If no response and no call ends for this long, the run prints what it waits for; 5 minutes by default.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "gavel_data::DurationForm")]
    pub watchdog: Duration,
}

impl Default for ScheduleTable {
    fn default() -> Self {
        Self {
            stream: false,
            max_staleness: 0,
            partial_rollout: false,
            recompute_cache: false,
            retries: 0,
            checkpoint_groups: true,
            watchdog: Duration::from_secs(300),
        }
    }
}

impl ScheduleTable {
    /// Whether groups are taken in the order of their draws, so that nothing in a run depends on a clock.
    pub fn is_lockstep(&self) -> bool {
        !self.stream && !self.partial_rollout && self.max_staleness <= 1
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if self.recompute_cache && !self.partial_rollout {
            return Err(ConfigError::invalid(
                "schedule.recompute_cache",
                "schedule.recompute_cache needs schedule.partial_rollout = true: otherwise no response continues under new weights",
            ));
        }
        match self.watchdog {
            time if time < Duration::from_secs(1) => {
                Err(ConfigError::value("schedule.watchdog", "at least 1s", format!("{time:?}")))
            }
            _ => Ok(()),
        }
    }
}
