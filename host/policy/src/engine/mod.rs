//! The rollout engine: continuous batching over a key-value cache.
//!
//! Requests are admitted in the order in which they came. Each
//! [`step`](Engine::step) draws one token for every active row whose prompt is
//! computed; a row that ends leaves the batch at once and a waiting request
//! takes its place. The same forward pass computes the prompts of those that
//! come, at most so many tokens of them a step, so that the others go on beside
//! a long one. Requests with the same prompt, such as a group, compute it once.
//! Where the cache is full, the rows that came last go back to the waiting
//! ones, with what they have drawn.

mod admission;
mod cache;
mod next_tokens;
mod pass;
mod request;
mod row;
mod sampler;

pub use request::{Drawn, EngineConfig, Finished, Request, Step};

use crate::config::ModelConfig;
use crate::error::{PolicyError, Result};
use crate::head::Head;
use crate::model::Model;
use crate::out_of_memory::Phase;
use admission::Filling;
use cache::Cache;
use gavel_data::FinishReason;
use row::Row;
use sampler::Sampler;
use std::collections::{HashSet, VecDeque};
use tch::{Device, Kind};

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
    /// It is in the slot after `rows`, and came after them.
    filling: Option<Filling>,
    cache: Cache,
    sampler: Sampler,
    /// The requests whose logits were not finite.
    broken: HashSet<u64>,
    preemptions: u64,
}

impl Engine {
    /// An engine for `model` and others of its configuration.
    pub fn new(model: &Model, config: EngineConfig) -> Result<Self> {
        config.validate()?;
        if model.config().head != Head::LanguageModel {
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
            filling: None,
            cache: Cache::new(model.config(), config.max_batch, config.cache_bytes, kind, device)?,
            sampler: Sampler::new(model.config().vocab_size, device),
            broken: HashSet::new(),
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
        if total as u64 > self.model.positions() as u64 {
            return wrong(format!(
                "a prompt of {} tokens and `max_tokens` {} exceed the model's {} positions",
                request.prompt.len(),
                request.sampling.max_tokens,
                self.model.positions()
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
        Ok(self.remove(id)?.is_some())
    }

    /// Ends a response with the tokens that it has, as if the last were a stop
    /// token: for those who find its end in its text. Nothing where there is no
    /// such request, or it has ended by itself.
    pub fn finish(&mut self, id: u64) -> Result<Option<Finished>> {
        Ok(self.remove(id)?.map(|row| row.finish(FinishReason::Stop)))
    }

    fn remove(&mut self, id: u64) -> Result<Option<Row>> {
        match self.waiting.iter().position(|row| row.request.id == id) {
            Some(at) => Ok(self.waiting.remove(at)),
            None => Ok(self.take_out(|row| row.request.id == id)?.pop()),
        }
    }

    /// Whether there is nothing to do.
    pub fn is_idle(&self) -> bool {
        self.active() == 0 && self.waiting.is_empty()
    }

    /// How many responses are under way, those whose prompts are being computed
    /// included.
    pub fn active(&self) -> usize {
        self.extent().0
    }

    /// How many requests wait for a place.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The longest sequence, prompt and response, that model and cache have room
    /// for, in tokens.
    pub fn longest(&self) -> usize {
        self.cache.longest().min(self.model.positions() as usize)
    }

    /// How often a row was put back because the cache was full.
    pub fn preemptions(&self) -> u64 {
        self.preemptions
    }

    /// Says that the weights are now those of `version`. Responses under way
    /// go on with the keys and values that they have; a prompt that is partly
    /// computed begins anew.
    pub fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    /// Computes at most [`prefill_tokens`](EngineConfig::prefill_tokens) tokens
    /// of prompts and draws one token for every row whose prompt is computed,
    /// be it in this step. After
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
        self.begin_anew()?;
        self.preempt()?;
        let prompts = self.admit();
        let (slots, longest) = self.extent();
        self.cache.reserve(slots, longest)?;
        let phase = Phase::Rollout { rows: self.rows.len(), prompts: prompts.tokens() };
        let logits = pass::run(model, &mut self.cache, &self.rows, &prompts).map_err(|error| error.during(phase))?;
        let Some(logits) = logits else { return Ok(Step::default()) };
        let picks = self.sampler.sample(&self.rows, &logits).map_err(|error| error.during(phase))?;
        let broken = self.rows.iter().zip(&picks).filter(|(_, pick)| !pick.logprob.is_finite()).map(|(row, _)| row);
        self.broken.extend(broken.clone().map(|row| row.request.id));
        if let Some(row) = broken.into_iter().next() {
            return Err(PolicyError::NonFinite { request: row.request.id, position: row.response.len() });
        }
        let mut drawn = Vec::with_capacity(self.rows.len());
        for (row, pick) in self.rows.iter_mut().zip(picks) {
            row.response.push(pick.token);
            row.logprobs.push(pick.logprob);
            row.versions.push(self.version);
            drawn.push(Drawn { id: row.request.id, token: pick.token, logprob: pick.logprob, top: pick.top });
        }
        let mut ended = self.take_out(|row| row.finish_reason().is_some())?;
        let finish = |row: Row| row.finish_reason().map(|reason| row.finish(reason));
        Ok(Step { drawn, finished: ended.drain(..).filter_map(finish).collect() })
    }

    fn under_way(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().chain(self.filling.iter().map(|filling| &filling.row))
    }

    /// The slots in use, and the tokens of the longest row in them.
    fn extent(&self) -> (usize, usize) {
        self.under_way().fold((0, 0), |(rows, longest), row| (rows + 1, longest.max(row.tokens())))
    }

    /// Puts back a row whose prompt was begun with other weights.
    fn begin_anew(&mut self) -> Result<()> {
        let stale = self.filling.as_ref().filter(|filling| filling.row.prompt_version != self.version);
        if let Some(arrival) = stale.map(|filling| filling.row.arrival) {
            let put_back = self.take_out(|row| row.arrival == arrival)?;
            put_back.into_iter().for_each(|row| self.waiting.push_front(row));
        }
        Ok(())
    }

    /// Puts back the rows that came last until the others have room for their
    /// next tokens.
    fn preempt(&mut self) -> Result<()> {
        let mut order: Vec<(u64, usize)> = self.under_way().map(|row| (row.arrival, row.tokens())).collect();
        order.sort_unstable();
        let longest = |order: &[(u64, usize)]| order.iter().map(|(_, tokens)| *tokens).max().unwrap_or_default();
        // One row fits: `submit` saw to it.
        while order.len() > 1 && !self.cache.fits(order.len(), longest(&order)) {
            order.pop();
        }
        if order.len() == self.active() {
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

    /// Clears the slots of rows that are `gone` and may hold what is not finite:
    /// those that broke, and one whose prompt has told nothing yet.
    fn clean(&mut self, gone: impl Fn(&Row) -> bool) -> Result<()> {
        for (slot, row) in self.rows.iter().enumerate() {
            if gone(row) && self.broken.remove(&row.request.id) {
                self.cache.clear(slot)?;
            }
        }
        match &self.filling {
            Some(filling) if filling.done > 0 && gone(&filling.row) => self.cache.clear(self.rows.len()),
            _ => Ok(()),
        }
    }

    /// Takes out the rows that are `gone` and closes the gaps, with the longest
    /// of each later share, so that rows of one share are about as long.
    fn take_out(&mut self, gone: impl Fn(&Row) -> bool) -> Result<Vec<Row>> {
        let phase = Phase::Rollout { rows: self.rows.len(), prompts: 0 };
        self.clean(&gone).map_err(|error| error.during(phase))?;
        let mut out = Vec::new();
        // Where each remaining row was before.
        let mut origin: Vec<usize> = (0..self.rows.len()).collect();
        for slot in (0..self.rows.len()).rev() {
            if gone(&self.rows[slot]) {
                let mut gap = slot;
                for share in next_tokens::shares_after(slot, self.rows.len()) {
                    let longest = share.max_by_key(|&slot| self.rows[slot].tokens()).unwrap_or(gap);
                    origin.swap(gap, longest);
                    self.rows.swap(gap, longest);
                    gap = longest;
                }
                origin.swap_remove(gap);
                out.push(self.rows.swap_remove(gap));
            }
        }
        out.reverse();
        let slot_of_filling = self.rows.len() + out.len();
        let mut moved: Vec<(usize, usize)> =
            origin.into_iter().enumerate().filter(|(to, from)| from != to).map(|(to, from)| (from, to)).collect();
        let mut longest = moved.iter().map(|&(_, to)| self.rows[to].tokens() - 1).max().unwrap_or_default();
        if let Some(filling) = self.filling.take_if(|filling| gone(&filling.row)) {
            out.push(filling.row);
        } else if let Some(filling) = self.filling.as_ref().filter(|_| slot_of_filling > self.rows.len()) {
            moved.push((slot_of_filling, self.rows.len()));
            longest = longest.max(filling.done);
        }
        self.cache.copy(&moved, longest).map_err(|error| error.during(phase))?;
        Ok(out)
    }
}
