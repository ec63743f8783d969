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
    /// The proposed token that is its input in place of its last one.
    draft: Option<Draft>,
}

/// A token that is proposed for a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draft {
    pub(super) token: u32,
    /// How many tokens after the row's last one it is.
    pub(super) ahead: usize,
}

impl Decoding {
    /// All rows.
    pub(super) fn all(slots: &Slots) -> Vec<Self> {
        (0..slots.rows.len()).map(Self::of).collect()
    }

    /// The row of this number.
    pub(super) fn of(number: usize) -> Self {
        Self { number, unread: None, draft: None }
    }

    /// A row that is decoded after a proposed token, beside the row itself.
    pub(super) fn draft(number: usize, draft: Draft) -> Self {
        Self { draft: Some(draft), ..Self::of(number) }
    }

    pub(super) fn drafted(&self) -> Option<Draft> {
        self.draft
    }

    /// The rows that continue after a step whose tokens the host has not read, and in which they have these places. A
    /// row may end with its token there: then what is computed for it is not used.
    pub(super) fn after(slots: &Slots, places: &[usize]) -> Vec<Self> {
        let all = places.iter().enumerate().map(|(number, &place)| Self { unread: Some(place), ..Self::of(number) });
        all.filter(|of| of.row(slots).response.len() + 1 < of.row(slots).request.sampling.max_tokens).collect()
    }

    pub(super) fn row<'a>(&self, slots: &'a Slots) -> &'a Row {
        &slots.rows[self.number]
    }

    /// Length of prompt and response so far, proposed tokens included.
    pub(super) fn tokens(&self, slots: &Slots) -> usize {
        self.row(slots).tokens() + self.more_tokens()
    }

    /// The last token, or its place among the tokens of the step before.
    pub(super) fn last_token(&self, slots: &Slots) -> i64 {
        match (self.unread, self.draft) {
            (Some(place), _) => place as i64,
            (None, Some(draft)) => i64::from(draft.token),
            (None, None) => self.row(slots).last_token(),
        }
    }

    /// The number at which the next token is drawn.
    pub(super) fn uniform(&self, slots: &Slots) -> f64 {
        self.row(slots).uniform(self.more_tokens())
    }

    /// Tokens that the host does not know of, and proposed ones.
    fn more_tokens(&self) -> usize {
        usize::from(self.unread.is_some()) + self.draft.map_or(0, |draft| draft.ahead)
    }
}
