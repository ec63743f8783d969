//! The distributions that the tokens of responses were drawn from.

use crate::drawing::Drawing;
use crate::error::{Result, TrainError};
use crate::experience::Experience;
use gavel_data::SamplingMask;
use gavel_torch::head::LogitChanges;
use std::collections::HashSet;

/// The tokens that a row has before a position, each once.
#[derive(Default)]
struct Seen {
    row: Option<usize>,
    /// How many tokens of the row were read.
    read: usize,
    tokens: Vec<u32>,
    known: HashSet<u32>,
}

impl Seen {
    /// The tokens of the prompt and of the response before `at`.
    fn before(&mut self, row: usize, experience: &Experience, at: usize) -> &[u32] {
        let until = experience.prompt.len() + at;
        if self.row != Some(row) || self.read > until {
            *self = Self { row: Some(row), ..Self::default() };
        }
        for &token in experience.prompt.iter().chain(&experience.response).take(until).skip(self.read) {
            if self.known.insert(token) {
                self.tokens.push(token);
            }
        }
        self.read = until;
        &self.tokens
    }
}

/// The changes of logits with which these tokens were drawn: of each token, the row in `rows` and the position in the
/// response. The tokens of a row follow each other.
///
/// They are made to the logits of any model: a reference is compared with the policy over the tokens that could be
/// drawn. A model with fewer logits lacks none that is a token. A logit that the model has beyond the policy's counts
/// only where most tokens could be drawn.
///
/// # Errors
/// The mask of a token excludes it: its probability would be 0.
pub(crate) fn logit_changes(rows: &[Experience], tokens: &[(usize, usize)], vocab: i64) -> Result<LogitChanges> {
    let mut changes = LogitChanges::new(vocab);
    let mut seen = Seen::default();
    let has_logit = |token: &u32| i64::from(*token) < vocab;
    for (number, &(row, at)) in tokens.iter().enumerate() {
        let experience = &rows[row];
        if let Some(Drawing { logit_bias, repetition_penalty }) = experience.drawing.as_deref() {
            let biases: Vec<(u32, f32)> = logit_bias.iter().map(|(token, bias)| (*token, *bias)).collect();
            if !biases.is_empty() {
                changes.bias(number, &biases)?;
            }
            if *repetition_penalty != 1.0 {
                changes.penalise(number, seen.before(row, experience, at), *repetition_penalty)?;
            }
        }
        let mask = experience.masks.get(at);
        if !mask.contains(experience.response[at]) {
            let what = format!("has a sampling mask without response token {at}, which was drawn");
            return Err(TrainError::Row { index: row, what });
        }
        match mask {
            SamplingMask::All => {}
            SamplingMask::Only(mut kept) => {
                kept.retain(has_logit);
                changes.keep_only(number, &kept)?;
            }
            SamplingMask::Except(mut excluded) => {
                excluded.retain(has_logit);
                changes.exclude(number, &excluded)?;
            }
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::SamplingMasks;
    use std::sync::Arc;

    #[test]
    fn each_token_has_the_changes_it_was_drawn_with() {
        let mut masks = SamplingMasks::new();
        let only = SamplingMask::Only(vec![2, 5, 40]);
        [SamplingMask::All, only, SamplingMask::Except(vec![0, 40])].iter().for_each(|mask| masks.push(mask));
        let drawn = Experience {
            prompt: vec![3, 4, 3],
            response: vec![3, 5, 9],
            masks,
            drawing: Some(Arc::new(Drawing::new(&[(7, 0.5), (1, -2.0), (7, 0.25)], 1.5))),
            ..Experience::default()
        };
        let plain = Experience { prompt: vec![1], response: vec![2, 6], ..Experience::default() };
        let rows = [plain, drawn];
        let mut expected = LogitChanges::new(10);
        for (number, seen) in [(1, vec![3, 4]), (2, vec![3, 4]), (3, vec![3, 4, 5])] {
            expected.bias(number, &[(1, -2.0), (7, 0.75)]).unwrap();
            expected.penalise(number, &seen, 1.5).unwrap();
            match number {
                2 => expected.keep_only(2, &[2, 5]).unwrap(),
                3 => expected.exclude(3, &[0]).unwrap(),
                _ => {}
            }
        }
        assert_eq!(logit_changes(&rows, &[(0, 1), (1, 0), (1, 1), (1, 2)], 10).unwrap(), expected);
        // A chunk may begin within a row, and a row without changes has none.
        let mut expected = LogitChanges::new(100);
        expected.bias(0, &[(1, -2.0), (7, 0.75)]).unwrap();
        expected.penalise(0, &[3, 4, 5], 1.5).unwrap();
        expected.exclude(0, &[0, 40]).unwrap();
        assert_eq!(logit_changes(&rows, &[(1, 2), (0, 0)], 100).unwrap(), expected);
        assert!(logit_changes(&rows, &[(0, 0), (0, 1)], 100).unwrap().is_empty());
    }

    #[test]
    fn a_mask_without_its_token_is_refused() {
        for mask in [SamplingMask::Only(vec![1, 3]), SamplingMask::Except(vec![2])] {
            let mut masks = SamplingMasks::new();
            [SamplingMask::All, mask].iter().for_each(|mask| masks.push(mask));
            let row = Experience { prompt: vec![1], response: vec![2, 2], masks, ..Experience::default() };
            let rows = [Experience::default(), row];
            assert!(logit_changes(&rows, &[(1, 0)], 10).is_ok());
            let error = logit_changes(&rows, &[(1, 0), (1, 1)], 10).unwrap_err().to_string();
            let expected = "row 1 of the mini-batch has a sampling mask without response token 1, which was drawn";
            assert_eq!(error, expected);
        }
    }
}
