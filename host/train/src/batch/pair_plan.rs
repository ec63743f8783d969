//! Which pairs of rows share a micro-batch.

use super::plan::{KEYS_PER_TOKEN, has_shared_prompt};
use super::sequence::Sequence;

/// What a pair adds to a micro-batch.
struct PairSize {
    tokens: usize,
    keys: usize,
    pair: usize,
}

impl PairSize {
    fn of(pair: usize, rows: &[Sequence]) -> Self {
        let read = |row: &Sequence| row.read().unwrap_or_default();
        let keys: usize = rows.iter().map(|row| row.prompt.len() + read(row)).sum();
        let shares = rows.iter().all(has_shared_prompt) && rows.windows(2).all(|two| two[0].prompt == two[1].prompt);
        let shared = if shares { rows.first().map_or(0, |row| row.prompt.len()) } else { 0 };
        Self { tokens: keys - shared, keys, pair }
    }
}

/// Divides pairs, the rows 2·n and 2·n + 1, into micro-batches of at most `max_tokens` tokens. Pairs of similar length
/// come together; a prompt that several pairs share is counted for each of them.
pub(super) fn pair_plan(sequences: &[Sequence], max_tokens: usize) -> Vec<Vec<usize>> {
    let mut pairs: Vec<PairSize> =
        sequences.chunks(2).enumerate().map(|(pair, rows)| PairSize::of(pair, rows)).collect();
    pairs.sort_by_key(|size| (size.tokens, size.pair));
    let mut plan: Vec<Vec<usize>> = Vec::new();
    let (mut tokens, mut keys) = (0, 0);
    for size in pairs {
        let rows = [2 * size.pair, 2 * size.pair + 1];
        let fits = tokens + size.tokens <= max_tokens && keys + size.keys <= KEYS_PER_TOKEN * max_tokens;
        match plan.last_mut().filter(|_| fits) {
            Some(batch) => {
                batch.extend(rows);
                (tokens, keys) = (tokens + size.tokens, keys + size.keys);
            }
            None => {
                plan.push(rows.to_vec());
                (tokens, keys) = (size.tokens, size.keys);
            }
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_pair_stay_together() {
        let tokens: Vec<u32> = (0..32).collect();
        let row = |prompt: usize, response: usize| Sequence {
            prompt: &tokens[..prompt],
            response: &tokens[..response],
            loss_mask: None,
        };
        // A prompt counts once, and the last token of a response is not read: 3 + 4 + 1, 2 + 9 + 2, 1 + 1 + 1 tokens.
        let rows = [row(3, 5), row(3, 2), row(2, 10), row(2, 3), row(1, 2), row(1, 2)];
        assert_eq!(pair_plan(&rows, 11), [vec![4, 5, 0, 1], vec![2, 3]]);
        assert_eq!(pair_plan(&rows, 10), [vec![4, 5], vec![0, 1], vec![2, 3]]);
        assert_eq!(pair_plan(&rows, 24), [vec![4, 5, 0, 1, 2, 3]]);
        assert_eq!(pair_plan(&rows, 1).len(), 3);
        // Two prompts: 3 + 4 + 2 + 1 tokens.
        assert_eq!(PairSize::of(0, &[row(3, 5), row(2, 2)]).tokens, 10);
    }
}
