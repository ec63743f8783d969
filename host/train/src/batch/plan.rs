//! Which rows share a micro-batch.

use super::sequence::Sequence;
use gavel_policy::memory::PassShape;
use gavel_policy::{MASK_NUMBERS, ModelConfig};
use std::collections::HashMap;

/// How many keys attention may look at for each token of a forward pass. They
/// take a small part of the memory that a token's other activations take.
pub(super) const KEYS_PER_TOKEN: usize = 4;

/// Whether a prompt of `prompt` tokens is computed once for several responses. The model reads `read` tokens of each.
/// Sharing a prompt that is much shorter than the response saves little, and the mask that sharing needs grows with the
/// square of the response.
fn shares_prompt(prompt: usize, read: usize) -> bool {
    read <= 8 * prompt || read.saturating_mul(prompt + read) <= 1 << 22
}

/// Whether the prompt of a row is computed once for it and others.
pub(super) fn has_shared_prompt(sequence: &Sequence) -> bool {
    shares_prompt(sequence.prompt.len(), sequence.read().unwrap_or_default())
}

/// Divides the rows with something to learn from into micro-batches; see
/// [`micro_batches`](super::micro_batches).
pub(super) fn plan(sequences: &[Sequence], max_tokens: usize) -> Vec<Vec<usize>> {
    let mut known: HashMap<&[u32], usize> = HashMap::new();
    let mut groups: Vec<Vec<(usize, usize)>> = Vec::new();
    for (row, sequence) in sequences.iter().enumerate() {
        if let Some(read) = sequence.read() {
            let group = *known.entry(sequence.prompt).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push((read, row));
        }
    }
    groups.iter_mut().for_each(|rows| rows.sort_unstable());
    let length = |&(read, row): &(usize, usize)| sequences[row].prompt.len() + read;
    groups.sort_by_key(|rows| rows.last().map(length));

    let mut plan: Vec<Vec<usize>> = Vec::new();
    let (mut tokens, mut keys) = (0, 0);
    for group in &groups {
        let mut prompt_is_there = false;
        for &(read, row) in group {
            let whole = sequences[row].prompt.len() + read;
            let shares = has_shared_prompt(&sequences[row]);
            let more = if prompt_is_there && shares { read } else { whole };
            match plan.last_mut() {
                Some(rows) if tokens + more <= max_tokens && keys + whole <= KEYS_PER_TOKEN * max_tokens => {
                    rows.push(row);
                    (tokens, keys) = (tokens + more, keys + whole);
                    prompt_is_there |= shares;
                }
                _ => {
                    plan.push(vec![row]);
                    (tokens, keys) = (whole, whole);
                    prompt_is_there = shares;
                }
            }
        }
    }
    plan
}

/// The rows of an optimiser step, each as long as the longest.
#[derive(Debug, Clone, Copy)]
pub struct LongestRows {
    /// How many there are.
    pub rows: u64,
    /// How many have the same prompt.
    pub group: u64,
    /// Tokens of the prompt.
    pub prompt: u64,
    /// Tokens of the response.
    pub response: u64,
}

impl LongestRows {
    /// The largest micro-batch of at most `max_tokens` tokens of such rows, for a model of these `sizes`. It has as
    /// many rows as fit, and each prompt is computed once for all of its responses.
    pub fn largest_micro_batch(self, max_tokens: u64, sizes: &ModelConfig) -> PassShape {
        let Self { rows, group, prompt, response } = self;
        let whole = prompt + response;
        let all = rows.div_ceil(group) * prompt + rows * response;
        let tokens = all.min(max_tokens.max(whole));
        let shares = shares_prompt(prompt as usize, response as usize);
        let shared = if shares { group.min(tokens.saturating_sub(prompt) / response.max(1)).max(1) } else { 1 };
        let window = sizes.windows.iter().flatten().any(|&window| (window as u64) < whole);
        if shared == 1 {
            let mask = if window { whole.pow(2) } else { 0 };
            return PassShape { mask, ..PassShape::unshared(tokens) };
        }
        let most = KEYS_PER_TOKEN as u64 * max_tokens / whole;
        let responses = (tokens * shared).div_ceil(prompt + shared * response).min(most).max(1);
        let prompts = responses.div_ceil(shared);
        // One for each length of a prompt, or for each response where they are small.
        let mask = (responses * whole * response).min(prompts * (MASK_NUMBERS as u64).max(whole * response));
        let prompts = prompts * prompt;
        PassShape { tokens: prompts + responses * response, keys: prompts + responses * whole, mask }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence<'a>(prompt: &'a [u32], response: &'a [u32], loss_mask: Option<&'a [bool]>) -> Sequence<'a> {
        Sequence { prompt, response, loss_mask }
    }

    #[test]
    fn rows_are_packed_within_the_budget() {
        let tokens: Vec<u32> = (0..64).collect();
        let lengths = [9usize, 2, 30, 3, 8, 2];
        // Each row has another prompt, and the last response token is never read.
        let rows: Vec<_> = lengths
            .iter()
            .enumerate()
            .map(|(row, &length)| sequence(&tokens[row..=row], &tokens[..length], None))
            .collect();
        assert_eq!(plan(&rows, 16), vec![vec![1, 5, 3, 4], vec![0], vec![2]]);
        assert_eq!(plan(&rows, 1000).len(), 1);
        let silent = [sequence(&[1], &[], None), sequence(&[1], &[2], Some(&[false]))];
        assert!(plan(&silent, 16).is_empty());
    }

    #[test]
    fn rows_with_one_prompt_stay_together_where_they_fit() {
        let (a, b) = ([1; 10], [2; 10]);
        let response = [3; 5];
        let rows: Vec<_> = [&a, &b, &a, &b, &a].iter().map(|prompt| sequence(*prompt, &response, None)).collect();
        // 10 + 3 × 4 and 10 + 2 × 4 tokens
        assert_eq!(plan(&rows, 22), vec![vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(plan(&rows, 18), vec![vec![0, 2], vec![4], vec![1, 3]]);
        assert_eq!(plan(&rows, 1).len(), 5);
    }

    #[test]
    fn a_shared_prompt_does_not_let_keys_grow_without_bound() {
        // Together 200 + 40 × 2 tokens, but 202 keys for each response.
        let (prompt, response) = ([1; 200], [2; 3]);
        let rows: Vec<_> = (0..40).map(|_| sequence(&prompt, &response, None)).collect();
        let plan = plan(&rows, 300);
        assert!(plan.iter().all(|rows| rows.len() * 202 <= 4 * 300), "{plan:?}");
        assert_eq!(plan.concat(), (0..40).collect::<Vec<_>>());
        assert_eq!(plan.len(), 8);
    }
}
