//! The result of a call, and the assertions of a test.

use crate::expectation::Expectation;
use crate::report::Report;
use gavel_data::{Blame, Budget, Evaluation, Outcome, OutcomeKind, Sample, Usage};
use std::fmt;
use std::sync::Arc;

/// One call of a plugin. A failed assertion shows everything that is known of
/// it.
#[derive(Debug, Clone)]
#[must_use = "a call tests nothing without an assertion"]
pub struct Call {
    plugin: String,
    sample: Arc<Sample>,
    evaluation: Evaluation,
}

impl Call {
    pub(crate) fn new(plugin: &str, sample: Arc<Sample>, evaluation: Evaluation) -> Self {
        Self { plugin: plugin.to_owned(), sample, evaluation }
    }

    /// The sample that was scored.
    pub fn sample(&self) -> &Sample {
        &self.sample
    }

    /// Everything that is known of the call.
    pub fn evaluation(&self) -> &Evaluation {
        &self.evaluation
    }

    /// The outcome of the call.
    pub fn outcome(&self) -> &Outcome {
        &self.evaluation.outcome
    }

    /// The time, memory and fuel that it used.
    pub fn usage(&self) -> &Usage {
        &self.evaluation.usage
    }

    /// The end (4 KiB) of what the plugin printed, stdout and stderr.
    pub fn printed(&self) -> &str {
        self.evaluation.diagnosis.as_ref().map_or("", |diagnosis| &diagnosis.stderr)
    }

    /// It scored `value`, give or take 1e-6.
    #[track_caller]
    pub fn assert_score(&self, value: f64) -> &Self {
        self.assert_expected(&Expectation { score: Some(value), ..Expectation::default() })
    }

    /// It scored at least `min` and at most `max`.
    #[track_caller]
    pub fn assert_score_between(&self, min: f64, max: f64) -> &Self {
        self.assert_expected(&Expectation { min: Some(min), max: Some(max), ..Expectation::default() })
    }

    /// It scored and gave this metric, give or take 1e-6.
    #[track_caller]
    pub fn assert_metric(&self, name: &str, value: f64) -> &Self {
        let metrics = [(name.to_owned(), value)].into();
        self.assert_expected(&Expectation { metrics, ..Expectation::default() })
    }

    /// It declined to score.
    #[track_caller]
    pub fn assert_abstained(&self) -> &Self {
        self.assert_outcome(OutcomeKind::Abstained)
    }

    /// It failed through the fault of `whose`.
    #[track_caller]
    pub fn assert_fault(&self, whose: Blame) -> &Self {
        self.assert_outcome(OutcomeKind::Fault);
        let found = match self.outcome() {
            Outcome::Fault { whose, .. } => *whose,
            _ => whose,
        };
        self.assert(found == whose, &format!("expected a fault of the {}, got one of the {}", name(whose), name(found)))
    }

    /// It exceeded this limit.
    #[track_caller]
    pub fn assert_out_of_budget(&self, budget: Budget) -> &Self {
        self.assert_expected(&Expectation { budget: Some(budget), ..Expectation::default() })
    }

    /// An endpoint that it needs did not answer.
    #[track_caller]
    pub fn assert_unavailable(&self) -> &Self {
        self.assert_outcome(OutcomeKind::Unavailable)
    }

    /// The reason, or the note of a score, contains `part`.
    #[track_caller]
    pub fn assert_reason(&self, part: &str) -> &Self {
        self.assert_expected(&Expectation { reason: Some(part.to_owned()), ..Expectation::default() })
    }

    /// Its output contains `part`.
    #[track_caller]
    pub fn assert_printed(&self, part: &str) -> &Self {
        self.assert(self.printed().contains(part), &format!("expected it to print {part:?}"))
    }

    /// It had at most `bytes` of memory.
    #[track_caller]
    pub fn assert_memory_at_most(&self, bytes: u64) -> &Self {
        let peak = self.usage().peak_memory;
        self.assert(peak <= bytes, &format!("expected at most {bytes} bytes of memory, it had {peak}"))
    }

    /// It used at most `fuel`, which is the same on every machine. Fuel is
    /// metered if [`Limits::fuel`](gavel_plugin::Limits::fuel) is set.
    #[track_caller]
    pub fn assert_fuel_at_most(&self, fuel: u64) -> &Self {
        let said = match self.usage().fuel {
            Some(used) => format!("expected at most {fuel} units of fuel, it used {used}"),
            None => "expected little fuel, but fuel is not metered: set `fuel` in the limits".to_owned(),
        };
        self.assert(self.usage().fuel.is_some_and(|used| used <= fuel), &said)
    }

    #[track_caller]
    fn assert_outcome(&self, kind: OutcomeKind) -> &Self {
        self.assert_expected(&Expectation { outcome: Some(kind), ..Expectation::default() })
    }

    #[track_caller]
    fn assert_expected(&self, expected: &Expectation) -> &Self {
        let mismatches = expected.check(&self.evaluation);
        let said: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
        self.assert(mismatches.is_empty(), &said.join("; "))
    }

    #[track_caller]
    #[allow(clippy::panic, reason = "an assertion of a test")]
    fn assert(&self, holds: bool, what: &str) -> &Self {
        if !holds {
            panic!("plugin `{}`: {what}\n{self}", self.plugin);
        }
        self
    }
}

fn name(whose: Blame) -> &'static str {
    match whose {
        Blame::Plugin => "plugin",
        Blame::Input => "input",
        Blame::Host => "host",
    }
}

impl fmt::Display for Call {
    /// Everything that a person needs to see what happened.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Report { sample: Some(&self.sample), evaluation: &self.evaluation }.fmt(f)
    }
}
