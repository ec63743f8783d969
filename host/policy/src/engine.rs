//! The rollout engine: continuous batching over a key-value cache.
//!
//! Requests are admitted in the order in which they came. Each
//! [`step`](Engine::step) draws one token for every active row; a row that
//! ends leaves the batch at once and a waiting request takes its place.
//! Requests with the same prompt, such as a group, compute it once.

use crate::cache::Cache;
use crate::config::ModelConfig;
use crate::decode;
use crate::error::{PolicyError, Result};
use crate::model::Model;
use crate::sampler::Sampler;
use crate::sampling::Sampling;
use gavel_data::{FinishReason, seed};
use std::collections::{HashMap, VecDeque};
use tch::{Device, Tensor};

/// How much the engine takes on at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineConfig {
    /// The most rows that are decoded together.
    pub max_batch: usize,
    /// The most tokens, padding included, of prompts that are computed
    /// together; bounds peak memory. A longer prompt goes alone.
    pub prefill_tokens: usize,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self { max_batch: 256, prefill_tokens: 8192 }
    }
}

/// One response to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Comes back with the response.
    pub id: u64,
    /// Token ids of the prompt; not empty.
    pub prompt: Vec<u32>,
    /// How to draw.
    pub sampling: Sampling,
    /// The stream of uniform numbers: token `i` is drawn at
    /// [`gavel_data::seed::uniform`]`(seed, i)`, whatever else is in the batch.
    pub seed: u64,
}

/// One response.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The request's id.
    pub id: u64,
    /// The tokens drawn, the stop token included.
    pub response: Vec<u32>,
    /// For each token its log-probability after temperature and before
    /// truncation; at temperature 0, that at temperature 1.
    pub logprobs: Vec<f32>,
    /// For each token the version of the policy that drew it.
    pub versions: Vec<u64>,
    /// Why it ended: `Stop` or `Length`.
    pub finish_reason: FinishReason,
}

/// Decodes many requests together. Its thread owns the device.
pub struct Engine {
    config: EngineConfig,
    model: ModelConfig,
    device: Device,
    version: u64,
    waiting: VecDeque<Request>,
    /// The row in slot `i` of the cache is `rows[i]`.
    rows: Vec<Row>,
    cache: Cache,
    /// The settings of `rows`; absent when rows have come or gone.
    sampler: Option<Sampler>,
}

/// A response under way. All of its tokens but the last are in the cache.
struct Row {
    request: Request,
    /// The version whose keys and values the prompt has.
    prompt_version: u64,
    response: Vec<u32>,
    logprobs: Vec<f32>,
    versions: Vec<u64>,
}

impl Engine {
    /// An engine for `model` and others of its configuration.
    pub fn new(model: &Model, config: EngineConfig) -> Result<Self> {
        if config.max_batch == 0 || config.prefill_tokens == 0 {
            return Err(PolicyError::Input("`max_batch` and `prefill_tokens` must be at least 1".into()));
        }
        Ok(Self {
            model: model.config().clone(),
            device: model.device(),
            version: 0,
            waiting: VecDeque::new(),
            rows: Vec::new(),
            cache: Cache::new(model.config(), config.max_batch, model.kind(), model.device())?,
            sampler: None,
            config,
        })
    }

    /// Queues a request.
    pub fn submit(&mut self, request: Request) -> Result<()> {
        let wrong = |what: String| Err(PolicyError::Input(format!("request {}: {what}", request.id)));
        if let Err(error) = request.sampling.validate() {
            return wrong(error.to_string());
        }
        if request.prompt.is_empty() {
            return wrong("the prompt has no tokens".into());
        }
        if let Some(token) = request.prompt.iter().find(|&&token| i64::from(token) >= self.model.vocab_size) {
            return wrong(format!(
                "token {token} of the prompt is outside the model's vocabulary of {}",
                self.model.vocab_size
            ));
        }
        let total = request.prompt.len().saturating_add(request.sampling.max_tokens);
        if total as u64 > self.model.max_position_embeddings as u64 {
            return wrong(format!(
                "a prompt of {} tokens and `max_tokens` {} exceed the model's {} positions",
                request.prompt.len(),
                request.sampling.max_tokens,
                self.model.max_position_embeddings
            ));
        }
        self.waiting.push_back(request);
        Ok(())
    }

    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.rows.is_empty() && self.waiting.is_empty()
    }

    /// How many responses are under way.
    pub fn active(&self) -> usize {
        self.rows.len()
    }

    /// How many requests wait for a place.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Says that the weights are now those of `version`. Responses under way
    /// go on with the keys and values that they have.
    pub fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    /// Draws one token for every active row and gives the responses that ended
    /// with it. After an error the engine must not be used again.
    pub fn step(&mut self, model: &Model) -> Result<Vec<Finished>> {
        if *model.config() != self.model || model.device() != self.device {
            return Err(PolicyError::Input(
                "the engine was made for a model of another configuration or device".into(),
            ));
        }
        let _guard = tch::no_grad_guard();
        self.admit(model)?;
        if self.rows.is_empty() {
            return Ok(Vec::new());
        }
        let logits = self.forward(model)?;
        let sampler = match self.sampler.take() {
            Some(sampler) => sampler,
            None => {
                let settings: Vec<&Sampling> = self.rows.iter().map(|row| &row.request.sampling).collect();
                Sampler::new(&settings, self.model.vocab_size, self.device)?
            }
        };
        let picks = sampler.sample(&logits, &self.rows.iter().map(Row::uniform).collect::<Vec<_>>())?;
        for ((row, token), logprob) in self.rows.iter_mut().zip(picks.tokens).zip(picks.logprobs) {
            if !logprob.is_finite() {
                return Err(PolicyError::NonFinite { request: row.request.id, position: row.response.len() });
            }
            row.response.push(token);
            row.logprobs.push(logprob);
            row.versions.push(self.version);
        }
        self.sampler = Some(sampler);
        self.retire()
    }

    /// Feeds each row its last token.
    fn forward(&mut self, model: &Model) -> Result<Tensor> {
        let tokens: Vec<i64> = self.rows.iter().map(Row::last_token).collect();
        let positions: Vec<i64> = self.rows.iter().map(|row| row.tokens() as i64 - 1).collect();
        let longest = positions.iter().max().copied().unwrap_or_default() + 1;
        let ragged = positions.iter().any(|position| position + 1 != longest);
        self.cache.reserve(self.rows.len(), longest as usize)?;
        // One transfer for both.
        let inputs = Tensor::f_from_slice(&[tokens, positions].concat())?.f_to_device(self.device)?;
        let inputs = inputs.f_view([2, -1])?;
        decode::step(model, &mut self.cache, &inputs.f_select(0, 0)?, &inputs.f_select(0, 1)?, longest, ragged)
    }

    /// Gives waiting requests the free places and fills their caches with all
    /// of the prompt but its last token, which is the row's first input.
    fn admit(&mut self, model: &Model) -> Result<()> {
        let free = self.config.max_batch - self.rows.len();
        let old = self.rows.len();
        for request in self.waiting.drain(..free.min(self.waiting.len())) {
            self.rows.push(Row::new(request, self.version));
        }
        if self.rows.len() == old {
            return Ok(());
        }
        self.sampler = None;
        let mut known: HashMap<&[u32], usize> = HashMap::new();
        let (mut fresh, mut copies, mut longest) = (Vec::new(), Vec::new(), 0);
        for (slot, row) in self.rows.iter().enumerate() {
            let prefix = row.prefix();
            let source = known.get(prefix).copied();
            if source.is_none() && row.prompt_version == self.version {
                known.insert(prefix, slot);
            }
            if slot < old {
                continue;
            }
            longest = longest.max(prefix.len());
            match source {
                Some(source) => copies.push((source, slot)),
                None if prefix.is_empty() => {}
                None => fresh.push(slot),
            }
        }
        self.cache.reserve(self.rows.len(), longest)?;
        let mut rest = fresh.as_slice();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(self.prefill_batch(rest));
            self.prefill(model, batch)?;
            rest = later;
        }
        self.cache.copy(&copies, longest)
    }

    /// How many of `slots`, one at least, fit into a prefill.
    fn prefill_batch(&self, slots: &[usize]) -> usize {
        let mut longest = 0;
        let fits = |(index, &slot): (usize, &usize)| {
            longest = longest.max(self.rows[slot].prefix().len());
            longest * (index + 1) <= self.config.prefill_tokens
        };
        slots.iter().enumerate().map(fits).take_while(|fits| *fits).count().max(1)
    }

    fn prefill(&mut self, model: &Model, slots: &[usize]) -> Result<()> {
        let prefixes: Vec<&[u32]> = slots.iter().map(|&slot| self.rows[slot].prefix()).collect();
        let time = prefixes.iter().map(|prefix| prefix.len()).max().unwrap_or_default();
        let mut ids = vec![0i64; slots.len() * time];
        for (row, prefix) in ids.chunks_mut(time).zip(prefixes) {
            row.iter_mut().zip(prefix).for_each(|(id, &token)| *id = i64::from(token));
        }
        let ids = Tensor::f_from_slice(&ids)?.f_view([slots.len() as i64, time as i64])?.f_to_device(self.device)?;
        let slots: Vec<i64> = slots.iter().map(|&slot| slot as i64).collect();
        decode::prefill(model, &mut self.cache, &ids, &Tensor::f_from_slice(&slots)?.f_to_device(self.device)?)
    }

    /// Takes out the rows that have ended and closes the gaps.
    fn retire(&mut self) -> Result<Vec<Finished>> {
        let mut finished = Vec::new();
        // Where each remaining row was before.
        let mut origin: Vec<usize> = (0..self.rows.len()).collect();
        for slot in (0..self.rows.len()).rev() {
            if let Some(finish_reason) = self.rows[slot].finish_reason() {
                origin.swap_remove(slot);
                finished.push(self.rows.swap_remove(slot).finish(finish_reason));
            }
        }
        if finished.is_empty() {
            return Ok(finished);
        }
        self.sampler = None;
        finished.reverse();
        let moved: Vec<(usize, usize)> =
            origin.into_iter().enumerate().filter(|(to, from)| from != to).map(|(to, from)| (from, to)).collect();
        let longest = moved.iter().map(|&(_, to)| self.rows[to].tokens()).max().unwrap_or_default();
        self.cache.copy(&moved, longest)?;
        Ok(finished)
    }
}

impl Row {
    fn new(request: Request, prompt_version: u64) -> Self {
        Self { request, prompt_version, response: Vec::new(), logprobs: Vec::new(), versions: Vec::new() }
    }

    /// All of the prompt but its last token.
    fn prefix(&self) -> &[u32] {
        &self.request.prompt[..self.request.prompt.len() - 1]
    }

    /// Length of prompt and response so far.
    fn tokens(&self) -> usize {
        self.request.prompt.len() + self.response.len()
    }

    fn last_token(&self) -> i64 {
        let last = self.response.last().or(self.request.prompt.last());
        // `submit` refuses an empty prompt.
        i64::from(last.copied().unwrap_or_default())
    }

    /// The number at which the next token is drawn.
    fn uniform(&self) -> f64 {
        seed::uniform(self.request.seed, self.response.len() as u64)
    }

    fn finish_reason(&self) -> Option<FinishReason> {
        let last = self.response.last()?;
        if self.request.sampling.stop_ids.contains(last) {
            Some(FinishReason::Stop)
        } else if self.response.len() >= self.request.sampling.max_tokens {
            Some(FinishReason::Length)
        } else {
            None
        }
    }

    fn finish(self, finish_reason: FinishReason) -> Finished {
        Finished {
            id: self.request.id,
            response: self.response,
            logprobs: self.logprobs,
            versions: self.versions,
            finish_reason,
        }
    }
}
