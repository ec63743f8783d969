//! Responses to prompts. A response is handed to the plugins the moment it
//! ends, while the others are still being written.

use crate::error::Result;
use crate::learner::Learner;
use crate::prompts::Prompt;
use gavel_data::{Message, Role, Sample, SampleOutcome, Tokens, Trajectory};
use gavel_policy::{Engine, Finished, Request, Sampling};
use gavel_scoring::{Group, Pending, Scorer};
use std::time::Instant;

/// A response to draw.
pub(crate) struct Draw<'a> {
    pub(crate) prompt: &'a Prompt,
    /// The number of the sample in its group.
    pub(crate) index: u32,
    /// Of its sampling.
    pub(crate) seed: u64,
    /// Of what its plugins see as random.
    pub(crate) plugin_seed: u64,
}

/// A sample and what was said of it.
pub(crate) struct Rolled {
    pub(crate) sample: Sample,
    pub(crate) outcome: SampleOutcome,
}

/// Seconds of a rollout.
pub(crate) struct Timing {
    /// Until the last response ended.
    pub(crate) generate: f64,
    /// From then until the last plugin answered.
    pub(crate) wait: f64,
}

/// Draws and scores; the result is in the order of `draws`, whatever ended
/// first. Every `group_size` of them are of one group.
pub(crate) fn rollout(
    learner: &Learner,
    engine: &mut Engine,
    scorer: &Scorer,
    sampling: &Sampling,
    draws: &[Draw<'_>],
    group_size: usize,
) -> Result<(Vec<Rolled>, Timing)> {
    let start = Instant::now();
    for (id, draw) in draws.iter().enumerate() {
        engine.submit(Request::new(id as u64, draw.prompt.ids.clone(), sampling.clone(), draw.seed))?;
    }
    let groups: Vec<Group> = draws.chunks(group_size).map(|draws| Group::new(draws.len())).collect();
    let mut under_way: Vec<Option<(Sample, Pending)>> = draws.iter().map(|_| None).collect();
    while !engine.is_idle() {
        for finished in engine.step(&learner.model)?.finished {
            let at = finished.id as usize;
            let sample = sample(learner, &draws[at], finished)?;
            let pending = scorer.start(&groups[at / group_size], sample.clone(), draws[at].plugin_seed);
            under_way[at] = Some((sample, pending));
        }
    }
    let generate = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let rolled = under_way
        .into_iter()
        .flatten()
        .map(|(sample, pending)| Rolled { sample, outcome: scorer.wait(pending) })
        .collect();
    Ok((rolled, Timing { generate, wait: start.elapsed().as_secs_f64() }))
}

fn sample(learner: &Learner, draw: &Draw<'_>, finished: Finished) -> Result<Sample> {
    let text = learner.text.tokenizer.decode(&finished.response)?;
    let tokens = Tokens {
        prompt: draw.prompt.ids.clone(),
        loss_mask: vec![true; finished.response.len()],
        response: finished.response,
        logprobs: finished.logprobs,
        versions: finished.versions,
    };
    let trajectory = Trajectory {
        messages: vec![Message::new(Role::Assistant, text)],
        tokens: Some(tokens),
        finish_reason: finished.finish_reason,
    };
    Ok(Sample { task: draw.prompt.task.clone(), index: draw.index, trajectories: vec![trajectory] })
}
