//! The outputs computed from hidden states: logits, values or scores.

use crate::config::Head;
use crate::error::{PolicyError, Result};
use crate::model::Model;
use crate::wide_logits::how;
use gavel_torch::head::{Beside, LogitChanges, TokenLogprobs, changed_logprobs};
use tch::Tensor;

impl Model {
    /// The logits, `[…, vocab]`, of `hidden`, `[…, hidden]`.
    ///
    /// # Errors
    /// The model is a classifier or a critic.
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor> {
        Ok(hidden.f_linear(self.language_head()?, None::<&Tensor>)?)
    }

    /// The log-probabilities of `targets`, `[tokens]`, under the `softmax` of the logits of `hidden`, `[tokens,
    /// hidden]`, over `temperature`.
    ///
    /// # Errors
    /// The model is a classifier or a critic, or a target is outside the vocabulary.
    pub fn logprobs_of(
        &self,
        hidden: &Tensor,
        targets: &Tensor,
        temperature: f64,
        beside: Beside,
    ) -> Result<TokenLogprobs> {
        self.changed_logprobs_of(hidden, targets, temperature, beside, &LogitChanges::default())
    }

    /// The same with logits after `changes`, as sampling makes them.
    ///
    /// # Errors
    /// As [`logprobs_of`](Self::logprobs_of), or the changes are of other logits.
    pub fn changed_logprobs_of(
        &self,
        hidden: &Tensor,
        targets: &Tensor,
        temperature: f64,
        beside: Beside,
        changes: &LogitChanges,
    ) -> Result<TokenLogprobs> {
        let head = self.language_head()?;
        let how = how(hidden, head, !changes.is_empty());
        Ok(changed_logprobs(hidden, head, targets, temperature, beside, how, changes)?)
    }

    /// `[vocab, hidden]`
    pub(crate) fn language_head(&self) -> Result<&Tensor> {
        if self.config().head != Head::LanguageModel {
            return Err(PolicyError::Input("only a language model has logits of the next token".into()));
        }
        Ok(self.head.as_ref().unwrap_or(&self.embedding))
    }

    /// The values, `[…, labels]`, that a critic gives to the tokens with these
    /// hidden states, `[…, hidden]`.
    ///
    /// # Errors
    /// The model is not a critic.
    pub fn values(&self, hidden: &Tensor) -> Result<Tensor> {
        match (&self.head, self.config().head) {
            (Some(head), Head::Values { .. }) => Ok(hidden.f_linear(head, self.head_bias.as_ref())?),
            _ => Err(PolicyError::Input(
                "only a critic gives values\nhint: load a critic, or make one from a model".into(),
            )),
        }
    }

    /// The scores, `[rows, labels]`, that a classifier gives to sequences whose
    /// last tokens have these hidden states, `[rows, hidden]`.
    ///
    /// # Errors
    /// The model is not a classifier.
    pub fn scores_of_last(&self, last: &Tensor) -> Result<Tensor> {
        match (&self.head, self.config().head) {
            (Some(head), Head::Scores { .. }) => Ok(last.f_linear(head, None::<&Tensor>)?),
            _ => Err(PolicyError::Input("only a sequence classifier gives scores".into())),
        }
    }
}

/// The number of the token at which a classifier's score of a sequence is read: the last one that is not `pad`, or the
/// first, as in `transformers`. `None` for a sequence without tokens.
pub fn score_place(tokens: &[u32], pad: Option<u32>) -> Option<usize> {
    let first = tokens.first().map(|_| 0);
    tokens.iter().rposition(|token| Some(*token) != pad).or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_read_before_the_tokens_that_pad() {
        let place = |tokens: &[u32]| score_place(tokens, Some(0));
        assert_eq!((place(&[3, 0, 4]), place(&[3, 0, 4, 0, 0])), (Some(2), Some(2)));
        assert_eq!((place(&[0, 0]), place(&[])), (Some(0), None));
        assert_eq!(score_place(&[3, 0], None), Some(1));
    }
}
