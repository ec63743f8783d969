//! The head of a model: the part after its last layer.

/// The part after the last layer, by its class in `transformers`.
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

    /// The suffix of its class names.
    pub(crate) fn class(self) -> &'static str {
        let [language_model, scores, values] = Self::CLASSES;
        match self {
            Self::LanguageModel => language_model,
            Self::Scores { .. } => scores,
            Self::Values { .. } => values,
        }
    }

    /// The head of a class whose name has this suffix, with `labels` labels.
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
