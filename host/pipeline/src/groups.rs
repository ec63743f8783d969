//! From scored samples to what an update learns from.

use crate::config::{GrpoTable, OnOutcome};
use crate::error::{PipelineError, Result};
use crate::metrics::{Metrics, mean};
use crate::rollout::Rolled;
use gavel_data::{FinishReason, OutcomeKind, Sample, SampleOutcome, Shown, ShownLines};
use gavel_train::{Advantage, Experience, SampleId, ScoredGroup};
use std::collections::BTreeMap;

/// The groups of a step, ready to be learned from.
pub(crate) struct Groups {
    /// The experiences of each group, in the order of the prompts; a group
    /// that was dropped has none.
    pub(crate) experiences: Vec<Vec<Experience>>,
    /// The advantage of each sample that is learned from.
    pub(crate) advantages: Vec<Option<f64>>,
}

/// The reward of a sample: its own, or what the configuration gives its kind
/// of outcome.
fn reward(outcome: &SampleOutcome, table: &GrpoTable) -> Option<f64> {
    match table.on_outcome.get(&outcome.outcome) {
        Some(OnOutcome::Score(score)) if outcome.reward.is_none() => Some(*score),
        _ => outcome.reward,
    }
}

/// Gives each group of `group_size` samples its advantages.
pub(crate) fn groups(rolled: &[Rolled], group_size: usize, table: &GrpoTable, metrics: &mut Metrics) -> Groups {
    // Of each group that is kept, where its scored samples stand in it, and their rewards.
    let (mut kept, mut scored) = (Vec::new(), Vec::new());
    let (mut equal, mut dropped) = (0, 0);
    let chunks = rolled.chunks(group_size);
    let mut groups = Groups { experiences: vec![Vec::new(); chunks.len()], advantages: vec![None; rolled.len()] };
    for (number, group) in chunks.enumerate() {
        let rewards = group.iter().enumerate().filter_map(|(at, rolled)| Some((at, reward(&rolled.outcome, table)?)));
        let (places, rewards): (Vec<usize>, Vec<f64>) = rewards.unzip();
        if rewards.len() < table.min_scored {
            dropped += 1;
            continue;
        }
        let group = ScoredGroup { rewards };
        equal += u64::from(group.is_uniform());
        kept.push((number, places));
        scored.push(group);
    }
    let advantages = table.advantage().estimate(&scored);
    for ((number, places), advantages) in kept.into_iter().zip(advantages) {
        for (index, advantage) in places.into_iter().zip(advantages) {
            let at = number * group_size + index;
            groups.advantages[at] = Some(advantage.mean());
            let id = SampleId { group: number, index };
            groups.experiences[number].extend(experiences(&rolled[at].sample, id, &advantage));
        }
    }
    let kept: Vec<f64> = groups.advantages.iter().flatten().copied().collect();
    metrics.describe("advantage", &kept);
    let count = groups.experiences.len() as f64;
    metrics.set("frac_reward_zero_std", equal as f64 / count);
    metrics.count("groups/dropped", dropped);
    groups
}

/// The trajectories of a sample.
fn experiences(sample: &Sample, id: SampleId, advantage: &Advantage) -> impl Iterator<Item = Experience> {
    let trajectories = sample.trajectories.iter().enumerate();
    trajectories.filter_map(|(index, trajectory)| Some((index, trajectory.tokens.as_ref()?))).map(
        move |(index, tokens)| Experience {
            sample: id,
            prompt: tokens.prompt.clone(),
            response: tokens.response.clone(),
            loss_mask: tokens.loss_mask.clone(),
            logprobs: tokens.logprobs.clone(),
            advantages: advantage.of_trajectory(index, tokens.response.len()),
        },
    )
}

/// The numbers of a step's samples: rewards, lengths, outcomes.
pub(crate) fn describe(rolled: &[Rolled], max_tokens: usize, metrics: &mut Metrics) {
    let rewards: Vec<f64> = rolled.iter().filter_map(|rolled| rolled.outcome.reward).collect();
    metrics.describe("reward", &rewards);
    let mut scores: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for rolled in rolled {
        for (name, evaluation) in &rolled.outcome.plugins {
            scores.entry(name).or_default().extend(evaluation.outcome.score());
        }
    }
    for (name, scores) in &scores {
        metrics.describe(&format!("reward/{name}"), scores);
    }
    let trajectories = || rolled.iter().flat_map(|rolled| &rolled.sample.trajectories);
    let tokens = || trajectories().filter_map(|trajectory| trajectory.tokens.as_ref());
    let lengths: Vec<f64> = tokens().map(|tokens| tokens.response.len() as f64).collect();
    metrics.describe("response_length", &lengths);
    let clipped = trajectories().filter(|trajectory| trajectory.finish_reason == FinishReason::Length).count();
    metrics.set("response_length/clip_ratio", clipped as f64 / rolled.len().max(1) as f64);
    metrics.set("response_length/limit", max_tokens as f64);
    metrics.set("prompt_length/mean", mean(&tokens().map(|tokens| tokens.prompt.len() as f64).collect::<Vec<_>>()));
    let written: usize = tokens().map(|tokens| tokens.response.len()).sum();
    metrics.count("tokens/response", written as u64);
    metrics.count("tokens/prompt", tokens().map(|tokens| tokens.prompt.len() as u64).sum());
    count_outcomes("outcome", rolled, metrics);
}

/// Counts, below `prefix`, how often each plugin had which outcome; every kind
/// is there, and of its details those that occurred.
pub(crate) fn count_outcomes(prefix: &str, rolled: &[Rolled], metrics: &mut Metrics) {
    for (name, mut counts) in outcomes(rolled) {
        for kind in OutcomeKind::ALL {
            counts.entry(kind.as_str().to_owned()).or_default();
        }
        for (outcome, count) in counts {
            metrics.count(format!("{prefix}/{name}/{outcome}"), count);
        }
    }
}

/// How often each plugin had which outcome, by `KIND` and by `KIND/DETAIL`, and
/// how often it was not called, by `not-called/WHY`.
pub(crate) fn outcomes(rolled: &[Rolled]) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for rolled in rolled {
        for (name, evaluation) in &rolled.outcome.plugins {
            let kind = evaluation.outcome.kind().as_str();
            let counts = counts.entry(name.clone()).or_default();
            *counts.entry(kind.to_owned()).or_default() += 1;
            if let Some(detail) = evaluation.detail() {
                *counts.entry(format!("{kind}/{detail}")).or_default() += 1;
            }
        }
        for (name, why) in &rolled.outcome.not_called {
            let counts = counts.entry(name.clone()).or_default();
            *counts.entry(format!("not-called/{}", why.as_str())).or_default() += 1;
        }
    }
    counts
}

/// Stops a run whose plugins fail too often to be learned from.
pub(crate) fn check_failures(rolled: &[Rolled], step: u64, table: &GrpoTable) -> Result<()> {
    let failed: Vec<&Rolled> = rolled
        .iter()
        .filter(|rolled| !matches!(rolled.outcome.outcome, OutcomeKind::Scored | OutcomeKind::Abstained))
        .collect();
    if failed.len() as f64 <= table.max_failure_rate * rolled.len() as f64 {
        return Ok(());
    }
    Err(PipelineError::Stopped(format!(
        "step {step}: {} of {} samples could not be scored, more than train.max_failure_rate = {} allows; the first: {}\nhint: look at the `reason` of each sample in the step's trajectories, or run one again with `gavel replay RUN --step {step} --sample ID`",
        failed.len(),
        rolled.len(),
        table.max_failure_rate,
        failed.first().map(|first| account(first)).unwrap_or_default()
    )))
}

/// Which sample failed, through which plugin, and what the plugin left behind.
fn account(rolled: &Rolled) -> String {
    let Sample { task, index, .. } = &rolled.sample;
    let mut text = format!("sample {index} of {}", Shown(&task.id));
    if let Some(source) = &task.data_source {
        text.push_str(&format!(" ({})", Shown(source)));
    }
    let reason = rolled.outcome.reason.as_deref().unwrap_or("no reason is known");
    text.push_str(&format!(": {}", ShownLines(reason)));
    let failed = rolled.outcome.plugins.values().find(|evaluation| evaluation.outcome.kind() == rolled.outcome.outcome);
    let Some(evaluation) = failed else { return text };
    if let Some(provenance) = &evaluation.provenance {
        text.push_str(&format!("\n  component {}", provenance.component));
    }
    if let Some(diagnosis) = &evaluation.diagnosis {
        for frame in &diagnosis.backtrace {
            text.push_str(&format!("\n  at {}", Shown(frame)));
        }
        for line in diagnosis.stderr.lines() {
            text.push_str(&format!("\n  | {}", ShownLines(line)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{Message, Role, Task, Tokens, Trajectory};
    use std::sync::Arc;

    fn table(text: &str) -> GrpoTable {
        toml::from_str(&format!("steps = 1\nprompts_per_step = 1\nlearning_rate = 1e-3\n{text}")).unwrap()
    }

    fn rolled(outcome: OutcomeKind, reward: Option<f64>) -> Rolled {
        let task = Task {
            id: "t".into(),
            data_source: None,
            prompt: vec![Message::new(Role::User, "q")],
            reference: Default::default(),
        };
        let tokens = Tokens {
            prompt: vec![1],
            response: vec![5, 2],
            loss_mask: vec![true; 2],
            logprobs: vec![-0.5; 2],
            versions: vec![0; 2],
        };
        let trajectory = Trajectory {
            messages: vec![Message::new(Role::Assistant, "a")],
            tokens: Some(tokens),
            finish_reason: FinishReason::Stop,
        };
        let sample = Sample { task: Arc::new(task), index: 0, trajectories: vec![trajectory] };
        let outcome =
            SampleOutcome { reward, outcome, reason: None, plugins: BTreeMap::new(), not_called: BTreeMap::new() };
        Rolled { sample, outcome }
    }

    #[test]
    fn only_what_was_scored_reaches_an_advantage() {
        let step = [
            rolled(OutcomeKind::Scored, Some(1.0)),
            rolled(OutcomeKind::Fault, None),
            rolled(OutcomeKind::Scored, Some(0.0)),
            rolled(OutcomeKind::OutOfBudget, None),
        ];
        let groups = groups(&step, 4, &table(""), &mut Metrics::default());
        assert_eq!(groups.experiences[0].len(), 2);
        let advantage = groups.advantages[0].unwrap();
        assert!((advantage - std::f64::consts::FRAC_1_SQRT_2).abs() < 1e-5);
        assert_eq!(groups.advantages, [Some(advantage), None, Some(-advantage), None]);
    }

    #[test]
    fn a_score_for_an_outcome_is_an_explicit_choice() {
        let step = [rolled(OutcomeKind::Scored, Some(1.0)), rolled(OutcomeKind::OutOfBudget, None)];
        let mut metrics = Metrics::default();
        let kept = groups(&step, 2, &table("on_outcome = {out-of-budget = {score = 0.0}}"), &mut metrics);
        assert_eq!(kept.experiences[0].len(), 2);
        let dropped = groups(&step, 2, &table(""), &mut metrics);
        assert_eq!((dropped.experiences[0].len(), metrics.get("groups/dropped")), (0, Some(1.0)));
    }

    #[test]
    fn too_many_failures_stop_the_run() {
        let step = [rolled(OutcomeKind::Scored, Some(1.0)), rolled(OutcomeKind::Fault, None)];
        assert!(check_failures(&step, 3, &table("max_failure_rate = 0.5")).is_ok());
        let error = check_failures(&step, 3, &table("max_failure_rate = 0.4")).unwrap_err().to_string();
        assert!(error.starts_with("step 3: 1 of 2 samples could not be scored"), "{error}");
    }
}
