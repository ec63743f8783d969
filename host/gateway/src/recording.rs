//! What the policy wrote in a session: its conversations, and the turns after which a request can continue them.

use crate::digest;
use blake3::Hash;
use gavel_agent::{Conversation, ConversationKey, Turn};
use gavel_data::{FinishReason, Message, Role, RolloutReport, ToolEnding, ToolUse, Trajectory};
use gavel_text::{TextError, TextModel};
use std::collections::HashMap;

/// The conversations of a session.
#[derive(Default)]
pub(crate) struct Recording {
    conversations: Vec<Recorded>,
    /// The turns after which a conversation has this digest.
    turns: HashMap<Hash, Vec<AfterTurn>>,
    /// The conversation in which the policy wrote last.
    last: Option<usize>,
    /// Turns of the policy.
    count: u32,
}

/// A conversation in which the policy wrote.
struct Recorded {
    conversation: Conversation,
    /// Tokens of the prompt of its first turn, or of the conversation that it parted from.
    prompt_tokens: usize,
    /// Absent while a turn is drawn with it.
    key: Option<ConversationKey>,
    finish_reason: FinishReason,
    report: RolloutReport,
}

/// A turn, after which a request continues.
#[derive(Clone, Copy)]
pub(crate) struct AfterTurn {
    conversation: usize,
    turn: usize,
}

/// The recorded conversation that a request continues.
pub(crate) struct Continued {
    pub(crate) after: AfterTurn,
    /// How many of the request's messages are recorded.
    pub(crate) messages: usize,
    /// The conversation up to there.
    pub(crate) base: Conversation,
    pub(crate) prompt_tokens: usize,
}

/// Where the turns of a request begin.
pub(crate) struct Start {
    /// The turn that they continue; otherwise they begin conversations of their own.
    pub(crate) after: Option<AfterTurn>,
    /// The conversation before the new messages.
    pub(crate) base: Conversation,
    /// The new messages, and their tokens.
    pub(crate) new: Vec<Message>,
    pub(crate) new_ids: Vec<u32>,
    pub(crate) prompt_tokens: usize,
    /// The digest of the conversation with the new messages.
    pub(crate) digest: Hash,
}

impl Recording {
    /// The recorded conversation that has most of a request's messages, but not all. `digests` has the digests of the
    /// conversation with none of the messages, with the first, and so on.
    pub(crate) fn find(&self, digests: &[Hash]) -> Option<Continued> {
        let before_last = digests.len().checked_sub(1)?;
        let mut longest_first = digests.iter().enumerate().take(before_last).skip(1).rev();
        longest_first.find_map(|(messages, digest)| {
            let turns = self.turns.get(digest)?;
            let after = *turns.iter().find(|after| self.is_last_turn(**after)).or(turns.first())?;
            let recorded = self.conversations.get(after.conversation)?;
            let base = recorded.conversation.fork_after(after.turn)?;
            Some(Continued { after, messages, base, prompt_tokens: recorded.prompt_tokens })
        })
    }

    fn is_last_turn(&self, AfterTurn { conversation, turn }: AfterTurn) -> bool {
        let recorded = self.conversations.get(conversation);
        recorded.is_some_and(|recorded| recorded.conversation.drawn_turns() == turn + 1)
    }

    /// The key of a conversation, unless a turn is drawn with it or the conversation has continued otherwise.
    pub(crate) fn take_key(&mut self, after: AfterTurn) -> Option<ConversationKey> {
        if !self.is_last_turn(after) {
            return None;
        }
        self.conversations.get_mut(after.conversation)?.key.take()
    }

    /// Records a turn that was drawn after `start` and that took so many seconds. Its client was answered with
    /// `answered`. If another turn has continued the conversation before, this one is a branch of it.
    ///
    /// # Errors
    /// Its tokens cannot be decoded.
    pub(crate) fn record(
        &mut self,
        start: &Start,
        turn: Turn,
        seconds: f64,
        key: Option<ConversationKey>,
        answered: &Message,
        text: &TextModel,
    ) -> Result<(), TextError> {
        let number = match start.after.filter(|after| self.is_last_turn(*after)) {
            Some(after) => after.conversation,
            None => {
                let (finish_reason, report) = (FinishReason::Stop, RolloutReport::default());
                let (conversation, prompt_tokens) = (start.base.clone(), start.prompt_tokens);
                self.conversations.push(Recorded { conversation, prompt_tokens, key: None, finish_reason, report });
                self.conversations.len() - 1
            }
        };
        let Some(recorded) = self.conversations.get_mut(number) else { return Ok(()) };
        if !start.new.is_empty() {
            recorded.conversation.append(start.new.clone(), start.new_ids.clone());
        }
        recorded.finish_reason = turn.finish_reason;
        let reply = recorded.conversation.append_turn(turn, text)?;
        recorded.key = key;
        recorded.report.generating.push(seconds);
        let (ending, turn) = (ToolEnding::CalledWrongly, self.count);
        let unread = reply.malformed.iter().map(|_| ToolUse { name: None, ending, turn, seconds: 0.0 });
        recorded.report.tool_uses.extend(unread);
        let after = AfterTurn { conversation: number, turn: recorded.conversation.drawn_turns() - 1 };
        self.turns.entry(digest::with(&start.digest, answered)).or_default().push(after);
        self.count += 1;
        self.last = Some(number);
        Ok(())
    }

    /// Notes why the conversation that ends with this turn cannot continue. A new conversation or a branch says nothing of
    /// those that were recorded.
    pub(crate) fn cannot_continue(&mut self, after: Option<AfterTurn>, why: FinishReason) {
        let continued = after.filter(|after| self.is_last_turn(*after)).map(|after| after.conversation);
        self.note_end(continued, why);
    }

    /// Notes why the conversation in which the policy wrote last cannot continue.
    pub(crate) fn last_cannot_continue(&mut self, why: FinishReason) {
        self.note_end(self.last, why);
    }

    fn note_end(&mut self, number: Option<usize>, why: FinishReason) {
        if let Some(recorded) = number.and_then(|number| self.conversations.get_mut(number)) {
            recorded.finish_reason = why;
        }
    }

    /// The last text of the policy.
    pub(crate) fn last_text(&self) -> Option<String> {
        let recorded = self.conversations.get(self.last?)?;
        recorded.conversation.history().filter(|message| message.role == Role::Assistant).last().map(Message::text)
    }

    /// The trajectories, in the order in which they began. `prompt` is the prompt of the task.
    pub(crate) fn end(self, prompt: &[Message]) -> Vec<Trajectory> {
        let trajectory = |recorded: Recorded| {
            let Recorded { conversation, finish_reason, report, .. } = recorded;
            let speaker = (!conversation.begins_with(prompt)).then(String::new);
            conversation.end(speaker, finish_reason, report)
        };
        self.conversations.into_iter().map(trajectory).collect()
    }
}
