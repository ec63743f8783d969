//! The call that asks a sampler for tasks.

use super::answer::check;
use crate::bindings::exports::gavel::plugin::sampler::{Answer, Request};
use crate::call::{Loaded, Question, verdict};
use crate::decision::{Decision, DecisionError};
use crate::engine::Exports;
use crate::error::LoadError;
use crate::imports::State;
use crate::load::PluginSpec;
use crate::plugin::Plugin;
use crate::sandbox::Sandbox;
use futures::future::BoxFuture;
use gavel_data::{Blame, Outcome};
use std::sync::Arc;
use wasmtime::{Result, Store};

/// A call that asked for tasks.
pub type SampleCall = Decision<Answer>;

impl Plugin {
    /// Loads a component that draws tasks.
    ///
    /// # Errors
    /// The component cannot be used, or does not do that.
    pub async fn load_sampler(sandbox: &Sandbox, spec: PluginSpec) -> std::result::Result<Self, LoadError> {
        let plugin = Self::load(sandbox, spec).await?;
        match plugin.is_sampler() {
            true => Ok(plugin),
            false => Err(LoadError::NotASampler { plugin: plugin.name().to_owned() }),
        }
    }

    /// Whether it draws tasks.
    pub fn is_sampler(&self) -> bool {
        self.exports("sampler")
    }

    /// The next tasks of a run, and the groups that are refused, in a fresh instance. Whatever the plugin does, this
    /// returns within its budgets. Its random numbers follow from the seed of the request.
    pub fn sample_call(&self, request: Arc<Request>) -> BoxFuture<'_, SampleCall> {
        let seed = request.seed;
        self.decide(Sample(request), seed)
    }

    /// The same without its usage.
    ///
    /// # Errors
    /// The plugin failed, or its answer does not fit the request: the draw or the group is named.
    pub async fn sample(&self, request: Arc<Request>) -> std::result::Result<Answer, DecisionError> {
        self.sample_call(request).await.of(self, "sampler", "answer")
    }
}

/// `sampler.sample`: the answer, which fits the request.
#[derive(Clone)]
struct Sample(Arc<Request>);

impl Question for Sample {
    type Answer = std::result::Result<Answer, Outcome>;

    fn input(&self) -> String {
        let Request { step, next_draw, wanted, ended, .. } = &*self.0;
        format!("step {step}, {wanted} draws from {next_draw}, {} groups that ended", ended.len())
    }

    fn handles(&self) -> usize {
        0
    }

    async fn ask(self, _: Arc<Loaded>, exports: &Exports, store: &mut Store<State>) -> Result<Self::Answer> {
        let answer = exports.sample(store, &self.0).await?;
        Ok(answer.map_err(verdict::failed).and_then(|answer| match check(&answer, &self.0) {
            Ok(()) => Ok(answer),
            Err(what) => Err(Outcome::Fault { whose: Blame::Plugin, what: verdict::cut(what) }),
        }))
    }

    fn is_sound(answer: &Self::Answer) -> bool {
        answer.is_ok()
    }
}
