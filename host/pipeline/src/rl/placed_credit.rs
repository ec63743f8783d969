//! The tokens of a trajectory that credit is for.

use crate::error::Unplaced;
use gavel_data::{Credit, Message, Tokens, Trajectory};
use gavel_text::TextModel;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

/// The sum of the credit for each response token of a trajectory. A token has the credit for the bytes of its message that
/// it is, and no other.
///
/// # Errors
/// The number of a message, and why credit for it has no tokens.
pub(crate) fn place(
    parts: &[Credit],
    trajectory: &Trajectory,
    tokens: &Tokens,
    text: &TextModel,
) -> Result<Vec<f64>, (u32, Unplaced)> {
    let mut credits = vec![0.0; tokens.response.len()];
    let Some(first) = parts.first() else { return Ok(credits) };
    let replies = replies(trajectory, tokens).map_err(|why| (first.message, why))?;
    let mut pieces = BTreeMap::new();
    for Credit { message: number, start, end, value, .. } in parts {
        let (message, turn) = replies.get(number).ok_or((*number, Unplaced::NotOfPolicy))?;
        let pieces = match pieces.entry(*number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let found = text.content_pieces(&tokens.response[turn.clone()], message);
                new.insert(found.map_err(|why| (*number, why.into()))?)
            }
        };
        for (credit, bytes) in credits[turn.clone()].iter_mut().zip(pieces) {
            // A token without text has no bytes in common with any part.
            if bytes.start.max(*start as usize) < bytes.end.min(*end as usize) {
                *credit += value;
            }
        }
    }
    Ok(credits)
}

/// The messages that the policy wrote, with the range of each message's tokens in the response.
///
/// # Errors
/// It is not known which turn is which message.
pub(crate) fn replies<'t>(
    trajectory: &'t Trajectory,
    tokens: &Tokens,
) -> Result<BTreeMap<u32, (&'t Message, Range<usize>)>, Unplaced> {
    let (turns, replies) = (turns(&tokens.loss_mask), trajectory.replies().collect::<Vec<_>>());
    if turns.len() != replies.len() {
        return Err(Unplaced::Turns { turns: turns.len(), replies: replies.len() });
    }
    Ok(replies.into_iter().zip(turns).map(|((number, message), turn)| (number, (message, turn))).collect())
}

/// The turns of the policy in a response: the tokens from one that it did not write to the next.
pub(crate) fn turns(loss_mask: &[bool]) -> Vec<Range<usize>> {
    let (mut turns, mut start) = (Vec::new(), None);
    for (at, written) in loss_mask.iter().chain([&false]).enumerate() {
        match (start, written) {
            (None, true) => start = Some(at),
            (Some(begin), false) => {
                turns.push(begin..at);
                start = None;
            }
            _ => {}
        }
    }
    turns
}

#[cfg(test)]
mod tests;
