//! The rows that a step decodes.

use super::row::Row;
use super::slots::Slots;

/// A row that decodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoding {
    /// Its number among the rows of its slots.
    pub(super) number: usize,
    /// Its place among the tokens of the step before, if the host has not read them: then its last token is there.
    unread: Option<usize>,
}

impl Decoding {
    /// All rows.
    pub(super) fn all(slots: &Slots) -> Vec<Self> {
        (0..slots.rows.len()).map(|number| Self { number, unread: None }).collect()
    }

    /// The rows that continue after a step whose tokens the host has not read, and in which they have these places. A
    /// row may end with its token there: then what is computed for it is not used.
    pub(super) fn after(slots: &Slots, places: &[usize]) -> Vec<Self> {
        let all = places.iter().enumerate().map(|(number, &place)| Self { number, unread: Some(place) });
        all.filter(|of| of.row(slots).response.len() + 1 < of.row(slots).request.sampling.max_tokens).collect()
    }

    pub(super) fn row<'a>(&self, slots: &'a Slots) -> &'a Row {
        &slots.rows[self.number]
    }

    /// Length of prompt and response so far.
    pub(super) fn tokens(&self, slots: &Slots) -> usize {
        self.row(slots).tokens() + self.unread_tokens()
    }

    /// The last token, or its place among the tokens of the step before.
    pub(super) fn last_token(&self, slots: &Slots) -> i64 {
        self.unread.map_or_else(|| self.row(slots).last_token(), |place| place as i64)
    }

    /// The number at which the next token is drawn.
    pub(super) fn uniform(&self, slots: &Slots) -> f64 {
        self.row(slots).uniform(self.unread_tokens())
    }

    fn unread_tokens(&self) -> usize {
        usize::from(self.unread.is_some())
    }
}
