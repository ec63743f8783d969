//! A call of a tool's function, and the assertions of a test.

use super::expectation::CallExpectation;
use crate::report::{details, head, line};
use gavel_data::{Budget, Outcome, ToolEnding, Usage};
use gavel_plugin::ToolReport;
use std::fmt;

/// One call of a function of a tool. A failed assertion shows everything that is known of it.
#[derive(Debug, Clone)]
#[must_use = "a call tests nothing without an assertion"]
pub struct FunctionCall {
    plugin: String,
    function: String,
    arguments: String,
    report: ToolReport,
}

impl FunctionCall {
    pub(crate) fn new(plugin: &str, function: &str, arguments: &str, report: ToolReport) -> Self {
        Self { plugin: plugin.to_owned(), function: function.to_owned(), arguments: arguments.to_owned(), report }
    }

    /// The name of the function, and the arguments as the policy wrote them.
    pub(crate) fn asked(&self) -> (&str, &str) {
        (&self.function, &self.arguments)
    }

    /// The result of the call.
    pub fn report(&self) -> &ToolReport {
        &self.report
    }

    /// The text that the policy reads: the answer, or `error:` and the reason.
    pub fn text(&self) -> String {
        self.report.text()
    }

    /// The time, memory and fuel that it used.
    pub fn usage(&self) -> &Usage {
        &self.report.usage
    }

    /// The end (4 KiB) of what the tool printed, stdout and stderr.
    pub fn printed(&self) -> &str {
        self.report.diagnosis.as_ref().map_or("", |diagnosis| &diagnosis.stderr)
    }

    /// The tool answered with this text.
    #[track_caller]
    pub fn assert_answer(&self, text: &str) -> &Self {
        self.assert_expected(&CallExpectation { answer: Some(text.to_owned()), ..CallExpectation::default() })
    }

    /// The policy called it wrongly: there is no such function, the arguments do not fit its schema, or the tool
    /// refuses them.
    #[track_caller]
    pub fn assert_called_wrongly(&self) -> &Self {
        self.assert_ending(ToolEnding::CalledWrongly)
    }

    /// It exceeded this limit.
    #[track_caller]
    pub fn assert_out_of_budget(&self, budget: Budget) -> &Self {
        self.assert_expected(&CallExpectation { budget: Some(budget), ..CallExpectation::default() })
    }

    /// Something that the tool needs did not answer.
    #[track_caller]
    pub fn assert_unavailable(&self) -> &Self {
        self.assert_ending(ToolEnding::Unavailable)
    }

    /// The tool failed by itself.
    #[track_caller]
    pub fn assert_failed(&self) -> &Self {
        self.assert_ending(ToolEnding::Failed)
    }

    /// The text that the policy reads in place of an answer contains `part`.
    #[track_caller]
    pub fn assert_reason(&self, part: &str) -> &Self {
        self.assert_expected(&CallExpectation { reason: Some(part.to_owned()), ..CallExpectation::default() })
    }

    /// Its output contains `part`.
    #[track_caller]
    pub fn assert_printed(&self, part: &str) -> &Self {
        self.assert(self.printed().contains(part), &format!("expected it to print {part:?}"))
    }

    #[track_caller]
    fn assert_ending(&self, ending: ToolEnding) -> &Self {
        self.assert_expected(&CallExpectation { outcome: Some(ending), ..CallExpectation::default() })
    }

    #[track_caller]
    fn assert_expected(&self, expected: &CallExpectation) -> &Self {
        let mismatches = expected.check(&self.report);
        let said: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
        self.assert(mismatches.is_empty(), &said.join("; "))
    }

    #[track_caller]
    #[allow(clippy::panic, reason = "an assertion of a test")]
    fn assert(&self, holds: bool, what: &str) -> &Self {
        if !holds {
            panic!("tool `{}`: {what}\n{self}", self.plugin);
        }
        self
    }
}

impl fmt::Display for FunctionCall {
    /// Everything that a person needs to see what happened.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_with(f, "call")
    }
}

impl FunctionCall {
    /// The same report, with this title.
    pub(crate) fn fmt_with(&self, f: &mut fmt::Formatter<'_>, title: &str) -> fmt::Result {
        line(f, title, &format!("{} {}", self.function, head(&self.arguments)))?;
        line(f, "outcome", &said(&self.report))?;
        line(f, if self.report.answer.is_ok() { "answer" } else { "reason" }, &head(&self.text()))?;
        details(f, self.report.diagnosis.as_ref(), &self.report.usage)
    }
}

/// How a call ended in a few words: `answered`, `out-of-budget (cpu)`.
pub(crate) fn said(report: &ToolReport) -> String {
    let ending = report.ending().as_str();
    match &report.answer {
        Err(Outcome::OutOfBudget { which, .. }) => format!("{ending} ({which})"),
        _ => ending.to_owned(),
    }
}
