//! The learning rate over a run.

use crate::config::{ConfigError, check};
use serde::{Deserialize, Serialize};

/// The shape of the learning rate after the warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// It stays at its peak.
    #[default]
    Constant,
    /// It falls along a line.
    Linear,
    /// It falls along half a cosine.
    Cosine,
}

/// The settings of the learning rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScheduleConfig {
    /// The highest learning rate; 1e-6 by default.
    pub learning_rate: f64,
    /// The number of steps in which it rises to that; 0 by default.
    pub warmup_steps: u64,
    /// Its shape after that; `constant` by default.
    pub kind: ScheduleKind,
    /// The final value of a falling rate, as a share of the highest; 0 by
    /// default.
    pub min_ratio: f64,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self { learning_rate: 1e-6, warmup_steps: 0, kind: ScheduleKind::Constant, min_ratio: 0.0 }
    }
}

impl ScheduleConfig {
    /// Refuses values that are not valid, naming the key.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check("learning_rate", self.learning_rate, "a number above 0", |rate| rate > 0.0)?;
        check("min_lr_ratio", self.min_ratio, "between 0 and 1", |ratio| (0.0..=1.0).contains(&ratio))
    }

    /// The learning rate over a run of `total_steps`.
    ///
    /// # Errors
    /// A setting is out of range, or the run is shorter than its warm-up.
    pub fn over(&self, total_steps: u64) -> Result<Schedule, ConfigError> {
        self.validate()?;
        if self.warmup_steps > total_steps {
            let must = format!("at most the {total_steps} steps of the run");
            return Err(ConfigError::new("warmup_steps", &must, self.warmup_steps));
        }
        Ok(Schedule { config: *self, total_steps })
    }
}

/// The learning rate of every step of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    config: ScheduleConfig,
    total_steps: u64,
}

impl Schedule {
    /// The learning rate of `step`, counted from 0. The rate of the warm-up's
    /// first step is above 0, so that the step is not wasted; its last step has
    /// the full rate. After the end of the run the rate keeps its last value.
    pub fn at(&self, step: u64) -> f64 {
        let ScheduleConfig { learning_rate, warmup_steps, kind, min_ratio } = self.config;
        if step < warmup_steps {
            return learning_rate * (step + 1) as f64 / warmup_steps as f64;
        }
        let left = (self.total_steps - warmup_steps).max(1) as f64;
        let progress = ((step - warmup_steps) as f64 / left).min(1.0);
        let height = match kind {
            ScheduleKind::Constant => return learning_rate,
            ScheduleKind::Linear => 1.0 - progress,
            ScheduleKind::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * progress).cos()),
        };
        learning_rate * (min_ratio + (1.0 - min_ratio) * height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(kind: ScheduleKind, min_ratio: f64, steps: &[u64]) -> Vec<f64> {
        let config = ScheduleConfig { learning_rate: 2.0, warmup_steps: 4, kind, min_ratio };
        let schedule = config.over(12).unwrap();
        steps.iter().map(|&step| (schedule.at(step) * 1e9).round() / 1e9).collect()
    }

    #[test]
    fn values() {
        let steps = [0, 1, 3, 4, 8, 12, 99];
        assert_eq!(rates(ScheduleKind::Constant, 0.0, &steps), [0.5, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0]);
        assert_eq!(rates(ScheduleKind::Linear, 0.0, &steps), [0.5, 1.0, 2.0, 2.0, 1.0, 0.0, 0.0]);
        assert_eq!(rates(ScheduleKind::Cosine, 0.1, &steps), [0.5, 1.0, 2.0, 2.0, 1.1, 0.2, 0.2]);
        let quarter = 1.0 + std::f64::consts::FRAC_1_SQRT_2;
        assert!((rates(ScheduleKind::Cosine, 0.0, &[6])[0] - quarter).abs() < 1e-8);
    }

    #[test]
    fn a_run_of_warmup_only_never_divides_by_zero() {
        let config = ScheduleConfig { warmup_steps: 3, kind: ScheduleKind::Linear, ..Default::default() };
        let schedule = config.over(3).unwrap();
        assert_eq!(schedule.at(2), 1e-6);
        assert!(schedule.at(3).is_finite());
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let plain = ScheduleConfig::default();
        let error = |config: ScheduleConfig| config.over(10).unwrap_err().to_string();
        let rate = |learning_rate: f64| error(ScheduleConfig { learning_rate, ..plain });
        assert_eq!(rate(0.0), "learning_rate must be a number above 0, not 0");
        assert_eq!(rate(f64::NAN), "learning_rate must be a number above 0, not NaN");
        let ratio = |min_ratio: f64| ScheduleConfig { min_ratio, ..plain };
        assert_eq!(error(ratio(1.5)), "min_lr_ratio must be between 0 and 1, not 1.5");
        let warmup = error(ScheduleConfig { warmup_steps: 11, ..plain });
        assert_eq!(warmup, "warmup_steps must be at most the 10 steps of the run, not 11");
        let nested = ratio(-1.0).validate().unwrap_err();
        assert_eq!(nested.within("train").to_string(), "train.min_lr_ratio must be between 0 and 1, not -1");
    }
}
