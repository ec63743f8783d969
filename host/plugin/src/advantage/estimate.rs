//! The call that turns the rewards of groups into advantages.

use super::answer::check;
use crate::bindings::exports::gavel::plugin::advantage::{Estimates, Group};
use crate::call::{CallDetails, Loaded, Question, verdict};
use crate::engine::Exports;
use crate::error::LoadError;
use crate::imports::State;
use crate::load::PluginSpec;
use crate::outside::OutsideWaits;
use crate::plugin::Plugin;
use crate::sandbox::Sandbox;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{Blame, Diagnosis, Outcome, ShownLines, Usage};
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
#[derive(Debug, Clone)]
pub struct EstimateCall {
    /// The advantages and the next state, or why there are none.
    pub estimates: std::result::Result<Estimates, Outcome>,
    /// The resources that the call used.
    pub usage: Usage,
    /// The output and the trap of the call; absent if there was neither.
    pub diagnosis: Option<Diagnosis>,
}

/// A call that returned no advantages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the advantage plugin `{plugin}` returned no advantages: {}{}",
    ShownLines(reason),
    stderr.as_ref().map(|text| ShownLines(format!("\n{text}")).to_string()).unwrap_or_default()
)]
pub struct AdvantageError {
    /// The plugin's name in the run.
    pub plugin: String,
    /// Why there are none.
    pub reason: String,
    /// The end of what the plugin printed.
    pub stderr: Option<String>,
}

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
        let called = async move {
            let (answer, call) = self.ask(Estimate(batch), seed, &OutsideWaits::default()).await;
            let CallDetails { usage, diagnosis, refusals } = call.details;
            let estimates = answer.and_then(|answer| answer).map_err(|outcome| self.loggable(outcome, &refusals));
            EstimateCall { estimates, usage, diagnosis }
        };
        called.boxed()
    }

    /// The same without its usage.
    ///
    /// # Errors
    /// The plugin failed, or an advantage is missing or not finite: its group, sample and trajectory are named.
    pub async fn estimate(&self, batch: Arc<Batch>, seed: u64) -> std::result::Result<Estimates, AdvantageError> {
        let EstimateCall { estimates, diagnosis, .. } = self.estimate_call(batch, seed).await;
        estimates.map_err(|outcome| {
            let stderr = diagnosis.map(|diagnosis| diagnosis.stderr.trim_end().to_owned());
            let (plugin, reason) = (self.name().to_owned(), outcome.reason().unwrap_or_default());
            AdvantageError { plugin, reason, stderr: stderr.filter(|text| !text.is_empty()) }
        })
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
