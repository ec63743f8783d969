//! What the reward models of a run have done in a step.

use gavel_rollout::{RewardModel, RewardModelUsage};
use gavel_runs::Metrics;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

const COUNTS: [&str; 4] = ["scored", "reused", "batches", "tokens"];
const TIMES: [&str; 3] = ["computing", "waiting", "moving"];

/// What reward models have done in a step, and how long policies have waited for them. Ranks add theirs up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RewardModelWork {
    models: BTreeMap<String, ModelWork>,
    /// Absent where no model was loaded.
    policies_waited: Option<Duration>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct ModelWork {
    counts: [u64; COUNTS.len()],
    times: [Duration; TIMES.len()],
}

impl RewardModelWork {
    /// Adds what the models of another rank have done.
    pub(crate) fn add(&mut self, other: Self) {
        for (name, ModelWork { counts, times }) in other.models {
            let own = self.models.entry(name).or_default();
            own.counts.iter_mut().zip(counts).for_each(|(own, more)| *own += more);
            own.times.iter_mut().zip(times).for_each(|(own, more)| *own += more);
        }
        if let Some(waited) = other.policies_waited {
            *self.policies_waited.get_or_insert_default() += waited;
        }
    }

    /// Sets its metrics. All of them are timings: which step asks for a conversation first may depend on the schedule.
    pub(crate) fn describe(&self, metrics: &mut Metrics) {
        for (name, ModelWork { counts, times }) in &self.models {
            for (what, count) in COUNTS.iter().zip(counts) {
                metrics.count(format!("perf/reward_model/{name}/{what}"), *count);
            }
            for (what, time) in TIMES.iter().zip(times) {
                metrics.set(format!("time/reward_model/{name}/{what}"), time.as_secs_f64());
            }
        }
        if let Some(waited) = self.policies_waited {
            metrics.set("time/policy_waits_for_reward_models", waited.as_secs_f64());
        }
    }
}

/// What the models had done, and how long policies had waited for them, when the last step ended.
#[derive(Default)]
pub(super) struct UsageBefore {
    models: BTreeMap<String, RewardModelUsage>,
    waited: Duration,
}

impl UsageBefore {
    /// What the models of this process have done since the last step ended. `waited` is how long policies have waited
    /// for them since the run began.
    pub(super) fn end_step(&mut self, local: &BTreeMap<String, RewardModel>, waited: Duration) -> RewardModelWork {
        let mut work = RewardModelWork::default();
        for (name, model) in local {
            let now = model.usage();
            let before = self.models.insert(name.clone(), now).unwrap_or_default();
            let counts = [
                now.scored - before.scored,
                now.reused - before.reused,
                now.batches - before.batches,
                now.tokens - before.tokens,
            ];
            let times = [
                now.computing.saturating_sub(before.computing),
                now.waiting.saturating_sub(before.waiting),
                now.moving.saturating_sub(before.moving),
            ];
            work.models.insert(name.clone(), ModelWork { counts, times });
        }
        if !local.is_empty() {
            let before = std::mem::replace(&mut self.waited, waited);
            work.policies_waited = Some(waited.saturating_sub(before));
        }
        work
    }
}
