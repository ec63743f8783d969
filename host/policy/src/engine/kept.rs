//! Conversations that wait for their next turn, with their keys and values, so that only what is new in the next prompt
//! needs to be computed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use tch::Tensor;

/// The conversations that wait. Only their tokens matter here; the cache makes and reads the copies of keys and values.
#[derive(Default)]
pub(super) struct Kept {
    /// By the time since which they wait, those that have waited longest first.
    rows: BTreeMap<u64, KeptRow>,
    /// The place of each conversation in `rows`.
    by_conversation: HashMap<u64, u64>,
    /// The places in `rows`, in the order of the tokens: what shares a beginning stands together.
    by_ids: BTreeSet<(Arc<[u32]>, u64)>,
    added: u64,
    /// Tokens of all conversations.
    tokens: usize,
}

/// The row of a conversation after a turn.
pub(super) struct KeptRow {
    pub(super) conversation: u64,
    /// The tokens whose keys and values these are.
    pub(super) ids: Arc<[u32]>,
    pub(super) layers: KeptLayers,
}

/// By layer: keys and values, each `[tokens, kv_heads, head_dim]`.
pub(super) type KeptLayers = Vec<(Tensor, Tensor)>;

impl Kept {
    /// Tokens of all conversations.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Tokens of all conversations but these.
    pub(super) fn tokens_without(&self, conversations: &HashSet<u64>) -> usize {
        let others = self.rows.values().filter(|row| !conversations.contains(&row.conversation));
        others.map(|row| row.ids.len()).sum()
    }

    /// The tokens that are kept of a conversation.
    pub(super) fn ids(&self, conversation: u64) -> Option<&[u32]> {
        Some(&self.rows.get(self.by_conversation.get(&conversation)?)?.ids)
    }

    /// Adds the latest state of a conversation.
    pub(super) fn add(&mut self, row: KeptRow) {
        self.forget(row.conversation);
        let place = self.added;
        self.added += 1;
        self.tokens += row.ids.len();
        self.by_conversation.insert(row.conversation, place);
        self.by_ids.insert((row.ids.clone(), place));
        self.rows.insert(place, row);
    }

    /// The conversation that shares the most tokens with the beginning of a prompt: how many it shares, and its keys
    /// and values.
    pub(super) fn longest_match(&self, prompt: impl Iterator<Item = u32>) -> Option<(usize, &KeptLayers)> {
        let prompt: Arc<[u32]> = prompt.collect();
        let before = self.by_ids.range(..=(prompt.clone(), u64::MAX)).next_back();
        let after = self.by_ids.range((prompt.clone(), 0)..).next();
        let shared = |(ids, place): &(Arc<[u32]>, u64)| {
            let tokens = ids.iter().zip(&*prompt).take_while(|(kept, asked)| kept == asked).count();
            (tokens, *place)
        };
        let (tokens, place) = before.into_iter().chain(after).map(shared).max()?;
        let row = self.rows.get(&place).filter(|_| tokens > 0)?;
        Some((tokens, &row.layers))
    }

    /// Forgets a conversation.
    pub(super) fn forget(&mut self, conversation: u64) {
        if let Some(place) = self.by_conversation.get(&conversation).copied() {
            self.remove(place);
        }
    }

    /// Forgets those that have waited longest until at most `tokens` tokens are left.
    pub(super) fn shrink(&mut self, tokens: usize) {
        while self.tokens > tokens
            && let Some(place) = self.rows.keys().next().copied()
        {
            self.remove(place);
        }
    }

    fn remove(&mut self, place: u64) {
        let Some(row) = self.rows.remove(&place) else { return };
        self.tokens -= row.ids.len();
        self.by_conversation.remove(&row.conversation);
        self.by_ids.remove(&(row.ids, place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(conversation: u64, ids: &[u32]) -> KeptRow {
        KeptRow { conversation, ids: ids.into(), layers: Vec::new() }
    }

    fn conversations(kept: &Kept) -> Vec<u64> {
        kept.rows.values().map(|row| row.conversation).collect()
    }

    #[test]
    fn the_longest_shared_beginning_is_found() {
        let mut kept = Kept::default();
        [row(1, &[5, 6, 7]), row(2, &[5, 6]), row(3, &[5, 6, 7, 8])].into_iter().for_each(|row| kept.add(row));
        let shared = |prompt: &[u32]| kept.longest_match(prompt.iter().copied()).map(|(tokens, _)| tokens);
        assert_eq!(shared(&[5, 6, 7, 8, 9]), Some(4));
        assert_eq!(shared(&[5, 6, 7, 1]), Some(3));
        assert_eq!(shared(&[5]), Some(1));
        assert_eq!(shared(&[4]), None);
    }

    #[test]
    fn the_longest_shared_beginning_is_the_longest_of_all() {
        let mut kept = Kept::default();
        // All sequences of at most four tokens of three kinds, every fifth of which is kept.
        let sequences = (0..5).flat_map(|length| (0..3_u32.pow(length)).map(move |number| (length, number)));
        let ids = |(length, number): (u32, u32)| (0..length).map(|at| number / 3_u32.pow(at) % 3).collect::<Vec<_>>();
        let all: Vec<Vec<u32>> = sequences.map(ids).collect();
        (0..).zip(&all).step_by(5).for_each(|(number, ids)| kept.add(row(number, ids)));
        let common = |a: &[u32], b: &[u32]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
        for prompt in &all {
            let longest = all.iter().step_by(5).map(|kept| common(kept, prompt)).max().filter(|tokens| *tokens > 0);
            assert_eq!(kept.longest_match(prompt.iter().copied()).map(|(tokens, _)| tokens), longest, "{prompt:?}");
        }
    }

    #[test]
    fn those_that_waited_longest_are_forgotten_first() {
        let mut kept = Kept::default();
        [row(1, &[1; 4]), row(2, &[2; 3]), row(3, &[3; 2])].into_iter().for_each(|row| kept.add(row));
        kept.add(row(1, &[1; 5]));
        assert_eq!((conversations(&kept), kept.tokens()), (vec![2, 3, 1], 10));
        kept.shrink(10);
        assert_eq!(conversations(&kept), [2, 3, 1]);
        kept.shrink(7);
        assert_eq!(conversations(&kept), [3, 1]);
        kept.forget(3);
        kept.shrink(4);
        assert_eq!(conversations(&kept), Vec::<u64>::new());
    }
}
