//! What the reward models of a run have done in a step.

use gavel_rollout::{RewardModel, RewardModelUsage};
use gavel_runs::Metrics;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the models had done, and how long policies had waited for them, when the last step ended.
#[derive(Default)]
pub(super) struct UsageBefore {
    models: BTreeMap<String, RewardModelUsage>,
    waited: Duration,
}

impl UsageBefore {
    /// Sets the metrics of what the models of this process have done since the last step ended. `waited` is how long
    /// policies have waited for them since the run began.
    pub(super) fn end_step(&mut self, local: &BTreeMap<String, RewardModel>, waited: Duration, metrics: &mut Metrics) {
        for (name, model) in local {
            let now = model.usage();
            let before = self.models.insert(name.clone(), now).unwrap_or_default();
            let prefix = format!("perf/reward_model/{name}");
            for (what, now, before) in [
                ("scored", now.scored, before.scored),
                ("reused", now.reused, before.reused),
                ("batches", now.batches, before.batches),
                ("tokens", now.tokens, before.tokens),
            ] {
                metrics.count(format!("{prefix}/{what}"), now - before);
            }
            let prefix = format!("time/reward_model/{name}");
            for (what, now, before) in [
                ("computing", now.computing, before.computing),
                ("waiting", now.waiting, before.waiting),
                ("moving", now.moving, before.moving),
            ] {
                metrics.set(format!("{prefix}/{what}"), now.saturating_sub(before).as_secs_f64());
            }
        }
        if !local.is_empty() {
            let before = std::mem::replace(&mut self.waited, waited);
            metrics.set("time/policy_waits_for_reward_models", waited.saturating_sub(before).as_secs_f64());
        }
    }
}
