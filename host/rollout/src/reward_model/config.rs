//! How a reward model is read and batched.

use super::error::RewardModelError;
use gavel_policy::{Head, Model};
use gavel_text::Tokenizer;
use std::time::Duration;

/// How a reward model is read and batched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewardModelConfig {
    /// What its score is.
    pub reading: Reading,
    /// The most tokens that are computed at once; a longer conversation is computed alone.
    pub max_tokens_per_batch: usize,
    /// How long the first conversation of a batch waits for others.
    pub max_wait: Duration,
}

/// What the score of a model is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// That of a sequence classifier with one label, at the conversation's last token.
    Scores,
    /// The probability that a language model continues with `yes`, where `yes` and `no` are the only tokens.
    YesNo {
        /// One token.
        yes: String,
        /// One token.
        no: String,
    },
}

/// Where the score is found in a model's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    Score,
    /// The ids of both tokens.
    YesNo([u32; 2]),
}

impl Reading {
    /// Where `model` has the score.
    pub(super) fn output(&self, model: &Model, tokenizer: &Tokenizer) -> Result<Output, RewardModelError> {
        let unfit = |what: &str| Err(RewardModelError::Unfit(what.to_owned()));
        match (self, model.config().head) {
            (Self::Scores, Head::Scores { labels: 1 }) => Ok(Output::Score),
            (Self::Scores, Head::Scores { labels }) => {
                unfit(&format!("it has {labels} labels, and a reward model has one"))
            }
            (Self::Scores, Head::LanguageModel) => unfit(
                "it is a language model, which has no score\nhint: name a checkpoint with …ForSequenceClassification, or set yes_no = [\"Yes\", \"No\"] and a chat_template that asks for one of them",
            ),
            (Self::YesNo { yes, no }, Head::LanguageModel) => {
                let token = |text: &str| match *tokenizer.encode(text)? {
                    [token] => Ok(token),
                    ref tokens => Err(RewardModelError::Unfit(format!(
                        "yes_no: {text:?} is {} tokens, and must be one",
                        tokens.len()
                    ))),
                };
                Ok(Output::YesNo([token(yes)?, token(no)?]))
            }
            (Self::YesNo { .. }, Head::Scores { .. }) => {
                unfit("it is a classifier, which says neither yes nor no\nhint: leave yes_no out")
            }
            (_, Head::Values { .. }) => unfit("it is a critic, whose values are those of tokens"),
        }
    }
}
