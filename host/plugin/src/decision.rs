//! Calls of components that decide what is learned: advantages and samplers. What a component keeps from one call to the
//! next is bytes, which the run passes in and out.

use crate::call::{CallDetails, Question};
use crate::outside::OutsideWaits;
use crate::plugin::Plugin;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{Diagnosis, Outcome, ShownLines, Usage};

/// The most bytes of the state that a component keeps from one call to the next. It is in every checkpoint.
pub const MOST_STATE: usize = 1 << 20;

/// A call that asked for a decision.
#[derive(Debug, Clone)]
pub struct Decision<T> {
    /// The answer, or why there is none.
    pub answer: Result<T, Outcome>,
    /// The resources that the call used.
    pub usage: Usage,
    /// The output and the trap of the call; absent if there was neither.
    pub diagnosis: Option<Diagnosis>,
}

/// A call that returned no decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {kind} `{plugin}` returned no {missing}: {}{}",
    ShownLines(reason),
    stderr.as_ref().map(|text| ShownLines(format!("\n{text}")).to_string()).unwrap_or_default()
)]
pub struct DecisionError {
    /// What the plugin is, such as `sampler`.
    pub kind: &'static str,
    /// The plugin's name in the run.
    pub plugin: String,
    /// What was asked for, such as `answer`.
    pub missing: &'static str,
    /// Why there is none.
    pub reason: String,
    /// The end of what the plugin printed.
    pub stderr: Option<String>,
}

impl<T> Decision<T> {
    /// The answer of `plugin`.
    pub(crate) fn of(self, plugin: &Plugin, kind: &'static str, missing: &'static str) -> Result<T, DecisionError> {
        let Self { answer, diagnosis, .. } = self;
        answer.map_err(|outcome| {
            let stderr = diagnosis.map(|diagnosis| diagnosis.stderr.trim_end().to_owned());
            let (plugin, reason) = (plugin.name().to_owned(), outcome.reason().unwrap_or_default());
            DecisionError { kind, plugin, missing, reason, stderr: stderr.filter(|text| !text.is_empty()) }
        })
    }
}

impl Plugin {
    /// Asks for a decision, in a fresh instance. Whatever the plugin does, this returns within its budgets. Its random
    /// numbers follow from `seed`.
    pub(crate) fn decide<T: Send + 'static>(
        &self,
        question: impl Question<Answer = Result<T, Outcome>> + Sync,
        seed: u64,
    ) -> BoxFuture<'_, Decision<T>> {
        let called = async move {
            let (answer, call) = self.ask(question, seed, &OutsideWaits::default()).await;
            let CallDetails { usage, diagnosis, refusals } = call.details;
            let answer = answer.and_then(|answer| answer).map_err(|outcome| self.loggable(outcome, &refusals));
            Decision { answer, usage, diagnosis }
        };
        called.boxed()
    }
}

/// Refuses a state that is too large for a checkpoint.
pub(crate) fn check_state(state: &[u8]) -> Result<(), String> {
    match state.len() {
        bytes if bytes > MOST_STATE => Err(format!("the state has {bytes} bytes, more than the {MOST_STATE} allowed")),
        _ => Ok(()),
    }
}
