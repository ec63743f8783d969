//! The result of a tool call, and the text that the policy reads.

use gavel_data::{Blame, Diagnosis, Outcome, ToolEnding, Usage};

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolReport {
    /// The answer for the policy, or why there is none. A fault of the `Input` means that the policy made the call
    /// wrongly.
    pub answer: Result<String, Outcome>,
    /// What the call used.
    pub usage: Usage,
    /// Details that help to fix the tool, if the call failed.
    pub diagnosis: Option<Diagnosis>,
}

impl ToolReport {
    /// The report of a call that the host refuses, because the policy made it wrongly. The tool is not asked.
    pub fn called_wrongly(what: String) -> Self {
        let answer = Err(Outcome::Fault { whose: Blame::Input, what });
        Self { answer, usage: Usage::default(), diagnosis: None }
    }

    /// How the call ended.
    pub fn ending(&self) -> ToolEnding {
        match &self.answer {
            Ok(_) => ToolEnding::Answered,
            Err(Outcome::Fault { whose: Blame::Input, .. }) => ToolEnding::CalledWrongly,
            Err(Outcome::OutOfBudget { .. }) => ToolEnding::OutOfBudget,
            Err(Outcome::Unavailable(_)) => ToolEnding::Unavailable,
            Err(_) => ToolEnding::Failed,
        }
    }

    /// The text that the policy reads: the answer, or why there is none.
    pub fn text(&self) -> String {
        match &self.answer {
            Ok(text) => text.clone(),
            Err(Outcome::Fault { whose: Blame::Input, what }) | Err(Outcome::Unavailable(what)) => {
                format!("error: {what}")
            }
            Err(Outcome::OutOfBudget { what, .. }) => {
                format!("error: the call was ended: {what}; what earlier calls left is gone")
            }
            Err(outcome) => format!("error: the tool failed: {}", outcome.reason().unwrap_or_default()),
        }
    }
}
