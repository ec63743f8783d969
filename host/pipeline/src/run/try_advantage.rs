//! Tries the plugin that turns rewards into advantages before the first step, on made-up groups.

use crate::run::check::Check;
use crate::run::setup::Setup;
use gavel_config::{Config, TrainTable};
use gavel_data::ShownLines;
use gavel_plugin::Plugin;
use gavel_plugin::advantage::{Batch, FinishReason, Group, Part, ScoredSample, Span, Trajectory};
use std::sync::Arc;

/// Tokens of a made-up response.
const TOKENS: u32 = 4;

/// Calls the plugin of a run, if it has one, with a group of rewards that differ and one of equal rewards. What it
/// returned, and a warning if it failed: a real group may have what it misses here.
pub(super) fn try_advantage<T: TrainTable>(config: &Config<T>, setup: &Setup) -> Option<(Check, Option<String>)> {
    let plugin: &Plugin = setup.advantage.as_deref()?;
    let size = config.rollout.group_size as u32;
    let group = |number: u32, best: fn(u32) -> bool| Group {
        task_id: format!("made-up/{number}"),
        data_source: None,
        speaker: String::new(),
        samples: (0..size).map(|index| sample(config, index, f64::from(u8::from(best(index))))).collect(),
    };
    let groups = vec![group(0, |index| index % 2 == 0), group(1, |_| true)];
    let batch = Arc::new(Batch { step: 1, groups, state: Vec::new() });
    let asked = plugin.estimate(batch, config.seed);
    let tried = format!("{}: 2 groups of {size} made-up samples", plugin.name());
    let (found, warning) = match setup.scorer.sandbox().handle().block_on(asked) {
        Ok(_) => (format!("{tried}: all have advantages"), None),
        Err(error) => {
            let warning = format!("on 2 groups of {size} made-up samples, {}", ShownLines(error.to_string()));
            (format!("{tried}: none has an advantage"), Some(warning))
        }
    };
    Some((Check { what: "advantage tried", found }, warning))
}

/// A sample to which every reward gives this score.
fn sample<T>(config: &Config<T>, index: u32, score: f64) -> ScoredSample {
    let mut parts: Vec<Part> = config
        .reward
        .iter()
        .map(|reward| Part {
            reward: reward.name.clone(),
            weight: reward.weight,
            score: Some(score),
            counted: score,
            metrics: Vec::new(),
        })
        .collect();
    parts.sort_by(|one, other| one.reward.cmp(&other.reward));
    let trajectory = Trajectory {
        index: 0,
        finish_reason: FinishReason::Stop,
        prompt_tokens: 1,
        response_tokens: TOKENS,
        learned: vec![Span { start: 0, end: TOKENS }],
        credit: Vec::new(),
        penalty: 0.0,
        logprob: -1.0,
        oldest_version: Some(0),
        newest_version: Some(0),
    };
    let reward = parts.iter().map(|part| part.weight * part.counted).sum();
    ScoredSample { index, reward, parts, trajectories: vec![trajectory] }
}
