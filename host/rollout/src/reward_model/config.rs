//! How a reward model is read and batched.

use super::error::{Part, RewardModelError};
use super::steps::StepsConfig;
use gavel_policy::{Head, Model};
use gavel_text::Tokenizer;
use std::time::Duration;

/// How a reward model is read and batched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewardModelConfig {
    /// What its score is.
    pub reading: Reading,
    /// The steps that a process reward model gives values to.
    pub steps: Option<StepsConfig>,
    /// The most tokens that are computed at once; a longer conversation is computed alone.
    pub max_tokens_per_batch: usize,
    /// How long the first conversation of a batch waits for others.
    pub max_wait: Duration,
    /// Whether the weights move to host memory while nothing is scored.
    pub sleep: bool,
}

/// What the score of a model is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// The score of a sequence classifier with one label, at the conversation's last token, or the last one before
    /// tokens that pad. With steps, it is the value
    /// of a token classifier with one label, or the probability of the second of its two labels.
    Scores,
    /// The probability that a language model continues with `yes`, where `yes` and `no` are the only tokens.
    YesNo {
        /// One token.
        yes: String,
        /// One token.
        no: String,
    },
    /// The scores of all labels of a sequence classifier, for [`labels`](super::RewardModel::labels).
    Labels,
}

impl Default for RewardModelConfig {
    fn default() -> Self {
        Self {
            reading: Reading::Scores,
            steps: None,
            max_tokens_per_batch: 16_384,
            max_wait: Duration::from_millis(5),
            sleep: false,
        }
    }
}

/// Where the values are found in a model's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// The scores of all labels of a sequence classifier.
    Scores,
    /// The ids of both tokens.
    YesNo([u32; 2]),
    /// The only label of a token classifier.
    Value,
    /// The probability of the second of the two labels of a token classifier.
    SecondLabel,
}

impl RewardModelConfig {
    /// Where `model` has the values.
    pub(super) fn output(&self, model: &Model, tokenizer: &Tokenizer) -> Result<Output, RewardModelError> {
        let unfit = |part, what: String| Err(RewardModelError::Unfit { part, what });
        let has_steps = self.steps.is_some();
        match (&self.reading, model.config().head) {
            (Reading::Labels, Head::Scores { .. }) => Ok(Output::Scores),
            (Reading::Scores, Head::Scores { labels: 1 }) if !has_steps => Ok(Output::Scores),
            (Reading::Scores, Head::Scores { labels }) if !has_steps => {
                unfit(Part::Labels, format!("there are {labels} labels, and a reward model has one"))
            }
            (Reading::Scores, Head::Scores { .. }) => unfit(
                Part::Steps,
                "a sequence classifier has no values of steps\nhint: leave steps out, or name a checkpoint with …ForTokenClassification".into(),
            ),
            (Reading::Scores, Head::Values { labels: 1 }) if has_steps => Ok(Output::Value),
            (Reading::Scores, Head::Values { labels: 2 }) if has_steps => Ok(Output::SecondLabel),
            (Reading::Scores, Head::Values { labels }) if has_steps => {
                unfit(Part::Labels, format!("there are {labels} labels, and a process reward model has one or two"))
            }
            (Reading::Scores, Head::Values { .. }) => unfit(
                Part::Architectures,
                "it is a token classifier, whose values are those of steps\nhint: set steps, such as steps = { separator = \"\\n\\n\" }".into(),
            ),
            (Reading::Scores | Reading::Labels, Head::LanguageModel) => unfit(
                Part::Architectures,
                "it is a language model, which has no score\nhint: name a checkpoint with …ForSequenceClassification, or set yes_no = [\"Yes\", \"No\"] and a chat_template that asks for one of them".into(),
            ),
            (Reading::YesNo { yes, no }, Head::LanguageModel) => {
                let token = |text: &str| match *tokenizer.encode(text)? {
                    [token] => Ok(token),
                    ref tokens => Err(RewardModelError::Unfit {
                        part: Part::YesNo,
                        what: format!("{text:?} is {} tokens of the tokenizer, and must be one", tokens.len()),
                    }),
                };
                Ok(Output::YesNo([token(yes)?, token(no)?]))
            }
            (Reading::YesNo { .. }, Head::Scores { .. } | Head::Values { .. }) => unfit(
                Part::YesNo,
                "the checkpoint is a classifier, which says neither yes nor no\nhint: leave yes_no out".into(),
            ),
            (Reading::Labels, Head::Values { .. }) => unfit(
                Part::Architectures,
                "it is a token classifier, which has no score of a text".into(),
            ),
        }
    }
}
