//! Which rows of a mini-batch each rank learns from.

use std::ops::Range;

/// The shares of `ranks` ranks in the rows of a mini-batch, each a prompt and the number of tokens after it. A share is
/// a run of neighbours, so that rows with one prompt, which is computed once for them, stay together but where a share
/// ends. The largest share has as few tokens as that allows. No share is empty unless there are more ranks than rows.
pub fn shares<'a>(rows: impl IntoIterator<Item = (&'a [u32], usize)>, ranks: usize) -> Vec<Range<usize>> {
    let mut rows: Vec<Row> = rows.into_iter().map(|(prompt, tokens)| Row::new(prompt, tokens)).collect();
    for at in 1..rows.len() {
        rows[at].has_prompt_of_last = rows[at].prompt == rows[at - 1].prompt;
    }
    // One share takes all rows; a row by itself is the least that the largest can be.
    let mut most: usize = rows.iter().map(|row| row.tokens(true)).sum();
    let mut least = rows.iter().map(|row| row.tokens(true)).max().unwrap_or_default();
    while least < most {
        let limit = least + (most - least) / 2;
        match divided(&rows, ranks, limit).last() {
            Some(last) if last.end == rows.len() => most = limit,
            _ => least = limit + 1,
        }
    }
    divided(&rows, ranks, most)
}

struct Row<'a> {
    prompt: &'a [u32],
    after: usize,
    has_prompt_of_last: bool,
}

impl<'a> Row<'a> {
    fn new(prompt: &'a [u32], after: usize) -> Self {
        Self { prompt, after, has_prompt_of_last: false }
    }

    /// How many tokens the row adds to a share.
    fn tokens(&self, is_first: bool) -> usize {
        if self.has_prompt_of_last && !is_first { self.after } else { self.prompt.len() + self.after }
    }
}

/// As many rows for each rank as have at most `limit` tokens, but a row at least for each of the ranks after it. The
/// last share does not end with the last row if the limit is too low.
fn divided(rows: &[Row], ranks: usize, limit: usize) -> Vec<Range<usize>> {
    let mut shares = Vec::new();
    let mut start = 0;
    for rank in 0..ranks {
        let (mut end, mut tokens) = (start, 0);
        while end < rows.len() && (end == start || rows.len() - end >= ranks - rank) {
            tokens += rows[end].tokens(end == start);
            if tokens > limit {
                break;
            }
            end += 1;
        }
        shares.push(start..end);
        start = end;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::seed::uniform;

    /// Prompts and responses of `count` trajectories in groups of 8.
    fn trajectories(count: usize) -> Vec<(Vec<u32>, usize)> {
        let prompt = |group: usize| vec![group as u32; 20 + (uniform(1, group as u64) * 60.0) as usize];
        (0..count).map(|row| (prompt(row / 8), 1 + (uniform(2, row as u64) * 200.0) as usize)).collect()
    }

    fn shares_of(rows: &[(Vec<u32>, usize)], ranks: usize) -> Vec<Range<usize>> {
        shares(rows.iter().map(|(prompt, after)| (&prompt[..], *after)), ranks)
    }

    /// The tokens of a share whose prompts are computed once.
    fn tokens(rows: &[(Vec<u32>, usize)]) -> usize {
        let prompts: std::collections::BTreeSet<&Vec<u32>> = rows.iter().map(|(prompt, _)| prompt).collect();
        prompts.into_iter().map(Vec::len).sum::<usize>() + rows.iter().map(|(_, after)| after).sum::<usize>()
    }

    #[test]
    fn any_number_of_trajectories_is_divided_among_any_number_of_ranks() {
        for (count, mini_batch) in [(45, 15), (90, 15), (45, 45), (90, 90), (7, 3), (0, 1)] {
            let all = trajectories(count);
            for rows in all.chunks(mini_batch).chain([&[][..]]) {
                for ranks in [1, 2, 3, 8, 20] {
                    let found = shares_of(rows, ranks);
                    assert_eq!(found.len(), ranks);
                    assert_eq!(found, shares_of(rows, ranks));
                    // Every row is in one share, and no row is made up.
                    assert_eq!(
                        found.iter().cloned().flatten().collect::<Vec<_>>(),
                        (0..rows.len()).collect::<Vec<_>>()
                    );
                    let empty = found.iter().filter(|share| share.is_empty()).count();
                    assert_eq!(empty, ranks.saturating_sub(rows.len()));
                    let largest = found.iter().map(|share| tokens(&rows[share.clone()])).max().unwrap();
                    let row = rows.iter().map(|row| tokens(std::slice::from_ref(row))).max().unwrap_or_default();
                    // A row more than the mean, and a prompt that another share has too.
                    assert!(
                        largest <= tokens(rows) / ranks + 2 * row,
                        "{count} of {mini_batch}, {ranks} ranks: {found:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_largest_share_is_as_small_as_it_can_be() {
        let rows = trajectories(13);
        for first in 1..12 {
            for second in first + 1..13 {
                let other = [0..first, first..second, second..13];
                let largest = |shares: &[Range<usize>]| shares.iter().map(|share| tokens(&rows[share.clone()])).max();
                assert!(largest(&shares_of(&rows, 3)) <= largest(&other), "{other:?}");
            }
        }
    }

    #[test]
    fn rows_with_one_prompt_stay_together() {
        let row = |prompt: u32, after: usize| (vec![prompt; 100], after);
        let rows = [row(1, 10), row(1, 10), row(1, 20), row(2, 10), row(2, 20)];
        assert_eq!(shares_of(&rows, 2), [0..3, 3..5]);
        // Shares with the same number of tokens take the rows in turn.
        let equal: Vec<_> = (0..5).map(|prompt| row(prompt, 10)).collect();
        assert_eq!(shares_of(&equal, 4), [0..2, 2..3, 3..4, 4..5]);
    }
}
