//! What rises and what falls in a run.

use crate::curves::Curves;
use serde::Serialize;

/// The fewest values of a metric whose trend is told.
const FEWEST: usize = 8;
/// How many times its standard error a difference must be.
const ERRORS: f64 = 4.0;

/// A metric in the first and in the last quarter of its values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Trend {
    pub(crate) name: String,
    pub(crate) first: f64,
    pub(crate) last: f64,
    /// Whether it rises, or falls, by more than its spread would explain.
    pub(crate) rises: bool,
    pub(crate) falls: bool,
}

/// The trends of the rewards, of what validation measures, and of the lengths of responses.
pub(crate) fn trends(curves: &Curves) -> Vec<Trend> {
    let is_reward = |name: &str| name.starts_with("reward/") && name.ends_with("/mean");
    let others = ["val/accuracy", "response_length/mean", "response_length/clip_ratio", "entropy"];
    let columns = curves.columns().into_iter().filter(|(name, _)| is_reward(name) || others.contains(name));
    columns.filter_map(|(name, values)| trend(name, values)).collect()
}

fn trend(name: &str, values: &[f64]) -> Option<Trend> {
    let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    if values.len() < FEWEST {
        return None;
    }
    let quarter = values.len() / 4;
    let (first, first_error) = mean_and_error(values.get(..quarter)?);
    let (last, last_error) = mean_and_error(values.get(values.len() - quarter..)?);
    let needed = (ERRORS * first_error.hypot(last_error)).max(1e-9 * first.abs().max(last.abs()));
    let difference = last - first;
    Some(Trend { name: name.to_owned(), first, last, rises: difference > needed, falls: -difference > needed })
}

/// The mean of values and its standard error.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, (square / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_spread_does_not_explain_rises_or_falls() {
        let noise = |step: usize| (step * 37 % 11) as f64 / 11.0;
        let of = |value: &dyn Fn(usize) -> f64, count: usize| {
            let values: Vec<f64> = (0..count).map(value).collect();
            trend("x", &values).map(|trend| (trend.rises, trend.falls))
        };
        assert_eq!(of(&|step| step as f64 * 0.1 + noise(step), 80), Some((true, false)));
        assert_eq!(of(&|step| step as f64 * -0.1 + noise(step), 80), Some((false, true)));
        assert_eq!(of(&noise, 80), Some((false, false)));
        assert_eq!(of(&|_| 0.1 + 0.2, 80), Some((false, false)));
        assert_eq!(of(&noise, 7), None);
    }
}
