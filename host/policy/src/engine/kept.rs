//! Conversations that wait for their next turn, with their keys and values, so that only what is new in the next prompt
//! needs to be computed.

use tch::Tensor;

/// The conversations that wait, those that have waited longest first. Only their tokens matter here; the cache makes
/// and reads the copies of keys and values.
#[derive(Default)]
pub(super) struct Kept {
    entries: Vec<KeptRow>,
}

/// The row of a conversation after a turn.
pub(super) struct KeptRow {
    pub(super) conversation: u64,
    /// The tokens whose keys and values these are.
    pub(super) ids: Vec<u32>,
    pub(super) layers: KeptLayers,
}

/// By layer: keys and values, each `[tokens, kv_heads, head_dim]`.
pub(super) type KeptLayers = Vec<(Tensor, Tensor)>;

impl Kept {
    /// Tokens of all conversations.
    pub(super) fn tokens(&self) -> usize {
        self.entries.iter().map(|row| row.ids.len()).sum()
    }

    /// Adds the latest state of a conversation.
    pub(super) fn add(&mut self, row: KeptRow) {
        self.forget(row.conversation);
        self.entries.push(row);
    }

    /// The conversation that shares the most tokens with the beginning of a prompt: how many it shares, and its keys
    /// and values.
    pub(super) fn longest_match(&self, prompt: impl Iterator<Item = u32> + Clone) -> Option<(usize, &KeptLayers)> {
        let shared = |row: &KeptRow| {
            let both = row.ids.iter().copied().zip(prompt.clone());
            both.take_while(|(kept, asked)| kept == asked).count()
        };
        let matches = self.entries.iter().map(|row| (shared(row), &row.layers));
        matches.max_by_key(|&(tokens, _)| tokens).filter(|&(tokens, _)| tokens > 0)
    }

    /// Forgets a conversation.
    pub(super) fn forget(&mut self, conversation: u64) {
        self.entries.retain(|row| row.conversation != conversation);
    }

    /// Forgets those that have waited longest until at most `tokens` tokens are left.
    pub(super) fn shrink(&mut self, tokens: usize) {
        let mut left = self.tokens();
        let forgotten = self.entries.iter().take_while(|row| {
            let is_over = left > tokens;
            left -= if is_over { row.ids.len() } else { 0 };
            is_over
        });
        let forgotten = forgotten.count();
        self.entries.drain(..forgotten);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(conversation: u64, ids: &[u32]) -> KeptRow {
        KeptRow { conversation, ids: ids.to_vec(), layers: Vec::new() }
    }

    fn conversations(kept: &Kept) -> Vec<u64> {
        kept.entries.iter().map(|row| row.conversation).collect()
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
