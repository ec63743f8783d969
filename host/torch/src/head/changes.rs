//! Changes of logits between the head and the softmax, as sampling makes them before it draws a token.

use crate::{Result, TchError};
use tch::Tensor;

/// Changes of the logits of some tokens. Each token has a row of logits, and rows get their changes in ascending order.
/// For each row, biases are added first, then penalties are applied, and then tokens are excluded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogitChanges {
    vocab: i64,
    /// The last row that has a change.
    last: i64,
    biased: Vec<i64>,
    biases: Vec<f32>,
    penalised: Vec<i64>,
    penalties: Vec<f32>,
    limited: Vec<i64>,
    kept: Vec<i64>,
    banned: Vec<i64>,
}

impl LogitChanges {
    /// No changes, of logits of a vocabulary of this size.
    pub fn new(vocab: i64) -> Self {
        Self { vocab, ..Self::default() }
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        [&self.biased, &self.penalised, &self.limited, &self.banned].into_iter().all(Vec::is_empty)
    }

    /// Adds numbers to the logits of these tokens, of which none is named twice.
    ///
    /// # Errors
    /// A token is outside the vocabulary, or a later row already has changes; so it is for the other changes.
    pub fn bias(&mut self, row: usize, biases: &[(u32, f32)]) -> Result<()> {
        self.begin(row)?;
        add_places(&mut self.biased, row, self.vocab, biases.iter().map(|(token, _)| *token))?;
        self.biases.extend(biases.iter().map(|(_, bias)| bias));
        Ok(())
    }

    /// Divides positive logits of these tokens by `penalty` and multiplies the others. No token is named twice.
    ///
    /// # Errors
    /// As [`bias`](Self::bias).
    pub fn penalise(&mut self, row: usize, tokens: &[u32], penalty: f32) -> Result<()> {
        self.begin(row)?;
        add_places(&mut self.penalised, row, self.vocab, tokens.iter().copied())?;
        self.penalties.resize(self.penalised.len(), penalty);
        Ok(())
    }

    /// Excludes all tokens but these, of which none is named twice.
    ///
    /// # Errors
    /// As [`bias`](Self::bias), or all tokens are excluded.
    pub fn keep_only(&mut self, row: usize, tokens: &[u32]) -> Result<()> {
        if tokens.is_empty() {
            return Err(TchError::Torch(format!("all tokens are excluded from row {row} of logits")));
        }
        self.begin(row)?;
        add_places(&mut self.kept, row, self.vocab, tokens.iter().copied())?;
        self.limited.push(row as i64);
        Ok(())
    }

    /// Excludes these tokens, of which none is named twice.
    ///
    /// # Errors
    /// As [`bias`](Self::bias).
    pub fn exclude(&mut self, row: usize, tokens: &[u32]) -> Result<()> {
        self.begin(row)?;
        add_places(&mut self.banned, row, self.vocab, tokens.iter().copied())
    }

    /// Refuses changes of other logits than `[tokens, vocab]`.
    pub(super) fn check(&self, tokens: i64, vocab: i64) -> Result<()> {
        if self.is_empty() || (self.vocab == vocab && self.last < tokens) {
            return Ok(());
        }
        let own = self.vocab;
        let what = format!("changes of logits [{}, {own}] do not fit logits [{tokens}, {vocab}]", self.last + 1);
        Err(TchError::Torch(what))
    }

    /// The tensors of the shim's `Changes`, in their order; `None` in place of an empty one.
    pub(super) fn tensors(&self) -> Result<[Option<Tensor>; 7]> {
        let places = |places: &[i64]| (!places.is_empty()).then(|| Tensor::f_from_slice(places)).transpose();
        let numbers = |numbers: &[f32]| (!numbers.is_empty()).then(|| Tensor::f_from_slice(numbers)).transpose();
        Ok([
            places(&self.biased)?,
            numbers(&self.biases)?,
            places(&self.penalised)?,
            numbers(&self.penalties)?,
            places(&self.limited)?,
            places(&self.kept)?,
            places(&self.banned)?,
        ])
    }

    /// Refuses a change of a row that is before one with changes.
    fn begin(&mut self, row: usize) -> Result<()> {
        let row = row as i64;
        if row < self.last {
            return Err(TchError::Torch(format!("row {row} of logits is changed after row {}", self.last)));
        }
        self.last = row;
        Ok(())
    }
}

/// Adds where the logits of these tokens of a row are, in one pass: with a penalty, a long response has many. Adds
/// nothing if one is outside the vocabulary.
fn add_places(to: &mut Vec<i64>, row: usize, vocab: i64, tokens: impl Iterator<Item = u32>) -> Result<()> {
    let (before, start) = (to.len(), row as i64 * vocab);
    let mut largest = 0;
    to.extend(tokens.map(|token| {
        largest = largest.max(token);
        start + i64::from(token)
    }));
    if to.len() > before && i64::from(largest) >= vocab {
        to.truncate(before);
        return Err(TchError::Torch(format!("token {largest} is outside of the vocabulary of {vocab}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_changed_in_their_order_and_inside_the_vocabulary() {
        let mut changes = LogitChanges::new(10);
        assert!(changes.is_empty() && changes.check(0, 3).is_ok());
        changes.bias(1, &[(9, 0.5), (3, -1.0)]).unwrap();
        changes.penalise(1, &[7, 2], 1.3).unwrap();
        changes.keep_only(2, &[0, 9]).unwrap();
        changes.exclude(4, &[5]).unwrap();
        assert_eq!((&changes.biased, &changes.biases), (&vec![19, 13], &vec![0.5, -1.0]));
        assert_eq!((&changes.penalised, &changes.penalties), (&vec![17, 12], &vec![1.3; 2]));
        assert_eq!((&changes.limited, &changes.kept, &changes.banned), (&vec![2], &vec![20, 29], &vec![45]));
        assert!(changes.check(5, 10).is_ok());
        let error = |found: Result<()>| found.unwrap_err().to_string();
        assert!(error(changes.check(4, 10)).contains("changes of logits [5, 10] do not fit logits [4, 10]"));
        assert!(error(changes.check(5, 11)).contains("do not fit logits [5, 11]"));
        assert!(error(changes.exclude(4, &[3, 10, 2])).contains("token 10 is outside of the vocabulary of 10"));
        assert_eq!(changes.banned, [45]);
        assert!(error(changes.exclude(3, &[1])).contains("row 3 of logits is changed after row 4"));
        assert!(error(changes.keep_only(5, &[])).contains("all tokens are excluded from row 5 of logits"));
    }
}
