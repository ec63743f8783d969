//! The engine's requests and its results.

use super::lookup::Lookup;
use crate::config::ModelConfig;
use crate::error::{PolicyError, Result};
use crate::quantization::Quantization;
use crate::sampling::Sampling;
use gavel_data::{FinishReason, SamplingMasks};
use std::sync::Arc;

/// The limits of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineConfig {
    /// The most rows that are decoded together.
    pub max_batch: usize,
    /// The most tokens, padding included, of prompts that a step computes beside
    /// the tokens that it draws; bounds its time and its memory. A longer prompt
    /// is computed in parts.
    pub prefill_tokens: usize,
    /// The most bytes that keys and values take. If they would take more, the
    /// requests that came last are put back and computed again later; they keep
    /// the tokens that they have drawn. `None` means no limit.
    pub cache_bytes: Option<usize>,
    /// Whether the keys and values of responses under way are computed again when the weights change.
    pub recompute_cache: bool,
    /// Tokens are proposed by prompt look-up; none if it is not set. Nothing but the speed changes.
    pub lookup: Option<Lookup>,
    /// Tokens are drawn with a copy of the weights in fewer bits, which is made when the weights have changed; with the
    /// weights themselves if it is not set. Log-probabilities are those of the copy.
    pub quantization: Option<Quantization>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            max_batch: 256,
            prefill_tokens: 4096,
            cache_bytes: None,
            recompute_cache: false,
            lookup: None,
            quantization: None,
        }
    }
}

impl EngineConfig {
    pub(super) fn validate(&self) -> Result<()> {
        if self.max_batch == 0 || self.prefill_tokens == 0 {
            return Err(PolicyError::Input("`max_batch` and `prefill_tokens` must be at least 1".into()));
        }
        self.lookup.as_ref().map_or(Ok(()), Lookup::validate)
    }
}

/// One response to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Returned with the response; unique among the requests under way.
    pub id: u64,
    /// Token ids of the prompt; not empty. The requests of a group share them.
    pub prompt: Arc<[u32]>,
    /// How to draw, shared likewise.
    pub sampling: Arc<Sampling>,
    /// The stream of uniform numbers: token `i` is drawn at
    /// [`gavel_data::seed::uniform`]`(seed, i)`, whatever else is in the batch.
    pub seed: u64,
    /// How many of the most probable tokens come with each token that is drawn.
    pub top_logprobs: usize,
    /// The conversation of the turn. Its keys and values are kept for the next turn, if there is room, until
    /// [`Engine::forget`](super::Engine::forget).
    pub conversation: Option<u64>,
}

impl Request {
    /// A request without alternatives, of no conversation.
    pub fn new(id: u64, prompt: impl Into<Arc<[u32]>>, sampling: impl Into<Arc<Sampling>>, seed: u64) -> Self {
        Self { id, prompt: prompt.into(), sampling: sampling.into(), seed, top_logprobs: 0, conversation: None }
    }

    /// The most tokens that prompt and response can have together.
    pub(super) fn most_tokens(&self) -> usize {
        self.prompt.len().saturating_add(self.sampling.max_tokens)
    }

    /// Refuses what `model` cannot answer.
    pub(super) fn validate(&self, model: &ModelConfig) -> Result<()> {
        let wrong = |what: String| Err(PolicyError::Input(format!("request {}: {what}", self.id)));
        if let Err(error) = self.sampling.validate() {
            return wrong(error.to_string());
        }
        if self.prompt.is_empty() {
            return wrong("the prompt has no tokens".into());
        }
        let outside = |token: &u32| i64::from(*token) >= model.vocab_size;
        let vocab = model.vocab_size;
        if let Some(token) = self.prompt.iter().copied().find(outside) {
            return wrong(format!("token {token} of the prompt is outside the model's vocabulary of {vocab}"));
        }
        if let Some((token, _)) = self.sampling.logit_bias.iter().find(|(token, _)| outside(token)) {
            return wrong(format!("token {token} of `logit_bias` is outside the model's vocabulary of {vocab}"));
        }
        if self.top_logprobs as i64 > vocab {
            return wrong(format!("`top_logprobs` {} is more than the vocabulary of {vocab}", self.top_logprobs));
        }
        if self.most_tokens() as u64 > model.positions() as u64 {
            return wrong(format!(
                "a prompt of {} tokens and `max_tokens` {} exceed the model's {} positions",
                self.prompt.len(),
                self.sampling.max_tokens,
                model.positions()
            ));
        }
        Ok(())
    }
}

/// What one step of the engine did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EngineStep {
    /// The tokens that were drawn, one for each row whose prompt is computed, or several one after another where tokens
    /// were proposed.
    pub drawn: Vec<DrawnToken>,
    /// The responses that ended with theirs.
    pub finished: Vec<Finished>,
}

/// One token.
#[derive(Debug, Clone, PartialEq)]
pub struct DrawnToken {
    /// The request's id.
    pub id: u64,
    /// The token.
    pub token: u32,
    /// Its log-probability, as in [`Finished::logprobs`].
    pub logprob: f32,
    /// The most probable tokens with their log-probabilities, in descending
    /// order; as many as the request asked for, or as its constraint allows.
    pub top: Vec<(u32, f32)>,
}

/// One response.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The request's id.
    pub id: u64,
    /// The tokens drawn, the stop token included.
    pub response: Vec<u32>,
    /// For each token, its log-probability after biases, penalties and
    /// temperature: before truncation, or, where [`Sampling::masked`] is set,
    /// after it, among the tokens that could be drawn. At temperature 0 it is
    /// the one at temperature 1, before truncation.
    pub logprobs: Vec<f32>,
    /// For each token, the version of the policy that drew it.
    pub versions: Vec<u64>,
    /// For each token, which tokens could be drawn, where [`Sampling::masked`]
    /// is set; otherwise no positions.
    pub masks: SamplingMasks,
    /// Why it ended: `Stop` or `Length`.
    pub finish_reason: FinishReason,
}

impl Finished {
    /// Ends it with the first `tokens` tokens, as if the last were a stop token.
    pub fn stop_after(&mut self, tokens: usize) {
        if tokens < self.response.len() {
            self.response.truncate(tokens);
            self.logprobs.truncate(tokens);
            self.versions.truncate(tokens);
            self.masks.truncate(tokens);
        }
        self.finish_reason = FinishReason::Stop;
    }
}
