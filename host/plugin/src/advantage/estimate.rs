//! The call that turns the rewards of groups into advantages.

use super::answer::check;
use crate::bindings::exports::gavel::plugin::advantage::{Estimates, Group};
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

/// Groups that a policy learns from at once.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The step, from 1.
    pub step: u64,
    /// Samples that are compared.
    pub groups: Vec<Group>,
    /// The state that the last call of the run returned; empty before.
    pub state: Vec<u8>,
}

/// A call that asked for advantages.
pub type EstimateCall = Decision<Estimates>;

impl Plugin {
    /// Loads a component that turns rewards into advantages.
    ///
    /// # Errors
    /// The component cannot be used, or does not do that.
    pub async fn load_advantage(sandbox: &Sandbox, spec: PluginSpec) -> std::result::Result<Self, LoadError> {
        let plugin = Self::load(sandbox, spec).await?;
        match plugin.is_advantage() {
            true => Ok(plugin),
            false => Err(LoadError::NotAnAdvantage { plugin: plugin.name().to_owned() }),
        }
    }

    /// Whether it turns rewards into advantages.
    pub fn is_advantage(&self) -> bool {
        self.exports("advantage")
    }

    /// The advantages of a batch, in a fresh instance. Whatever the plugin does, this returns within its budgets. Its
    /// random numbers follow from `seed`.
    pub fn estimate_call(&self, batch: Arc<Batch>, seed: u64) -> BoxFuture<'_, EstimateCall> {
        self.decide(Estimate(batch), seed)
    }

    /// The same without its usage.
    ///
    /// # Errors
    /// The plugin failed, or an advantage is missing or not finite: its group, sample and trajectory are named.
    pub async fn estimate(&self, batch: Arc<Batch>, seed: u64) -> std::result::Result<Estimates, DecisionError> {
        self.estimate_call(batch, seed).await.of(self, "advantage plugin", "advantages")
    }
}

/// `advantage.estimate`: the advantages, which fit the groups.
#[derive(Clone)]
struct Estimate(Arc<Batch>);

impl Question for Estimate {
    type Answer = std::result::Result<Estimates, Outcome>;

    fn input(&self) -> String {
        format!("step {}", self.0.step)
    }

    fn handles(&self) -> usize {
        0
    }

    async fn ask(self, _: Arc<Loaded>, exports: &Exports, store: &mut Store<State>) -> Result<Self::Answer> {
        let Batch { step, groups, state } = &*self.0;
        let answer = exports.estimate(store, *step, groups, state).await?;
        Ok(answer.map_err(verdict::failed).and_then(|estimates| match check(&estimates, groups) {
            Ok(()) => Ok(estimates),
            Err(what) => Err(Outcome::Fault { whose: Blame::Plugin, what: verdict::cut(what) }),
        }))
    }

    fn is_sound(answer: &Self::Answer) -> bool {
        answer.is_ok()
    }
}
