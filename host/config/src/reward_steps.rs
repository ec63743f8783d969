//! `steps` of `[reward_model.NAME]`: the steps that a process reward model gives values to.

use gavel_rollout::{Each, StepsConfig, StepsScore};
use serde::{Deserialize, Serialize};

/// `steps` of `[reward_model.NAME]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepsTable {
    /// What a step is; a part of the response by default.
    #[serde(default)]
    pub each: EachStep,
    /// The text between two parts; an empty line by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "\n\n"))]
    pub separator: Option<String>,
    /// A text that takes the place of each separator and follows the last part, such as `<extra_0>`. The value is read
    /// at its last token; without it, at the last token of the part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// How the values become the score; the least by default.
    #[serde(default)]
    pub score: StepsScoreName,
}

/// What a step is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EachStep {
    /// A part of the response, between separators.
    #[default]
    Part,
    /// A token.
    Token,
}

/// How the values of steps become the score.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StepsScoreName {
    /// The least value.
    #[default]
    Min,
    /// The mean.
    Mean,
    /// The value of the last step.
    Last,
    /// The product.
    Product,
}

impl StepsTable {
    /// # Errors
    /// The key that is wrong, and why.
    pub(super) fn check(&self) -> Result<(), String> {
        match (self.each, &self.separator, &self.mark) {
            (EachStep::Token, Some(_), _) => Err("separator: it is for each = \"part\"".into()),
            (EachStep::Token, _, Some(_)) => Err("mark: it is for each = \"part\"".into()),
            (EachStep::Part, Some(separator), _) if separator.is_empty() => {
                Err("separator must be a text, not \"\"\nhint: set each = \"token\" for a value of every token".into())
            }
            (EachStep::Part, _, Some(mark)) if mark.is_empty() => Err("mark must be a text, not \"\"".into()),
            (EachStep::Token | EachStep::Part, ..) => Ok(()),
        }
    }

    /// With every default.
    pub(super) fn validated(&self) -> StepsConfig {
        let each = match self.each {
            EachStep::Token => Each::Token,
            EachStep::Part => Each::Part {
                separator: self.separator.clone().unwrap_or_else(|| "\n\n".into()),
                mark: self.mark.clone(),
            },
        };
        let score = match self.score {
            StepsScoreName::Min => StepsScore::Min,
            StepsScoreName::Mean => StepsScore::Mean,
            StepsScoreName::Last => StepsScore::Last,
            StepsScoreName::Product => StepsScore::Product,
        };
        StepsConfig { each, score }
    }
}
