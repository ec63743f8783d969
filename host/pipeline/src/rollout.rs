//! Responses to prompts. A response is handed to the plugins the moment it
//! ends, while the others are still being written.

use crate::error::Result;
use crate::learner::Learner;
use crate::prompts::Prompt;
use gavel_data::{FinishReason, Message, Role, Sample, SampleOutcome, Tokens, Trajectory};
use gavel_policy::{Engine, EngineStep, Finished, Request, Sampling};
use gavel_scoring::{Group, Pending, Scorer};
use gavel_text::{DecodeStream, StopTexts, Tokenizer};
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
/// first. Every `group_size` of them are of one group. A response ends at one
/// of the texts `stop` too, which belongs to it.
pub(crate) fn rollout(
    learner: &Learner,
    engine: &mut Engine,
    scorer: &Scorer,
    sampling: &Sampling,
    stop: &[String],
    draws: &[Draw<'_>],
    group_size: usize,
) -> Result<(Vec<Rolled>, Timing)> {
    let start = Instant::now();
    for (id, draw) in draws.iter().enumerate() {
        engine.submit(Request::new(id as u64, draw.prompt.ids.clone(), sampling.clone(), draw.seed))?;
    }
    let groups: Vec<Group> = draws.chunks(group_size).map(|draws| Group::new(draws.len())).collect();
    let mut under_way: Vec<Option<(Sample, Pending)>> = draws.iter().map(|_| None).collect();
    let mut readers: Vec<Reader> = match stop {
        [] => Vec::new(),
        _ => draws.iter().map(|_| Reader::new(&learner.text.tokenizer, stop)).collect(),
    };
    while !engine.is_idle() {
        for finished in step(learner, engine, &mut readers)? {
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

/// Draws one token of each response; gives those that end with theirs. Without
/// stop texts there are no readers, and nothing is decoded.
fn step(learner: &Learner, engine: &mut Engine, readers: &mut [Reader]) -> Result<Vec<Finished>> {
    let EngineStep { drawn, mut finished } = engine.step(&learner.model)?;
    if readers.is_empty() {
        return Ok(finished);
    }
    for drawn in drawn {
        if readers[drawn.id as usize].stops_with(drawn.token)? {
            match finished.iter_mut().find(|finished| finished.id == drawn.id) {
                // The last token that it may have: it is whole all the same.
                Some(finished) => finished.finish_reason = FinishReason::Stop,
                None => finished.extend(engine.finish(drawn.id)?),
            }
        }
    }
    for finished in finished.iter_mut().filter(|finished| finished.finish_reason == FinishReason::Length) {
        if readers[finished.id as usize].stops_at_last()? {
            finished.finish_reason = FinishReason::Stop;
        }
    }
    Ok(finished)
}

/// Looks for stop texts in a response as it comes.
struct Reader {
    decoder: DecodeStream,
    stop_texts: StopTexts,
}

impl Reader {
    fn new(tokenizer: &Tokenizer, stop: &[String]) -> Self {
        Self { decoder: tokenizer.stream(true), stop_texts: StopTexts::new(stop.to_vec()) }
    }

    /// Whether the next token completes one.
    fn stops_with(&mut self, token: u32) -> Result<bool> {
        Ok(self.stop_texts.push_token(&mut self.decoder, token)?.stopped)
    }

    /// Whether what the decoder held back to the end completes one.
    fn stops_at_last(&mut self) -> Result<bool> {
        let text = self.decoder.finish()?;
        Ok(self.stop_texts.push(&text).stopped)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_stop_text_is_found_at_the_token_that_completes_it() {
        let kinds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/tokenizer_cases");
        for kind in ["byte_fallback", "byte_level_prefix_space", "unigram"] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::copy(kinds.join(kind).join("tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
            std::fs::write(folder.path().join("tokenizer_config.json"), r#"{"eos_token": "</s>"}"#).unwrap();
            let tokenizer = Tokenizer::load(folder.path()).unwrap();
            let ids = tokenizer.encode("the answer\nis 42").unwrap();
            for stop in ["answer", "\n", "er\ni"] {
                let mut reader = Reader::new(&tokenizer, &["none".to_owned(), stop.to_owned()]);
                let found = ids.iter().position(|&id| reader.stops_with(id).unwrap());
                let first = (1..=ids.len()).position(|end| tokenizer.decode(&ids[..end]).unwrap().contains(stop));
                assert_eq!(found, first, "{kind}: {stop:?}");
            }
        }
    }
}
