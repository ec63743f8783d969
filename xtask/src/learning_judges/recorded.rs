//! What a run recorded about a reward and the exact answer, which it measured beside it.

use crate::failure::{Failure, Result};
use crate::setup::cannot;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Steps whose samples are counted together.
const WINDOW: u64 = 10;

/// A sample of a run.
#[derive(Debug, Clone, Deserialize)]
pub struct Recorded {
    /// `STEP.GROUP.SAMPLE`
    pub id: String,
    step: u64,
    group: u64,
    /// The messages that the policy answered.
    pub prompt: Value,
    pub response: String,
    advantage: Option<f64>,
    reward: Option<f64>,
    plugins: BTreeMap<String, Verdict>,
}

#[derive(Debug, Clone, Deserialize)]
struct Verdict {
    outcome: String,
    #[serde(default)]
    score: Option<f64>,
}

/// The samples of a run's `trajectories/`, in the order of steps.
pub fn read(run: &Path) -> Result<Vec<Recorded>> {
    let folder = run.join("trajectories");
    let entries = fs::read_dir(&folder).map_err(|error| cannot("read", &folder, &error))?;
    let mut files = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(|error| cannot("read", &folder, &error))?;
    files.sort();
    let mut samples = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|error| cannot("read", &file, &error))?;
        for line in text.lines() {
            samples.push(
                serde_json::from_str(line).map_err(|error| {
                    Failure::new(format!("a line of {} is not a sample", file.display())).why(error)
                })?,
            );
        }
    }
    Ok(samples)
}

impl Recorded {
    /// The score of a reward, if it has one.
    pub fn score(&self, reward: &str) -> Option<f64> {
        self.plugins.get(reward)?.score
    }

    fn is_right(&self) -> Option<bool> {
        Some(self.score("answer")? >= 0.5)
    }
}

/// How many samples had each outcome of a reward.
pub fn outcomes(samples: &[Recorded], reward: &str) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for sample in samples {
        let outcome = sample.plugins.get(reward).map_or("not asked", |verdict| verdict.outcome.as_str());
        *found.entry(outcome.to_owned()).or_default() += 1;
    }
    found
}

/// How many samples count with a reward, although `reward` has no score for them.
pub fn counted_without_score(samples: &[Recorded], reward: &str) -> u64 {
    let counts = |sample: &&Recorded| {
        sample.score(reward).is_none() && (sample.reward.is_some() || sample.advantage.is_some_and(|each| each != 0.0))
    };
    samples.iter().filter(counts).count() as u64
}

/// Of all pairs of a right and a wrong answer in one group, the share in which `reward` does not prefer the right one; a
/// tie counts half. By the last step of each window.
pub fn disagreement(samples: &[Recorded], reward: &str) -> Vec<(u64, f64)> {
    let mut groups: BTreeMap<(u64, u64), Vec<&Recorded>> = BTreeMap::new();
    for sample in samples {
        groups.entry((sample.step, sample.group)).or_default().push(sample);
    }
    let mut windows: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for ((step, _), group) in groups {
        let of = |wanted: bool| {
            let wanted = group.iter().filter(move |sample| sample.is_right() == Some(wanted));
            wanted.filter_map(|sample| sample.score(reward)).collect::<Vec<f64>>()
        };
        let (right, wrong) = (of(true), of(false));
        let (pairs, lost) = windows.entry(step.div_ceil(WINDOW) * WINDOW).or_default();
        for (right, wrong) in right.iter().flat_map(|right| wrong.iter().map(move |wrong| (right, wrong))) {
            *pairs += 1.0;
            *lost += if right > wrong { 0.0 } else { 0.5 + f64::from(right < wrong) / 2.0 };
        }
    }
    windows
        .into_iter()
        .filter(|(_, (pairs, _))| *pairs > 0.0)
        .map(|(step, (pairs, lost))| (step, lost / pairs))
        .collect()
}

/// The share of wrong answers that a reward from 0 to 1 takes for right, and of right answers that it takes for wrong.
pub fn mistakes(samples: &[Recorded], reward: &str) -> (f64, f64) {
    let share = |is_right: bool| {
        let of = samples.iter().filter(|sample| sample.is_right() == Some(is_right));
        let scores: Vec<f64> = of.filter_map(|sample| sample.score(reward)).collect();
        let taken_otherwise = scores.iter().filter(|score| (**score >= 0.5) != is_right).count();
        taken_otherwise as f64 / scores.len().max(1) as f64
    };
    (share(false), share(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample(step: u64, judge: Option<f64>, right: bool, reward: Option<f64>) -> Recorded {
        let judged = match judge {
            Some(score) => json!({"outcome": "scored", "score": score}),
            None => json!({"outcome": "abstained"}),
        };
        let exact = json!({"outcome": "scored", "score": f64::from(right)});
        let plugins = json!({"judge": judged, "answer": exact});
        serde_json::from_value(json!({"id": "1.0.0", "step": step, "group": 0, "prompt": [], "response": "",
            "advantage": null, "reward": reward, "plugins": plugins}))
        .unwrap()
    }

    #[test]
    fn a_reward_is_compared_with_the_exact_answer() {
        let samples = [
            sample(1, Some(1.0), true, Some(1.0)),
            sample(1, Some(0.0), false, Some(0.0)),
            sample(1, Some(1.0), false, Some(1.0)),
            sample(1, None, true, None),
            sample(11, Some(0.0), true, Some(0.0)),
            sample(11, Some(1.0), false, Some(1.0)),
            sample(21, Some(1.0), true, Some(1.0)),
        ];
        assert_eq!(outcomes(&samples, "judge"), BTreeMap::from([("scored".into(), 6), ("abstained".into(), 1)]));
        assert_eq!(disagreement(&samples, "judge"), [(10, 0.25), (20, 1.0)]);
        assert_eq!(mistakes(&samples, "judge"), (2.0 / 3.0, 1.0 / 3.0));
        assert_eq!(counted_without_score(&samples, "judge"), 0);
        assert_eq!(counted_without_score(&[sample(1, None, true, Some(0.0))], "judge"), 1);
    }
}
