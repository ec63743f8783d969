//! The rollout engine: continuous batching over a key-value cache.
//!
//! Requests are admitted in the order of their arrival. Each [`step`](Engine::step) draws one token for every active
//! row whose prompt is computed. A row that ends leaves the batch at once, and a waiting request takes its place. Where
//! CUDA graphs repeat steps, the next step may have begun already: then the request joins one step later. The
//! same forward pass computes the prompts of new rows, a bounded number of tokens a step, so that a long prompt does
//! not stop the other rows. Requests with the same prompt, such as a group, compute it once. If the cache is full, the
//! rows that came last are put back to the waiting requests and keep the tokens that they have drawn. A turn of a
//! conversation computes only what is new in its prompt. If there is room, the keys and values of earlier turns are
//! kept beside the keys and values of the rows under way.

mod cache_budget;
mod cache_use;
mod constrained;
mod could_draw;
mod decoding;
mod drafts;
mod draw_kernels;
mod drawn;
mod graphs;
mod inputs;
mod kept;
mod kv_cache;
pub mod kv_cache_growth;
mod lookup;
mod next_tokens;
mod pass;
mod prefill;
mod regions;
mod request;
mod row;
mod sampler;
mod scheduler;
mod search;
mod seen;
mod slots;
mod truncation;
mod unread_step;

pub use cache_budget::cache_budget;
pub use cache_use::CacheUse;
pub use drafts::Proposals;
pub use lookup::Lookup;
pub use request::{DrawnToken, EngineConfig, EngineStep, Finished, Request};

use crate::config::{Head, ModelConfig};
use crate::device::give_back;
use crate::error::{PolicyError, Result};
use crate::memory::Footprint;
use crate::model::Model;
use crate::out_of_memory::Phase;
use constrained::constrain;
use decoding::Decoding;
use drafts::{accepted, drafts};
use drawn::{Pick, pairs};
use gavel_data::FinishReason;
use graphs::{Computed, Graphs};
use inputs::HostInputs;
use kept::Kept;
use kv_cache::KvCache;
use prefill::Prefill;
use row::Row;
use sampler::{Form, Sampler};
use scheduler::Scheduler;
use slots::Slots;
use std::collections::HashSet;
use std::iter::once;
use tch::{Device, Kind};
use unread_step::{UnreadStep, Weights};

/// Decodes many requests together. Its thread owns the device.
pub struct Engine {
    config: EngineConfig,
    model: ModelConfig,
    kind: Kind,
    device: Device,
    /// A step that the device computes before it is asked for. It ends before the cache and the graphs are dropped.
    ahead: Option<UnreadStep>,
    scheduler: Scheduler,
    sampler: Sampler,
    /// Where steps without prompts can be repeated.
    graphs: Option<Graphs>,
    prefilled: u64,
    proposals: Proposals,
    /// The model in fewer bits, until its weights change.
    quantized: Option<Model>,
}

impl Engine {
    /// An engine for `model` and for other models of its configuration.
    pub fn new(model: &Model, config: EngineConfig) -> Result<Self> {
        config.validate()?;
        if model.config().head != Head::LanguageModel {
            return Err(PolicyError::Input("a classifier cannot draw tokens\nhint: load a language model".into()));
        }
        let (kind, device) = (model.kind(), model.device());
        config.quantization.map_or(Ok(()), |quantization| model.check_quantization(quantization))?;
        let cache = KvCache::new(model.config(), config.cache_bytes, kind, device)?;
        Ok(Self {
            model: model.config().clone(),
            kind,
            device,
            ahead: None,
            scheduler: Scheduler::new(&config, Slots::new(cache)),
            sampler: Sampler::new(model.config().vocab_size),
            graphs: Graphs::on(device, kind),
            config,
            prefilled: 0,
            proposals: Proposals::default(),
            quantized: None,
        })
    }

    /// Queues a request.
    pub fn submit(&mut self, request: Request) -> Result<()> {
        request.validate(&self.model)?;
        let cache = &self.scheduler.slots.cache;
        if !cache.fits(once(request.most_tokens())) {
            return Err(PolicyError::Input(format!(
                "request {}: a prompt of {} tokens and `max_tokens` {} need more than the cache's {} bytes, which are {} tokens\nhint: ask for fewer tokens, or give the cache more memory",
                request.id,
                request.prompt.len(),
                request.sampling.max_tokens,
                self.config.cache_bytes.unwrap_or_default(),
                cache.longest()
            )));
        }
        self.scheduler.submit(request);
        Ok(())
    }

    /// Queues a request before those that wait.
    pub fn submit_first(&mut self, request: Request) -> Result<()> {
        self.submit(request)?;
        self.scheduler.waiting.rotate_right(1);
        Ok(())
    }

    /// Removes a request, waiting or under way. Returns whether it existed.
    pub fn cancel(&mut self, id: u64) -> Result<bool> {
        Ok(self.scheduler.remove(id)?.is_some())
    }

    /// Ends a response with the tokens that it has, as if the last were a stop
    /// token: for callers that find the end in the text. `None` if there is no
    /// such request or it has already ended.
    pub fn finish(&mut self, id: u64) -> Result<Option<Finished>> {
        self.finish_after(id, usize::MAX)
    }

    /// The same with the first `tokens` tokens of the response: a step may have drawn more than the one that ends it.
    pub fn finish_after(&mut self, id: u64, tokens: usize) -> Result<Option<Finished>> {
        self.scheduler.rows_mut().filter(|row| row.request.id == id).for_each(|row| row.truncate(tokens));
        self.scheduler.slots.keep(|row| row.request.id == id, self.scheduler.changes)?;
        Ok(self.scheduler.remove(id)?.map(|row| row.finish(FinishReason::Stop)))
    }

    /// Forgets a conversation, which has no further turn.
    pub fn forget(&mut self, conversation: u64) {
        self.scheduler.slots.cache.kept.forget(conversation);
    }

    /// Whether no request waits or is under way.
    pub fn is_idle(&self) -> bool {
        self.active() == 0 && self.waiting() == 0
    }

    /// How many responses are under way, those whose prompts are being computed
    /// included.
    pub fn active(&self) -> usize {
        self.scheduler.slots.active()
    }

    /// How many requests wait for a place.
    pub fn waiting(&self) -> usize {
        self.scheduler.waiting.len()
    }

    /// The longest sequence, prompt and response, that model and cache have room
    /// for, in tokens.
    pub fn longest(&self) -> usize {
        self.scheduler.slots.cache.longest().min(self.model.positions() as usize)
    }

    /// How often a row was put back because the cache was full.
    pub fn preemptions(&self) -> u64 {
        self.scheduler.preemptions
    }

    /// The memory of keys and values now.
    pub fn cache_use(&self) -> CacheUse {
        let per_token = Footprint::new(&self.model, self.kind, self.device).cache_per_token() as usize;
        CacheUse::of(&self.scheduler.slots, per_token)
    }

    /// How many tokens prompt look-up has proposed.
    pub fn proposals(&self) -> Proposals {
        self.proposals
    }

    /// How many tokens of prompts were computed, padding included.
    pub fn prefilled(&self) -> u64 {
        self.prefilled
    }

    /// Declares that the weights now have the version `version`. If they had another version, they [have
    /// changed](Self::weights_changed).
    pub fn set_version(&mut self, version: u64) {
        if version != std::mem::replace(&mut self.scheduler.version, version) {
            self.weights_changed();
        }
    }

    /// Declares that the weights have changed, within the same version. Conversations that wait for a turn are computed
    /// again with the new weights. Responses under way continue with the keys and values that they have, unless
    /// [`recompute_cache`](EngineConfig::recompute_cache) is set. A prompt that is partly computed starts again.
    pub fn weights_changed(&mut self) {
        self.release_quantized();
        self.scheduler.changes += 1;
        self.scheduler.slots.cache.kept = Kept::default();
    }

    /// Frees the weights in fewer bits, which are made again before the next step: the weights are about to change.
    pub fn release_quantized(&mut self) {
        self.quantized = None;
    }

    /// Frees the memory of all keys and values, so that something else can have it. Responses under way keep the tokens
    /// that they have drawn. Before they continue, they are computed again, with the weights of then.
    pub fn release_cache(&mut self) -> Result<()> {
        if self.scheduler.slots.cache.is_empty() {
            return Ok(());
        }
        self.ahead = None;
        self.scheduler.put_back(|_| true)?;
        if let Some(graphs) = &mut self.graphs {
            graphs.forget();
        }
        self.scheduler.slots.cache.release()?;
        give_back(self.device)
    }

    /// Computes at most [`prefill_tokens`](EngineConfig::prefill_tokens) tokens of prompts and draws one token for
    /// every row whose prompt is computed, including those completed in this step; with [`Lookup`], a row may get
    /// several. A GPU may already compute the next step when this returns, whose tokens are not used if anything changes
    /// that they depend on. After [`NonFinite`](PolicyError::NonFinite) and [`Constraint`](PolicyError::Constraint)
    /// nothing was drawn: once that request is [cancelled](Self::cancel) or [finished](Self::finish), the others
    /// continue. After another error the engine must not be used again.
    pub fn step(&mut self, model: &Model) -> Result<EngineStep> {
        if *model.config() != self.model || model.device() != self.device || model.kind() != self.kind {
            return Err(PolicyError::Input(
                "the engine was made for a model of another configuration, kind or device".into(),
            ));
        }
        let _guard = tch::no_grad_guard();
        let Some(quantization) = self.config.quantization else { return self.step_with(model) };
        let quantized = match self.quantized.take() {
            Some(quantized) => quantized,
            None => model.quantized(quantization)?,
        };
        let step = self.step_with(&quantized);
        self.quantized = Some(quantized);
        step
    }

    /// A step with the model that draws.
    fn step_with(&mut self, model: &Model) -> Result<EngineStep> {
        let (version, changes) = (self.scheduler.version, self.scheduler.changes);
        let addresses = self.graphs.as_ref().map_or(0, |_| model.addresses());
        let weights = Weights { changes, addresses };
        let mut prefill = Prefill::default();
        let ahead = self.take_ahead(weights)?;
        if ahead.is_none() {
            self.scheduler.restart_stale()?;
            self.scheduler.preempt()?;
            prefill = self.scheduler.admit();
            self.scheduler.slots.reserve()?;
        }
        let phase = Phase::Rollout { rows: self.scheduler.slots.rows.len(), prompts: prefill.tokens() };
        let picks = match ahead {
            Some((places, step)) => self.read(model, step, &places).map(|picks| Some(alone(picks))),
            None => self.compute(model, &prefill, weights),
        };
        let picks = picks.map_err(|error| error.during(phase))?;
        let Some(picks) = picks else { return Ok(EngineStep::default()) };
        let slots = &mut self.scheduler.slots;
        let picked = slots.rows.iter().zip(&picks);
        let is_broken = |picks: &[Pick]| picks.first().is_some_and(|pick| !pick.logprob.is_finite());
        let broken: Vec<&Row> = picked.filter(|(_, picks)| is_broken(picks)).map(|(row, _)| row).collect();
        if let Some(first) = broken.first() {
            let error = PolicyError::NonFinite { request: first.request.id, position: first.response.len() };
            let requests: Vec<u64> = broken.iter().map(|row| row.request.id).collect();
            slots.mark_broken(requests);
            self.sampler.forget_draws();
            return Err(error);
        }
        let mut drawn = Vec::with_capacity(slots.rows.len());
        for (row, picks) in slots.rows.iter_mut().zip(picks) {
            for pick in picks {
                // It may end with a token before the last that was proposed.
                if row.finish_reason().is_some() {
                    break;
                }
                row.push(&pick, version);
                drawn.push(DrawnToken { id: row.request.id, token: pick.token, logprob: pick.logprob, top: pick.top });
            }
        }
        self.proposals.accepted += (drawn.len() - slots.rows.len()) as u64;
        slots.keep(|row| row.finish_reason().is_some(), changes).map_err(|error| error.during(phase))?;
        let ended = slots.remove(|row| row.finish_reason().is_some())?;
        let finish = |row: Row| row.finish_reason().map(|reason| row.finish(reason));
        Ok(EngineStep { drawn, finished: ended.into_iter().filter_map(finish).collect() })
    }

    /// Computes `prefill` and draws a token for each row, or several where tokens were proposed; `None` without rows.
    fn compute(&mut self, model: &Model, prefill: &Prefill, weights: Weights) -> Result<Option<Vec<Vec<Pick>>>> {
        let slots = &mut self.scheduler.slots;
        let vocab = self.model.vocab_size;
        let (mut rows, form) = (Decoding::all(slots), Form::of(slots.rows.iter(), vocab));
        let count = rows.len();
        rows.extend(self.config.lookup.iter().flat_map(|lookup| drafts(lookup, slots)));
        let proposed = rows.len() - count;
        self.proposals.proposed += proposed as u64;
        let graphs = self.graphs.as_mut().filter(|graphs| graphs.is_usable());
        let (inputs, computed) = match graphs.filter(|_| prefill.is_empty() && !rows.is_empty()) {
            Some(graphs) => graphs.step(model, weights.addresses, slots, &rows, form, None)?,
            None => {
                slots.restore(prefill)?;
                self.prefilled += prefill.tokens() as u64;
                let inputs = HostInputs::new(slots, &rows, prefill, rows.len(), vocab).send(self.device)?;
                let Some(logits) = pass::run(model, slots, &inputs, prefill)? else { return Ok(None) };
                (inputs, Computed::Logits(logits))
            }
        };
        match computed {
            Computed::Logits(logits) => {
                // The device may still compute them.
                let logits = constrain(&mut slots.rows, logits)?;
                let of_picks: Vec<&Row> = rows.iter().map(|of| of.row(slots)).collect();
                let picks = self.sampler.sample(&of_picks, &logits, &inputs, form)?;
                Ok(Some(accepted(&rows, picks)))
            }
            Computed::Tokens(drawn) if proposed > 0 => {
                let picks = pairs(&drawn.pairs)?.into_iter().map(Pick::new).collect();
                Ok(Some(accepted(&rows, picks)))
            }
            Computed::Tokens(drawn) => {
                let step = UnreadStep::new(slots, &rows, &drawn, weights)?;
                let places: Vec<usize> = (0..rows.len()).collect();
                self.read(model, step, &places).map(|picks| Some(alone(picks)))
            }
        }
    }

    /// The step that was started ahead, with the places of the rows; `None` if there is none, or if something has changed
    /// since.
    fn take_ahead(&mut self, weights: Weights) -> Result<Option<(Vec<usize>, UnreadStep)>> {
        let (Some(step), slots) = (self.ahead.take(), &self.scheduler.slots) else { return Ok(None) };
        match step.places(&slots.rows, weights) {
            Some(places) => Ok(Some((places, step))),
            None => step.read(slots, &[]).map(|_| None),
        }
    }

    /// The tokens of a step at these places, one for each row. The device gets the next step first, so that it does not
    /// wait for the host.
    fn read(&mut self, model: &Model, step: UnreadStep, places: &[usize]) -> Result<Vec<Pick>> {
        self.ahead = self.start_next(model, &step, places)?;
        step.read(&self.scheduler.slots, places)
    }

    /// Starts the step after `before`, whose tokens the host has not read. `None` if it needs the host, or if a request
    /// can join it.
    fn start_next(&mut self, model: &Model, before: &UnreadStep, places: &[usize]) -> Result<Option<UnreadStep>> {
        let Some(graphs) = self.graphs.as_mut().filter(|graphs| graphs.is_usable()) else { return Ok(None) };
        // The host proposes tokens, and has to know those before.
        let proposes = self.config.lookup.as_ref().is_some_and(|lookup| lookup.is_used_for(places.len()));
        if proposes || self.scheduler.has_prompts() {
            return Ok(None);
        }
        let slots = &mut self.scheduler.slots;
        let rows = Decoding::after(slots, places);
        let form = Form::of(rows.iter().map(|of| of.row(slots)), self.model.vocab_size);
        let can_join = rows.len() < places.len() && !self.scheduler.waiting.is_empty();
        if rows.is_empty() || can_join || !form.is_plain() {
            return Ok(None);
        }
        // The tokens of the step before are computed before a row moves, as the device does one thing after another.
        let going_on: HashSet<usize> = rows.iter().map(|of| of.number).collect();
        let needs = slots.needs(|number| usize::from(going_on.contains(&number)));
        if !slots.cache.rearrange_for_graphs(&needs)? {
            return Ok(None);
        }
        match graphs.step(model, before.weights.addresses, slots, &rows, form, Some(&before.tokens))? {
            (_, Computed::Tokens(drawn)) => UnreadStep::new(slots, &rows, &drawn, before.weights).map(Some),
            (_, Computed::Logits(_)) => Ok(None),
        }
    }
}

/// One token for each row.
fn alone(picks: Vec<Pick>) -> Vec<Vec<Pick>> {
    picks.into_iter().map(|pick| vec![pick]).collect()
}
