//! Helpers for a plugin's verdicts.

use crate::bindings::gavel::plugin::types::{Failure, Metric, PriorVerdict, Score, Verdict};
use crate::bindings::lifecycle::{Info, ScoreRange};
use serde_json::Value;

impl Score {
    /// A score without metrics, credit, note and payload. It must be finite.
    pub fn new(value: f64) -> Self {
        Self { value, metrics: Vec::new(), credit: Vec::new(), note: None, payload: None }
    }

    /// Adds a named number, averaged and logged by the host. It must be finite.
    #[must_use]
    pub fn metric(mut self, name: impl Into<String>, value: f64) -> Self {
        self.metrics.push(Metric { name: name.into(), value });
        self
    }

    /// Adds a note that explains the score; it is recorded.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Adds a JSON object of your own, such as the parts of the score. It is recorded, and the rewards that list this
    /// one in `after` read it.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Value>) -> Self {
        self.payload = Some(payload.into().to_string());
        self
    }
}

impl From<Score> for Verdict {
    fn from(score: Score) -> Self {
        Verdict::Scored(score)
    }
}

impl Verdict {
    /// No score for this sample. This is not a failure: the plugin does not
    /// judge samples of this kind.
    pub fn abstain(reason: impl Into<String>) -> Self {
        Verdict::Abstained(reason.into())
    }
}

impl PriorVerdict {
    /// The value of the score, if there is one.
    pub fn score(&self) -> Option<f64> {
        match self {
            PriorVerdict::Scored(score) => Some(score.value),
            PriorVerdict::Abstained(_) | PriorVerdict::NotCalled | PriorVerdict::NoVerdict => None,
        }
    }
}

impl Failure {
    /// The plugin cannot work on this sample or its reference.
    pub fn invalid_input(what: impl Into<String>) -> Self {
        Failure::InvalidInput(what.into())
    }

    /// A service that the plugin needs did not answer; another attempt may
    /// succeed.
    pub fn unavailable(what: impl Into<String>) -> Self {
        Failure::Unavailable(what.into())
    }

    /// The plugin itself is at fault.
    pub fn internal(what: impl Into<String>) -> Self {
        Failure::Internal(what.into())
    }
}

impl Info {
    /// A plugin's name and version; `env!("CARGO_PKG_NAME")` and
    /// `env!("CARGO_PKG_VERSION")` are the name and version of its crate.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), pure: false, score_range: None }
    }

    /// Promises that the same input gives the same verdict and that no call
    /// depends on an earlier one, so that the host may reuse an instance.
    #[must_use]
    pub fn pure(mut self) -> Self {
        self.pure = true;
        self
    }

    /// Promises scores in `[min, max]`; a score outside is a fault of the
    /// plugin.
    #[must_use]
    pub fn score_range(mut self, min: f64, max: f64) -> Self {
        self.score_range = Some(ScoreRange { min, max });
        self
    }
}
