//! What came of a call of a tool, and what the policy reads of it.

use gavel_data::{Blame, Diagnosis, Outcome, ToolEnding, Usage};

/// What came of a call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolReport {
    /// The text for the policy. Without one, a fault of the `Input` is a call that the policy made wrongly.
    pub answer: Result<String, Outcome>,
    /// What the call used.
    pub usage: Usage,
    /// What helps to mend the tool, where the call failed.
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
