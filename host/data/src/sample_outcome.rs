//! What scoring says of a sample.

use crate::evaluation::Evaluation;
use crate::outcome::OutcomeKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What all plugins together say of a sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleOutcome {
    /// The weighted sum; absent unless every plugin with a weight that is for
    /// the sample scored.
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
    /// The weighted sum where each plugin whose budget of computation the response exhausted counts with the least
    /// that it can add; absent where there is a reward, or something else is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowest_reward: Option<f64>,
    /// When the calls answered; it is not recorded.
    #[serde(skip)]
    pub timing: Timing,
}

/// When the calls for a sample answered.
#[derive(Debug, Clone, Default)]
pub struct Timing {
    /// By plugin, the seconds from when its call could start until it answered, the wait for a processor or for a turn
    /// at an endpoint included. A judger's call can start when its group is whole.
    pub latency: BTreeMap<String, f64>,
    /// The call that answered last; absent where there was none.
    pub last: Option<LastCall>,
}

/// The call of a sample that answered last.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LastCall {
    /// The plugin.
    pub plugin: String,
    /// The shares of its time in which it waited for language models, by endpoint: from 0 to 1, together at most 1.
    pub endpoints: BTreeMap<String, f64>,
}

/// What the clock says is no part of what was said of a sample: all are equal.
impl PartialEq for Timing {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl SampleOutcome {
    /// What is said of a sample that no plugin was called for.
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
    /// That other plugin gave no score, so that nobody knows whether it holds:
    /// there is no reward.
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
