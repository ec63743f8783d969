//! `[schedule]`: when which policy is trained on what.

use super::checks::at_least_one;
use super::error::ConfigError;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `[schedule]` of `gavel train`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleTable {
    /// Whether an update begins as soon as a mini-batch of groups is scored, and not with the whole batch; no by
    /// default.
    pub stream: bool,
    /// How many versions behind the policy may be that wrote a trajectory when it is trained on; 0, on-policy, by
    /// default.
    pub max_staleness: u64,
    /// Whether responses under way go on under new weights, so that an update does not wait for them; no by default.
    pub partial_rollout: bool,
    /// Whether the keys and values of responses under way are computed anew under new weights; no by default.
    pub recompute_cache: bool,
    /// How often a sample is drawn again whose outcome is `unavailable`; 0 by default.
    pub retries: u32,
    /// After how long without any end of a response or a call the run says what it waits for; 5 minutes by default.
    #[serde(with = "humantime_serde")]
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
            watchdog: Duration::from_secs(300),
        }
    }
}

impl ScheduleTable {
    /// Whether nothing that a run does depends on a clock: groups are taken in the order of their draws.
    pub(crate) fn is_lockstep(&self) -> bool {
        !self.stream && !self.partial_rollout && self.max_staleness <= 1
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        if self.recompute_cache && !self.partial_rollout {
            return Err(ConfigError::Invalid(
                "schedule.recompute_cache needs schedule.partial_rollout = true: no response goes on under new weights otherwise".into(),
            ));
        }
        at_least_one("schedule.watchdog, in seconds,", self.watchdog.as_secs() as usize)
    }
}
