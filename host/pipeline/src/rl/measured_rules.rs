//! Warns if a rule that is only measured, a reward of weight 0, falls while the reward rises: the policy may have found a
//! weakness of the rewards that it learns from.

use gavel_config::RewardTable;
use gavel_runs::Metrics;
use gavel_runs::metrics::mean;
use std::collections::VecDeque;

/// How many steps are compared with the same number before them.
const STEPS: usize = 10;
/// Standard errors by which two means must differ. Both the reward and the rule must, in opposite directions.
const STANDARD_ERRORS: f64 = 3.0;

/// The measured rules of a run.
pub(crate) struct MeasuredRules(Vec<MeasuredRule>);

/// A rule in the last steps.
struct MeasuredRule {
    name: String,
    /// The mean reward of a step and the rule's mean score. A step without one of them is left out.
    steps: VecDeque<(f64, f64)>,
}

impl MeasuredRules {
    pub(crate) fn new(rewards: &[RewardTable]) -> Self {
        let measured = rewards.iter().filter(|reward| reward.weight == 0.0);
        Self(measured.map(|reward| MeasuredRule { name: reward.name.clone(), steps: VecDeque::new() }).collect())
    }

    /// Adds the numbers of a step and gives a warning for each rule that falls while the reward rises.
    pub(crate) fn add(&mut self, metrics: &Metrics) -> Vec<String> {
        self.0.iter_mut().filter_map(|rule| rule.add(metrics)).collect()
    }
}

impl MeasuredRule {
    fn add(&mut self, metrics: &Metrics) -> Option<String> {
        let score = metrics.get(&format!("reward/{}/mean", self.name));
        self.steps.extend(metrics.get("reward/mean").zip(score));
        if self.steps.len() < 2 * STEPS {
            return None;
        }
        let (rewards, scores): (Vec<f64>, Vec<f64>) = self.steps.iter().copied().unzip();
        let (reward, score) = (Change::of(&rewards), Change::of(&scores));
        if !(reward.is_rise() && score.is_fall()) {
            self.steps.pop_front();
            return None;
        }
        // Later steps are compared with the means of this warning.
        self.steps.drain(..STEPS);
        Some(warning(&self.name, &reward, &score))
    }
}

/// The means of a number over the earlier and the later steps.
struct Change {
    before: f64,
    now: f64,
    /// The standard error of their difference.
    error: f64,
}

impl Change {
    /// The earlier steps come first, then as many later ones.
    fn of(values: &[f64]) -> Self {
        let (before, now) = values.split_at(values.len() / 2);
        // As in Welch's test: the means of steps are independent, which the samples of a group are not.
        let error = (variance_of_mean(before) + variance_of_mean(now)).sqrt();
        Self { before: mean(before), now: mean(now), error }
    }

    /// Whether the number rises by more than chance.
    fn is_rise(&self) -> bool {
        self.now - self.before > STANDARD_ERRORS * self.error
    }

    /// Whether it falls by more than chance.
    fn is_fall(&self) -> bool {
        self.before - self.now > STANDARD_ERRORS * self.error
    }
}

fn variance_of_mean(values: &[f64]) -> f64 {
    let (mean, count) = (mean(values), values.len() as f64);
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0) / count
}

fn warning(name: &str, reward: &Change, score: &Change) -> String {
    format!(
        "the reward rises and the measured rule `{name}` falls: reward {:.3} -> {:.3}, `{name}` {:.3} -> {:.3}, from the {STEPS} steps before to the last {STEPS}\nhint: read samples with a high reward and a low score of `{name}` in trajectories/; a checkpoint from before may be the better policy",
        reward.before, reward.now, score.before, score.now
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const REWARDS: &str = r#"
        reward = [
            { name = "judge", path = "judge.wasm" },
            { name = "exact", path = "exact.wasm", weight = 0 },
            { name = "short", path = "short.wasm", weight = 0 },
        ]
    "#;

    fn rules() -> MeasuredRules {
        let mut rewards: std::collections::BTreeMap<String, Vec<RewardTable>> = toml::from_str(REWARDS).unwrap();
        MeasuredRules::new(&rewards.remove("reward").unwrap())
    }

    /// The steps after which there are warnings, with the reward and the rule `exact` of each step.
    fn warned(steps: impl Iterator<Item = (f64, Option<f64>)>) -> Vec<(usize, String)> {
        let mut rules = rules();
        let add = |(number, (reward, exact)): (usize, (f64, Option<f64>))| {
            // Steps differ a little by chance.
            let noise = if number.is_multiple_of(2) { 0.01 } else { -0.01 };
            let mut metrics = Metrics::of_step(number as u64);
            metrics.set("reward/mean", reward + noise);
            metrics.set("reward/judge/mean", reward + noise);
            exact.into_iter().for_each(|exact| metrics.set("reward/exact/mean", exact - noise));
            metrics.set("reward/short/mean", 0.5);
            rules.add(&metrics).into_iter().map(|warning| (number, warning)).collect::<Vec<_>>()
        };
        (1..).zip(steps).flat_map(add).collect()
    }

    fn steps(warnings: Vec<(usize, String)>) -> Vec<usize> {
        warnings.into_iter().map(|(step, _)| step).collect()
    }

    #[test]
    fn a_rule_that_falls_while_the_reward_rises_is_reported_once() {
        let found = warned((0..40).map(|step| if step < 15 { (0.25, Some(0.75)) } else { (0.5, Some(0.5)) }));
        let [(step, warning)] = &found[..] else { panic!("{found:?}") };
        // With five of the last ten steps changed, the means differ by 2.97 standard errors.
        assert_eq!(*step, 21, "{warning}");
        let says = "the measured rule `exact` falls: reward 0.250 -> 0.400, `exact` 0.750 -> 0.600, from the 10 steps";
        assert!(warning.contains(says), "{warning}");
    }

    #[test]
    fn a_rule_that_goes_on_to_fall_is_reported_again() {
        let falling = (0..40).map(|step| f64::from(step) / 40.0).map(|share| (share, Some(1.0 - share)));
        assert_eq!(steps(warned(falling)), [20, 30, 40]);
    }

    #[test]
    fn there_is_no_warning_where_either_stays_or_both_move_alike() {
        let at = |step: i32| f64::from(step) / 40.0;
        assert_eq!(steps(warned((0..40).map(|step| (at(step), Some(at(step)))))), [0; 0]);
        assert_eq!(steps(warned((0..40).map(|step| (0.5, Some(1.0 - at(step)))))), [0; 0]);
        assert_eq!(steps(warned((0..40).map(|step| (at(step), Some(0.5))))), [0; 0]);
        assert_eq!(steps(warned((0..40).map(|step| (1.0 - at(step), Some(at(step)))))), [0; 0]);
        // A step in which the rule scored nothing is left out.
        assert_eq!(steps(warned((0..19).map(|step| (at(step), Some(1.0 - at(step)))).chain([(0.9, None)]))), [0; 0]);
    }
}
