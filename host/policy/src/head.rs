//! What a model makes of its hidden states.

use crate::error::{PolicyError, Result};
use crate::model::Model;
use tch::Tensor;

/// What stands after the last layer, by the class that `transformers` has for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Head {
    /// Logits of the next token: `…ForCausalLM`.
    #[default]
    LanguageModel,
    /// Scores of a sequence, one a label, read at its last token:
    /// `…ForSequenceClassification`, the form of reward models.
    Scores {
        /// How many.
        labels: i64,
    },
    /// Values of every token, one a label: `…ForTokenClassification`, the form
    /// of critics.
    Values {
        /// How many.
        labels: i64,
    },
}

impl Head {
    const CLASSES: [&str; 3] = ["ForCausalLM", "ForSequenceClassification", "ForTokenClassification"];

    /// How the names of its classes end.
    pub(crate) fn class(self) -> &'static str {
        let [language_model, scores, values] = Self::CLASSES;
        match self {
            Self::LanguageModel => language_model,
            Self::Scores { .. } => scores,
            Self::Values { .. } => values,
        }
    }

    /// The head of a class whose name ends so, with this many labels.
    pub(crate) fn of_class(class: &str, labels: i64) -> Option<Self> {
        [Self::LanguageModel, Self::Scores { labels }, Self::Values { labels }]
            .into_iter()
            .find(|head| head.class() == class)
    }

    /// All classes, in words.
    pub(crate) fn classes() -> String {
        Self::CLASSES.join(", ")
    }

    /// How many labels there are; `None` for a language model.
    pub fn labels(self) -> Option<i64> {
        match self {
            Self::LanguageModel => None,
            Self::Scores { labels } | Self::Values { labels } => Some(labels),
        }
    }
}

impl Model {
    /// The logits, `[…, vocab]`, of `hidden`, `[…, hidden]`.
    ///
    /// # Errors
    /// The model is a classifier or a critic.
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        if self.config().head != Head::LanguageModel {
            return Err(PolicyError::Input("only a language model has logits of the next token".into()));
        }
        Ok(hidden.f_linear(self.head.as_ref().unwrap_or(&self.embedding), None::<&Tensor>)?)
    }

    /// The values, `[…, labels]`, that a critic gives to the tokens with these
    /// hidden states, `[…, hidden]`.
    ///
    /// # Errors
    /// The model is no critic.
    pub fn values(&self, hidden: &Tensor) -> Result<Tensor> {
        match (&self.head, self.config().head) {
            (Some(head), Head::Values { .. }) => Ok(hidden.f_linear(head, self.head_bias.as_ref())?),
            _ => Err(PolicyError::Input("only a critic gives values: load one, or make one of a model".into())),
        }
    }

    /// The scores, `[rows, labels]`, that a classifier gives to sequences whose
    /// last tokens have these hidden states, `[rows, hidden]`.
    pub(crate) fn scores_of_last(&self, last: &Tensor) -> Result<Tensor> {
        match (&self.head, self.config().head) {
            (Some(head), Head::Scores { .. }) => Ok(last.f_linear(head, None::<&Tensor>)?),
            _ => Err(PolicyError::Input("only a sequence classifier gives scores".into())),
        }
    }
}
