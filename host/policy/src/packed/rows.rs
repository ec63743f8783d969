//! Rows of tokens, each alone or after another.

use crate::error::{PolicyError, Result};

/// Some tokens, and the row before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedRow {
    /// The row that these tokens follow. It must not follow another row itself.
    pub after: Option<usize>,
    /// At least one token id.
    pub tokens: Vec<u32>,
}

/// Refuses rows that cannot be packed.
pub(super) fn check(rows: &[PackedRow]) -> Result<()> {
    if rows.is_empty() {
        return Err(PolicyError::Input("there are no rows to pack".into()));
    }
    for (index, row) in rows.iter().enumerate() {
        let wrong = |what: String| Err(PolicyError::Input(format!("row {index} of the pack {what}")));
        match row.after.map(|after| rows.get(after)) {
            _ if row.tokens.is_empty() => return wrong("has no tokens".into()),
            Some(None) => return wrong(format!("follows another, but there are only {} rows", rows.len())),
            Some(Some(other)) if other.after.is_some() => {
                return wrong("follows a row that itself follows another".into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// How many tokens are before the tokens of a row.
pub(super) fn before(rows: &[PackedRow], row: usize) -> usize {
    rows[row].after.map_or(0, |after| rows[after].tokens.len())
}

/// How many tokens the last one of a row looks at.
pub(super) fn seen(rows: &[PackedRow], row: usize) -> usize {
    before(rows, row) + rows[row].tokens.len()
}

/// The rows in an order in which the rows of a bucket are neighbours: first those that follow nothing, each kind by what
/// it sees.
pub(super) fn by_length(rows: &[PackedRow]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&row| (rows[row].after.is_some(), seen(rows, row), rows[row].tokens.len()));
    order
}

/// The rows in an order in which all rows after a prompt are neighbours: first the prompts that are followed, then the
/// rows alone, then the rows that follow, in the order of their prompts.
pub(super) fn by_prompt(rows: &[PackedRow]) -> Vec<usize> {
    let mut is_followed = vec![false; rows.len()];
    rows.iter().filter_map(|row| row.after).for_each(|after| is_followed[after] = true);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&row| {
        let prompt = rows[row].after.unwrap_or(row);
        let length = |row: usize| rows[row].tokens.len();
        (rows[row].after.is_some(), !is_followed[prompt], length(prompt), prompt, length(row))
    });
    order
}

/// A prompt that rows follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SharedPrompt {
    /// Its tokens.
    pub(super) tokens: usize,
    /// The tokens of all rows that follow it.
    pub(super) follower_tokens: usize,
}

/// The prompts that rows follow, in the order of the rows.
pub(super) fn shared_prompts(rows: &[PackedRow], order: &[usize]) -> Vec<SharedPrompt> {
    let mut follower_tokens = vec![0; rows.len()];
    for row in rows {
        if let Some(after) = row.after {
            follower_tokens[after] += row.tokens.len();
        }
    }
    let all =
        order.iter().map(|&row| SharedPrompt { tokens: rows[row].tokens.len(), follower_tokens: follower_tokens[row] });
    all.filter(|prompt| prompt.follower_tokens > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(Option<usize>, usize)]) -> Vec<PackedRow> {
        rows.iter().map(|&(after, length)| PackedRow { after, tokens: vec![1; length] }).collect()
    }

    #[test]
    fn rows_are_in_order_of_length_or_of_prompts() {
        let rows = rows(&[
            (None, 9),
            (Some(5), 2),
            (None, 3),
            (Some(0), 4),
            (None, 9),
            (None, 1),
            (Some(4), 7),
            (Some(0), 1),
            (Some(5), 30),
        ]);
        assert_eq!(by_length(&rows), [5, 2, 0, 4, 1, 7, 3, 6, 8]);
        let order = by_prompt(&rows);
        assert_eq!(order, [5, 0, 4, 2, 1, 8, 7, 3, 6]);
        let prompt = |tokens, follower_tokens| SharedPrompt { tokens, follower_tokens };
        assert_eq!(shared_prompts(&rows, &order), [prompt(1, 32), prompt(9, 5), prompt(9, 7)]);
    }

    #[test]
    fn rows_alone_have_one_order() {
        let rows = rows(&[(None, 9), (None, 3), (None, 9), (None, 1)]);
        assert_eq!(by_length(&rows), by_prompt(&rows));
        assert!(shared_prompts(&rows, &by_prompt(&rows)).is_empty());
    }
}
