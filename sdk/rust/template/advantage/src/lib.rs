//! The reward of a sample minus the mean of its group, divided by the deviation of the group, or not.

use gavel_sdk::advantage::{Estimates, Group};
use gavel_sdk::{Advantage, Failure, Info};

/// Keeps a division by the deviation finite.
const EPSILON: f64 = 1e-6;

/// The estimator, with its parameters checked.
struct GroupRelative {
    params: Params,
}

/// The keys of `[plugin.{{name}}.params]` in a run's configuration.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// What a difference is divided by: `group` for the deviation of the group, or `none`.
    scale: String,
}

impl Default for Params {
    fn default() -> Self {
        Self { scale: "group".into() }
    }
}

impl Advantage for GroupRelative {
    type Params = Params;

    // Once, before any step; an error stops a run before it starts.
    fn new(params: Params) -> Result<Self, String> {
        if !["group", "none"].contains(&params.scale.as_str()) {
            return Err(format!("`scale` must be \"group\" or \"none\", not {:?}", params.scale));
        }
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    // Once for the groups that the policy learns from at once: an advantage for each sample of each group.
    fn estimate(&self, _step: u64, groups: &[Group], _state: &[u8]) -> Result<Estimates, Failure> {
        let is_scaled = self.params.scale == "group";
        Ok(Estimates::of_samples(groups, |group| of_group(&group.rewards(), is_scaled)))
    }
}

gavel_sdk::export_advantage!(GroupRelative);

/// The advantages of the samples of a group, exactly 0 where all rewards are equal.
fn of_group(rewards: &[f64], is_scaled: bool) -> Vec<f64> {
    if rewards.iter().all(|reward| *reward == rewards[0]) {
        return vec![0.0; rewards.len()];
    }
    let count = rewards.len() as f64;
    let mean = rewards.iter().sum::<f64>() / count;
    let squares = rewards.iter().map(|reward| (reward - mean) * (reward - mean)).sum::<f64>();
    let divisor = if is_scaled { (squares / (count - 1.0)).sqrt() + EPSILON } else { 1.0 };
    rewards.iter().map(|reward| (reward - mean) / divisor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_compared_with_its_group() {
        assert_eq!(of_group(&[1.0, 0.0, 0.5], false), [0.5, -0.5, 0.0]);
        let scaled = of_group(&[1.0, 0.0, 0.5], true);
        assert!((scaled[0] - 1.0).abs() < 1e-5 && scaled[0] == -scaled[1]);
    }

    #[test]
    fn equal_rewards_teach_nothing() {
        assert_eq!(of_group(&[0.1; 3], true), [0.0; 3]);
        assert_eq!(of_group(&[1.0], true), [0.0]);
    }

    #[test]
    fn an_unknown_scale_is_refused() {
        assert!(GroupRelative::new(Params { scale: "batch".into() }).is_err());
    }
}
