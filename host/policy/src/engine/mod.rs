//! The rollout engine: continuous batching over a key-value cache.
//!
//! Requests are admitted in the order in which they came. Each
//! [`step`](Engine::step) draws one token for every active row; a row that
//! ends leaves the batch at once and a waiting request takes its place.
//! Requests with the same prompt, such as a group, compute it once. Where the
//! cache is full, the rows that came last go back to the waiting ones, with
//! what they have drawn.

mod cache;
mod decode;
mod request;
mod row;
mod sampler;

pub use request::{Drawn, EngineConfig, Finished, Request, Step};

use crate::config::ModelConfig;
use crate::error::{PolicyError, Result};
use crate::model::Model;
use crate::out_of_memory::Phase;
use cache::Cache;
use row::Row;
use sampler::Sampler;
use std::collections::{HashMap, VecDeque};
use tch::{Device, Kind, Tensor};

/// Decodes many requests together. Its thread owns the device.
pub struct Engine {
    config: EngineConfig,
    model: ModelConfig,
    kind: Kind,
    device: Device,
    version: u64,
    /// Requests that have come.
    arrivals: u64,
    waiting: VecDeque<Row>,
    /// The row in slot `i` of the cache is `rows[i]`.
    rows: Vec<Row>,
    cache: Cache,
    /// The settings of `rows`; absent when rows have come or gone.
    sampler: Option<Sampler>,
    preemptions: u64,
}

impl Engine {
    /// An engine for `model` and others of its configuration.
    pub fn new(model: &Model, config: EngineConfig) -> Result<Self> {
        config.validate()?;
        if model.config().num_labels.is_some() {
            return Err(PolicyError::Input("a classifier has no tokens to draw: load a language model".into()));
        }
        let (kind, device) = (model.kind(), model.device());
        Ok(Self {
            model: model.config().clone(),
            kind,
            device,
            version: 0,
            arrivals: 0,
            waiting: VecDeque::new(),
            rows: Vec::new(),
            cache: Cache::new(model.config(), config.max_batch, config.cache_bytes, kind, device)?,
            sampler: None,
            preemptions: 0,
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
        let outside = |token: &u32| i64::from(*token) >= self.model.vocab_size;
        let vocab = self.model.vocab_size;
        if let Some(token) = request.prompt.iter().copied().find(outside) {
            return wrong(format!("token {token} of the prompt is outside the model's vocabulary of {vocab}"));
        }
        if let Some((token, _)) = request.sampling.logit_bias.iter().find(|(token, _)| outside(token)) {
            return wrong(format!("token {token} of `logit_bias` is outside the model's vocabulary of {vocab}"));
        }
        if request.top_logprobs as i64 > vocab {
            return wrong(format!("`top_logprobs` {} is more than the vocabulary of {vocab}", request.top_logprobs));
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
        if !self.cache.fits(1, total) {
            return wrong(format!(
                "a prompt of {} tokens and `max_tokens` {} need more than the cache's {} bytes, which are {} tokens: ask for fewer, or give the cache more memory",
                request.prompt.len(),
                request.sampling.max_tokens,
                self.config.cache_bytes.unwrap_or_default(),
                self.cache.longest()
            ));
        }
        self.waiting.push_back(Row::new(request, self.arrivals));
        self.arrivals += 1;
        Ok(())
    }

    /// Forgets a request, wherever it stands; whether it was there.
    pub fn cancel(&mut self, id: u64) -> Result<bool> {
        if let Some(at) = self.waiting.iter().position(|row| row.request.id == id) {
            self.waiting.remove(at);
            return Ok(true);
        }
        Ok(!self.take_out(|row| row.request.id == id)?.is_empty())
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

    /// The longest sequence, prompt and response, that model and cache have room
    /// for, in tokens.
    pub fn longest(&self) -> usize {
        self.cache.longest().min(self.model.max_position_embeddings as usize)
    }

    /// How often a row was put back because the cache was full.
    pub fn preemptions(&self) -> u64 {
        self.preemptions
    }

    /// Says that the weights are now those of `version`. Responses under way
    /// go on with the keys and values that they have.
    pub fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    /// Draws one token for every active row. After
    /// [`NonFinite`](PolicyError::NonFinite) nothing was drawn: once that request
    /// is [cancelled](Self::cancel), the others go on. After another error the
    /// engine must not be used again.
    pub fn step(&mut self, model: &Model) -> Result<Step> {
        if *model.config() != self.model || model.device() != self.device || model.kind() != self.kind {
            return Err(PolicyError::Input(
                "the engine was made for a model of another configuration, kind or device".into(),
            ));
        }
        let _guard = tch::no_grad_guard();
        self.preempt()?;
        self.admit(model)?;
        if self.rows.is_empty() {
            return Ok(Step::default());
        }
        let logits = self.forward(model)?;
        let mut sampler = match self.sampler.take() {
            Some(sampler) => sampler,
            None => Sampler::new(&self.rows, self.model.vocab_size, self.device)?,
        };
        let picks = sampler
            .sample(&logits, &self.rows.iter().map(Row::uniform).collect::<Vec<_>>())
            .map_err(|error| error.during(Phase::Decode { rows: self.rows.len() }))?;
        if let Some((row, _)) = self.rows.iter().zip(&picks).find(|(_, pick)| !pick.logprob.is_finite()) {
            return Err(PolicyError::NonFinite { request: row.request.id, position: row.response.len() });
        }
        let mut drawn = Vec::with_capacity(self.rows.len());
        for (row, pick) in self.rows.iter_mut().zip(picks) {
            row.response.push(pick.token);
            row.logprobs.push(pick.logprob);
            row.versions.push(self.version);
            drawn.push(Drawn { id: row.request.id, token: pick.token, logprob: pick.logprob, top: pick.top });
        }
        self.sampler = Some(sampler);
        let mut ended = self.take_out(|row| row.finish_reason().is_some())?;
        let finish = |row: Row| row.finish_reason().map(|reason| row.finish(reason));
        Ok(Step { drawn, finished: ended.drain(..).filter_map(finish).collect() })
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
            .map_err(|error| error.during(Phase::Decode { rows: self.rows.len() }))
    }

    /// Puts back the rows that came last until the others have room for their
    /// next tokens.
    fn preempt(&mut self) -> Result<()> {
        let mut order: Vec<(u64, usize)> = self.rows.iter().map(|row| (row.arrival, row.tokens())).collect();
        order.sort_unstable();
        let longest = |order: &[(u64, usize)]| order.iter().map(|(_, tokens)| *tokens).max().unwrap_or_default();
        // One row fits: `submit` saw to it.
        while order.len() > 1 && !self.cache.fits(order.len(), longest(&order)) {
            order.pop();
        }
        if order.len() == self.rows.len() {
            return Ok(());
        }
        let last = order.last().map_or(0, |(arrival, _)| *arrival);
        let mut put_back = self.take_out(|row| row.arrival > last)?;
        self.preemptions += put_back.len() as u64;
        put_back.sort_unstable_by_key(|row| row.arrival);
        // They came before all that wait.
        put_back.into_iter().rev().for_each(|row| self.waiting.push_front(row));
        Ok(())
    }

    /// Gives waiting requests the free places and fills their caches with all
    /// but their last token, which is the row's first input.
    fn admit(&mut self, model: &Model) -> Result<()> {
        let old = self.rows.len();
        let mut longest = self.rows.iter().map(Row::tokens).max().unwrap_or_default();
        while let Some(next) = self.waiting.front()
            && self.rows.len() < self.config.max_batch
            && self.cache.fits(self.rows.len() + 1, longest.max(next.tokens()))
            && let Some(mut row) = self.waiting.pop_front()
        {
            longest = longest.max(row.tokens());
            row.prompt_version = self.version;
            self.rows.push(row);
        }
        if self.rows.len() == old {
            return Ok(());
        }
        self.sampler = None;
        self.cache.reserve(self.rows.len(), longest)?;
        let mut known: HashMap<&[u32], usize> = HashMap::new();
        let (mut fresh, mut copies, mut copied) = (Vec::new(), Vec::new(), 0);
        for (slot, row) in self.rows.iter().enumerate() {
            let source = known.get(row.shared()).copied();
            if source.is_none() && row.prompt_version == self.version {
                known.insert(row.shared(), slot);
            }
            if slot < old || row.tokens() == 1 {
                continue;
            }
            match source {
                // What was drawn before it was put back is its own.
                Some(source) if row.response.is_empty() => {
                    copies.push((source, slot));
                    copied = copied.max(row.shared().len());
                }
                _ => fresh.push(slot),
            }
        }
        let mut rest = fresh.as_slice();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(self.prefill_batch(rest));
            self.prefill(model, batch)?;
            rest = later;
        }
        self.cache.copy(&copies, copied)
    }

    /// How many of `slots`, one at least, fit into a prefill.
    fn prefill_batch(&self, slots: &[usize]) -> usize {
        let mut longest = 0;
        let fits = |(index, &slot): (usize, &usize)| {
            longest = longest.max(self.rows[slot].tokens() - 1);
            longest * (index + 1) <= self.config.prefill_tokens
        };
        slots.iter().enumerate().map(fits).take_while(|fits| *fits).count().max(1)
    }

    fn prefill(&mut self, model: &Model, slots: &[usize]) -> Result<()> {
        let time = slots.iter().map(|&slot| self.rows[slot].tokens() - 1).max().unwrap_or_default();
        let mut ids = vec![0i64; slots.len() * time];
        for (row, &slot) in ids.chunks_mut(time).zip(slots) {
            row.iter_mut().zip(self.rows[slot].prefix()).for_each(|(id, token)| *id = i64::from(token));
        }
        let ids = Tensor::f_from_slice(&ids)?.f_view([slots.len() as i64, time as i64])?.f_to_device(self.device)?;
        let slots: Vec<i64> = slots.iter().map(|&slot| slot as i64).collect();
        let slots = Tensor::f_from_slice(&slots)?.f_to_device(self.device)?;
        for (index, part) in ids.f_split(self.config.prefill_tokens as i64, 1)?.iter().enumerate() {
            let start = (index * self.config.prefill_tokens) as i64;
            decode::prefill(model, &mut self.cache, part, &slots, start)
                .map_err(|error| error.during(Phase::Prefill { tokens: part.numel() }))?;
        }
        Ok(())
    }

    /// Takes out the rows that are `gone` and closes the gaps.
    fn take_out(&mut self, gone: impl Fn(&Row) -> bool) -> Result<Vec<Row>> {
        let mut out = Vec::new();
        // Where each remaining row was before.
        let mut origin: Vec<usize> = (0..self.rows.len()).collect();
        for slot in (0..self.rows.len()).rev() {
            if gone(&self.rows[slot]) {
                origin.swap_remove(slot);
                out.push(self.rows.swap_remove(slot));
            }
        }
        if out.is_empty() {
            return Ok(out);
        }
        self.sampler = None;
        out.reverse();
        let moved: Vec<(usize, usize)> =
            origin.into_iter().enumerate().filter(|(to, from)| from != to).map(|(to, from)| (from, to)).collect();
        let longest = moved.iter().map(|&(_, to)| self.rows[to].tokens() - 1).max().unwrap_or_default();
        self.cache.copy(&moved, longest)?;
        Ok(out)
    }
}
