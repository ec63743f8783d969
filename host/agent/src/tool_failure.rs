//! What becomes of a sample whose tool fails.

use gavel_data::{Budget, RolloutFault, RolloutStage, ToolEnding};
use gavel_endpoint::excerpt;
use serde::{Deserialize, Serialize};

/// What becomes of a sample whose tool fails, by the ending of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct OnToolFailure {
    /// Something that the tool needs, or the tool's server, did not answer.
    pub unavailable: OnFailedCall,
    /// The call exceeded a budget of the tool.
    pub out_of_budget: OnFailedCall,
    /// The tool answered with an error, or trapped.
    pub failed: OnFailedCall,
}

/// What becomes of a sample after a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnFailedCall {
    /// The policy reads the error, and the sample continues.
    Answer,
    /// The sample ends, with the outcome of the call.
    End,
}

impl Default for OnToolFailure {
    fn default() -> Self {
        Self { unavailable: OnFailedCall::End, out_of_budget: OnFailedCall::End, failed: OnFailedCall::Answer }
    }
}

/// How a call of a tool ended, and the text for the policy.
pub(crate) struct CallResult {
    pub(crate) text: String,
    pub(crate) ending: ToolEnding,
    /// The budget that it exceeded.
    pub(crate) budget: Option<Budget>,
}

impl CallResult {
    /// A call that failed.
    pub(crate) fn error(ending: ToolEnding, what: &str) -> Self {
        Self { text: format!("error: {what}"), ending, budget: None }
    }
}

impl OnToolFailure {
    /// Why a call of `function` ends its sample, if so.
    pub(crate) fn fault(&self, function: &str, result: &CallResult) -> Option<RolloutFault> {
        let CallResult { text, ending, budget } = result;
        let (choice, what) = match ending {
            ToolEnding::Answered | ToolEnding::CalledWrongly => return None,
            // The tool did its work, and its answer is too long: the policy can ask for less.
            ToolEnding::OutOfBudget if *budget == Some(Budget::Output) => return None,
            ToolEnding::Unavailable => (self.unavailable, "is unavailable".to_owned()),
            ToolEnding::OutOfBudget => {
                (self.out_of_budget, budget.map_or_else(String::new, |budget| format!("used up its {budget}")))
            }
            ToolEnding::Failed => (self.failed, "failed".to_owned()),
        };
        let text = excerpt(text.trim_start_matches("error: ").as_bytes());
        let message = format!("the tool function `{function}` {what}: {text}");
        let retryable = *ending == ToolEnding::Unavailable;
        let fault = RolloutFault { stage: RolloutStage::Tools, message, retryable, budget: *budget, diagnosis: None };
        (choice == OnFailedCall::End).then_some(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_its_sample_as_it_is_set() {
        let fault = |on: OnToolFailure, ending, budget| {
            let result = CallResult { budget, ..CallResult::error(ending, "busy") };
            on.fault("search", &result).map(|fault| (fault.message, fault.retryable, fault.budget))
        };
        use ToolEnding::{Answered, CalledWrongly, Failed, OutOfBudget, Unavailable};
        let default = OnToolFailure::default();
        let unavailable = "the tool function `search` is unavailable: busy".to_owned();
        assert_eq!(fault(default, Unavailable, None), Some((unavailable, true, None)));
        let late = "the tool function `search` used up its deadline: busy".to_owned();
        let deadline = Some(Budget::Deadline);
        assert_eq!(fault(default, OutOfBudget, deadline), Some((late, false, deadline)));
        for (ending, budget) in
            [(Answered, None), (CalledWrongly, None), (Failed, None), (OutOfBudget, Some(Budget::Output))]
        {
            assert_eq!(fault(default, ending, budget), None, "{ending:?}");
        }
        let (answer, end) = (OnFailedCall::Answer, OnFailedCall::End);
        let other = OnToolFailure { unavailable: answer, out_of_budget: answer, failed: end };
        assert_eq!(fault(other, Unavailable, None), None);
        assert_eq!(fault(other, OutOfBudget, deadline), None);
        let failed = "the tool function `search` failed: busy".to_owned();
        assert_eq!(fault(other, Failed, None), Some((failed, false, None)));
        // A record gets the beginning of what a tool may have written at length.
        let long = CallResult::error(Failed, &"x".repeat(1 << 20));
        let message = other.fault("search", &long).unwrap().message;
        assert!(message.len() < 1000 && message.ends_with("xx…"), "{message}");
    }
}
