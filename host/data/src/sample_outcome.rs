//! The outcome of a sample: its reward, from the outcomes of all plugins.

use crate::evaluation::Evaluation;
use crate::outcome::OutcomeKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The outcome of a sample, from all plugins together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleOutcome {
    /// The weighted sum; absent unless every plugin that has a weight and is for the sample scored.
    pub reward: Option<f64>,
    /// `Scored`, or the kind of the first weighted plugin that did not score.
    pub outcome: OutcomeKind,
    /// Why there is no reward.
    pub reason: Option<String>,
    /// Each plugin's call, by its name in the run.
    pub plugins: BTreeMap<String, Evaluation>,
    /// The plugins that were not called, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_called: BTreeMap<String, NotCalled>,
    /// The weighted sum if the response exhausted a plugin's budget of computation, or made it abstain: that plugin then
    /// counts with the least that it can add. Absent if there is a reward, or if something else is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest_reward: Option<f64>,
    /// When the calls answered; not recorded.
    #[serde(skip)]
    pub timing: Timing,
}

/// When the calls for a sample answered.
#[derive(Debug, Clone, Default)]
pub struct Timing {
    /// By plugin, the seconds from when its call could start until it answered, with the wait for a processor and for
    /// an endpoint. A judger's call can start when its group is whole.
    pub latency: BTreeMap<String, f64>,
    /// The call that answered last; absent if there was none.
    pub last: Option<LastCall>,
}

/// The call of a sample that answered last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LastCall {
    /// The plugin.
    pub plugin: String,
    /// The share of its time in which it waited for language models, by endpoint: from 0 to 1, at most 1 in sum.
    pub endpoints: BTreeMap<String, f64>,
}

/// Any two are equal, since times are not part of an outcome.
impl PartialEq for Timing {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl SampleOutcome {
    /// The outcome of a sample that no plugin was called for.
    pub fn without_calls(outcome: OutcomeKind, reason: impl Into<String>) -> Self {
        Self {
            reward: None,
            outcome,
            reason: Some(reason.into()),
            plugins: BTreeMap::new(),
            not_called: BTreeMap::new(),
            lowest_reward: None,
            timing: Timing::default(),
        }
    }
}

/// Why a plugin of a run was not called for a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotCalled {
    /// The condition on another plugin's score does not hold: it adds 0.
    Gate,
    /// That other plugin gave no score, so it is unknown whether the condition
    /// holds: there is no reward.
    NoGate,
    /// It is not for the task's data source: it adds nothing.
    DataSource,
}

impl NotCalled {
    /// The name in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::NoGate => "no-gate",
            Self::DataSource => "data-source",
        }
    }
}
