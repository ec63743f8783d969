//! The conversations that wait for their scores, and which of them are batched together.

use super::error::RewardModelError;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The values of a conversation: the values of its first place, then the values of the next place, and so on.
pub(super) type Values = Arc<[f64]>;

pub(super) type Reply = oneshot::Sender<Result<Values, RewardModelError>>;

/// BLAKE3 of a conversation's tokens and places.
pub(super) type Key = [u8; 32];

/// A conversation to score.
pub(super) struct Request {
    pub(super) key: Key,
    pub(super) tokens: Vec<u32>,
    /// The tokens whose values are asked for, from 0.
    pub(super) places: Vec<usize>,
    pub(super) reply: Reply,
}

/// A conversation, and everyone who asked for it.
pub(super) struct AskedConversation {
    pub(super) key: Key,
    pub(super) tokens: Vec<u32>,
    pub(super) places: Vec<usize>,
    pub(super) replies: Vec<Reply>,
}

/// Conversations that wait, each once, in the order in which they were asked for first.
#[derive(Default)]
pub(super) struct Waiting {
    queue: VecDeque<Key>,
    asked: HashMap<Key, AskedConversation>,
    tokens: usize,
}

impl Waiting {
    pub(super) fn push(&mut self, Request { key, tokens, places, reply }: Request) {
        if let Some(asked) = self.asked.get_mut(&key) {
            asked.replies.push(reply);
            return;
        }
        self.tokens += tokens.len();
        self.queue.push_back(key);
        self.asked.insert(key, AskedConversation { key, tokens, places, replies: vec![reply] });
    }

    /// The number of tokens of all of them.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes the first conversations: at most `most` tokens in total, but at least one conversation. Those for which
    /// nobody waits any more are dropped.
    pub(super) fn take(&mut self, most: usize) -> Vec<AskedConversation> {
        let (mut taken, mut tokens) = (Vec::new(), 0);
        while let Some(key) = self.queue.front() {
            let Some(next) = self.asked.get(key) else { break };
            let is_wanted = next.replies.iter().any(|reply| !reply.is_closed());
            if is_wanted && !taken.is_empty() && tokens + next.tokens.len() > most {
                break;
            }
            let asked = self.queue.pop_front().and_then(|key| self.asked.remove(&key));
            let Some(asked) = asked else { break };
            self.tokens -= asked.tokens.len();
            if is_wanted {
                tokens += asked.tokens.len();
                taken.push(asked);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Conversations of these lengths, each with who waits for its score.
    fn waiting(lengths: &[usize]) -> (Waiting, Vec<oneshot::Receiver<Result<Values, RewardModelError>>>) {
        let mut waiting = Waiting::default();
        let asked = lengths.iter().map(|&length| {
            let (reply, answer) = oneshot::channel();
            let mut key = [0; 32];
            key[..8].copy_from_slice(&(length as u64).to_le_bytes());
            waiting.push(Request { key, tokens: vec![1; length], places: vec![length - 1], reply });
            answer
        });
        let answers = asked.collect();
        (waiting, answers)
    }

    fn lengths(taken: &[AskedConversation]) -> Vec<(usize, usize)> {
        taken.iter().map(|asked| (asked.tokens.len(), asked.replies.len())).collect()
    }

    #[test]
    fn a_batch_has_the_first_that_fit_and_the_same_one_once() {
        let (mut waiting, _answers) = waiting(&[3, 4, 3, 9, 2]);
        assert_eq!(waiting.tokens(), 18);
        assert_eq!(lengths(&waiting.take(8)), [(3, 2), (4, 1)]);
        // Longer than a batch: alone.
        assert_eq!(lengths(&waiting.take(8)), [(9, 1)]);
        assert_eq!(lengths(&waiting.take(8)), [(2, 1)]);
        assert!(waiting.is_empty() && waiting.tokens() == 0 && waiting.take(8).is_empty());
    }

    #[test]
    fn nothing_is_computed_for_nobody() {
        let (mut waiting, mut answers) = waiting(&[3, 4, 5]);
        drop(answers.remove(1));
        assert_eq!(lengths(&waiting.take(8)), [(3, 1), (5, 1)]);
    }
}
