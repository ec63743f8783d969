//! A loaded component and its calls.

use crate::agent::Agent;
use crate::call::{
    CallDetails, CallReport, CallSetup, Get, Judge, Len, Loaded, Question, Score, ask, loaded_accessors,
};
use crate::compile::NoSnapshot;
use crate::error::LoadError;
use crate::grant::Refusals;
use crate::load::{PluginSpec, load};
use crate::outside::OutsideWaits;
use crate::sandbox::Sandbox;
use crate::tool::Tool;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{Columns, Diagnosis, Evaluation, JudgeId, Outcome, Provenance, SampleInput, ShownLines, Usage};
use std::sync::Arc;
use wasmtime::component::Component;

/// A loaded component.
pub struct Plugin {
    loaded: Arc<Loaded>,
}

impl Plugin {
    /// Reads, compiles and checks a component, and initialises it once. So wrong
    /// parameters are an error here, and not an outcome of each sample.
    pub async fn load(sandbox: &Sandbox, spec: PluginSpec) -> Result<Self, LoadError> {
        Ok(Self { loaded: load(sandbox.shared(), spec).await? })
    }

    loaded_accessors!();

    pub(crate) fn component(&self) -> &Component {
        self.loaded.linked.instance_pre.component()
    }

    /// Whether it exports this interface of the contract.
    pub(crate) fn exports(&self, interface: &str) -> bool {
        self.loaded.linked.has(interface)
    }

    /// An outcome without what its grants keep secret.
    pub(crate) fn loggable(&self, outcome: Outcome, refusals: &Refusals) -> Outcome {
        self.loaded.granted.loggable(outcome, refusals)
    }

    /// Why there is no snapshot, so that each call runs `init`; `None` if there
    /// is one.
    pub fn no_snapshot(&self) -> Option<String> {
        self.loaded.no_snapshot.as_ref().map(NoSnapshot::to_string)
    }

    /// Whether its instances are set back to the snapshot for their next call.
    pub(crate) fn is_set_back(&self) -> bool {
        self.loaded.sets_back
    }

    /// Whether it scores samples one by one.
    pub fn is_reward(&self) -> bool {
        self.exports("reward")
    }

    /// Whether it judges whole groups.
    pub fn is_judger(&self) -> bool {
        self.exports("judger")
    }

    /// Whether it is a taskset.
    pub fn is_taskset(&self) -> bool {
        self.exports("taskset")
    }

    /// Whether it is an agent.
    pub fn is_agent(&self) -> bool {
        self.exports("agent")
    }

    /// The component as a tool; `None` if it is not one.
    ///
    /// # Errors
    /// It does not list its functions, or describes one wrongly.
    pub async fn tool(&self) -> Result<Option<Tool>, LoadError> {
        match self.exports("tool") {
            true => Tool::of(self.loaded.clone()).await.map(Some),
            false => Ok(None),
        }
    }

    /// The component as an agent; `None` if it is not one.
    ///
    /// # Errors
    /// Its memory limit is above what all episodes may have.
    pub fn agent(&self) -> Result<Option<Agent>, LoadError> {
        match self.exports("agent") {
            true => Agent::of(self.loaded.clone()).map(Some),
            false => Ok(None),
        }
    }

    /// Scores a sample in a fresh instance. Whatever the plugin does, this returns
    /// within its budgets.
    pub async fn score(&self, sample: impl Into<SampleInput>, seed: u64) -> Evaluation {
        self.score_seen(sample.into(), seed, &OutsideWaits::default()).await
    }

    // The futures of calls are boxed, so that this crate compiles them, and not each crate that makes a call.
    fn score_seen<'a>(&'a self, sample: SampleInput, seed: u64, waits: &'a OutsideWaits) -> BoxFuture<'a, Evaluation> {
        let scored = async move {
            let (outcome, call) = self.ask(Score(sample), seed, waits).await;
            self.evaluation(outcome.unwrap_or_else(|outcome| outcome), &call)
        };
        scored.boxed()
    }

    /// Judges the samples of a group, which are attempts at the same task, in one
    /// call. Returns an evaluation for each sample, in order, each with the usage
    /// of the whole call.
    pub async fn judge<S: Into<SampleInput>>(
        &self,
        samples: impl IntoIterator<Item = S>,
        seed: u64,
    ) -> Vec<Evaluation> {
        self.judge_seen(samples.into_iter().map(Into::into).collect(), seed, &OutsideWaits::default()).await
    }

    fn judge_seen<'a>(
        &'a self,
        samples: Arc<[SampleInput]>,
        seed: u64,
        waits: &'a OutsideWaits,
    ) -> BoxFuture<'a, Vec<Evaluation>> {
        let judged = async move {
            let (outcomes, call) = self.ask(Judge(samples.clone()), seed, waits).await;
            let outcomes = outcomes.unwrap_or_else(|outcome| vec![outcome; samples.len()]);
            outcomes.into_iter().map(|outcome| self.evaluation(outcome, &call)).collect()
        };
        judged.boxed()
    }

    /// Evaluates samples, in order: a judger sees them together, other plugins one by one. `waits` shows what the calls
    /// wait for outside.
    pub async fn evaluate(&self, samples: &[SampleInput], seed: u64, waits: &OutsideWaits) -> Vec<Evaluation> {
        if self.is_judger() {
            return self.judge_seen(samples.into(), seed, waits).await;
        }
        let mut evaluations = Vec::with_capacity(samples.len());
        for sample in samples {
            evaluations.push(self.score_seen(sample.clone(), seed, waits).await);
        }
        evaluations
    }

    /// Ends the idle instances, so that the next call has a fresh one.
    pub fn end_idle_instances(&self) {
        if let Some(idle) = &self.loaded.idle {
            idle.clear();
        }
    }

    /// The number of rows of a taskset; `None` if they never end.
    pub fn rows(&self) -> BoxFuture<'_, Result<Option<u64>, TasksetError>> {
        let counted = async move {
            let (answer, call) = self.ask(Len, 0, &OutsideWaits::default()).await;
            answer.map_err(|outcome| {
                let outcome = self.loggable(outcome, &call.details.refusals);
                self.no_row("its number of rows", &outcome, call.details.diagnosis)
            })
        };
        counted.boxed()
    }

    /// The columns of a taskset's row at `index`; they follow from it and `seed`.
    pub async fn row(&self, index: u64, seed: u64) -> Result<Columns, TasksetError> {
        let RowCall { row, diagnosis, .. } = self.row_call(index, seed).await;
        row.map_err(|outcome| self.no_row(&format!("row {index}"), &outcome, diagnosis))
    }

    /// The same, with what the call used and printed.
    pub fn row_call(&self, index: u64, seed: u64) -> BoxFuture<'_, RowCall> {
        let called = async move {
            let (answer, call) = self.ask(Get { index, seed }, seed, &OutsideWaits::default()).await;
            let CallDetails { usage, diagnosis, refusals } = call.details;
            let row = answer.and_then(|row| row).map_err(|outcome| self.loggable(outcome, &refusals));
            RowCall { row, usage, diagnosis }
        };
        called.boxed()
    }

    pub(crate) async fn ask<Q: Question>(
        &self,
        question: Q,
        seed: u64,
        waits: &OutsideWaits,
    ) -> (Result<Q::Answer, Outcome>, AskedCall) {
        let input = question.input();
        let setup = CallSetup { input: &input, seed, waits: waits.clone() };
        let CallReport { answer, details } = ask(&self.loaded, question, &setup).await;
        (answer, AskedCall { details, input, seed })
    }

    fn evaluation(&self, outcome: Outcome, call: &AskedCall) -> Evaluation {
        let loaded = &self.loaded;
        let provenance = Provenance {
            judge: JudgeId::Component(loaded.hash.clone()),
            params: loaded.params_hash.clone(),
            contract: loaded.contract.clone(),
            seed: call.seed,
            input: call.input.clone(),
        };
        Evaluation {
            outcome: self.loggable(outcome, &call.details.refusals),
            usage: call.details.usage,
            provenance: Some(provenance),
            diagnosis: call.details.diagnosis.clone(),
            caused_by: None,
        }
    }

    fn no_row(&self, what: &str, outcome: &Outcome, diagnosis: Option<Diagnosis>) -> TasksetError {
        let stderr = diagnosis.map(|diagnosis| diagnosis.stderr.trim_end().to_owned());
        TasksetError {
            plugin: self.loaded.name.clone(),
            what: what.to_owned(),
            reason: outcome.reason().unwrap_or_default(),
            stderr: stderr.filter(|text| !text.is_empty()),
        }
    }
}

/// A call that ended, without its answer.
pub(crate) struct AskedCall {
    pub(crate) details: CallDetails,
    input: String,
    seed: u64,
}

/// A call that asked a taskset for a row.
#[derive(Debug, Clone, PartialEq)]
pub struct RowCall {
    /// The columns of the row, or why there is no row.
    pub row: Result<Columns, Outcome>,
    /// The resources that the call used.
    pub usage: Usage,
    /// The output and the trap of the call; absent if there was neither.
    pub diagnosis: Option<Diagnosis>,
}

/// A failed call of a taskset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the taskset `{plugin}` did not return {what}: {}{}",
    ShownLines(reason),
    stderr.as_ref().map(|text| ShownLines(format!("\n{text}")).to_string()).unwrap_or_default()
)]
pub struct TasksetError {
    /// The plugin's name in the run.
    pub plugin: String,
    /// What the call asked for.
    pub what: String,
    /// Why there is no answer.
    pub reason: String,
    /// The end of what the plugin printed.
    pub stderr: Option<String>,
}
