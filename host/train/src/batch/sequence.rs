//! The parts of a row that the forward pass needs.

use crate::error::{Result, TrainError};

/// A prompt and a response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence<'a> {
    pub prompt: &'a [u32],
    pub response: &'a [u32],
    /// For each response token, whether it is learned from; `None` for all.
    pub loss_mask: Option<&'a [bool]>,
}

impl Sequence<'_> {
    /// Whether the model learns from the response token `at`.
    pub fn is_trained(&self, at: usize) -> bool {
        self.loss_mask.is_none_or(|mask| mask[at])
    }

    /// The number of tokens that are learned from.
    pub fn trained(&self) -> usize {
        (0..self.response.len()).filter(|&at| self.is_trained(at)).count()
    }

    /// How many tokens of the response the model must read to predict the last
    /// one that is learned from. That token and those after it are not read.
    /// `None` if nothing is learned.
    pub fn read(&self) -> Option<usize> {
        (0..self.response.len()).rev().find(|&at| self.is_trained(at))
    }

    /// Refuses a row that cannot be computed; `index` is its number, for the
    /// error.
    pub fn check(&self, index: usize, vocab_size: i64) -> Result<()> {
        let wrong = |what: String| Err(TrainError::Row { index, what });
        if self.prompt.is_empty() {
            return wrong("has an empty prompt, so that nothing predicts its first response token".into());
        }
        if let Some(mask) = self.loss_mask.filter(|mask| mask.len() != self.response.len()) {
            return wrong(format!("has a loss mask of {} for {} response tokens", mask.len(), self.response.len()));
        }
        let foreign = self.prompt.iter().chain(self.response).find(|&&id| i64::from(id) >= vocab_size);
        match foreign {
            Some(id) => wrong(format!("has token id {id}, but the model's vocabulary has {vocab_size}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_rows_are_named() {
        let error = |row: Sequence| row.check(3, 50).unwrap_err().to_string();
        assert!(
            error(Sequence { prompt: &[], response: &[1], loss_mask: None })
                .starts_with("row 3 of the mini-batch has an empty prompt")
        );
        assert!(
            error(Sequence { prompt: &[1], response: &[1], loss_mask: Some(&[]) })
                .contains("a loss mask of 0 for 1 response tokens")
        );
        assert!(
            error(Sequence { prompt: &[1], response: &[50], loss_mask: None })
                .contains("token id 50, but the model's vocabulary has 50")
        );
    }
}
