//! A conversation of an agent: the messages since the policy's last turn, and the trajectories of earlier turns.

use crate::conversation::{Conversation, PromptOptions};
use crate::policy::ConversationKey;
use gavel_data::{FinishReason, Message, RolloutReport, Trajectory};

/// A conversation of an agent.
pub(crate) struct OpenConversation {
    pub(crate) speaker: String,
    pub(crate) options: PromptOptions,
    /// Messages since the last turn, or since the beginning.
    pub(crate) pending: Vec<Message>,
    /// Absent before the first turn.
    pub(crate) conversation: Option<Conversation>,
    /// Tokens of the prompt of the first turn.
    pub(crate) prompt_tokens: usize,
    /// The trajectories of earlier turns, if each turn is a trajectory.
    pub(crate) ended: Vec<Trajectory>,
    pub(crate) key: Option<ConversationKey>,
    pub(crate) finish_reason: FinishReason,
    pub(crate) report: RolloutReport,
}

impl OpenConversation {
    /// Tokens after the prompt of the first turn.
    pub(crate) fn grown(&self) -> usize {
        self.conversation.as_ref().map_or(0, |conversation| conversation.tokens().saturating_sub(self.prompt_tokens))
    }

    /// Begins a trajectory whose prompt is all of the conversation and `pending`, with the tokens `ids`.
    pub(crate) fn split(&mut self, prompt: &[Message], pending: Vec<Message>, ids: Vec<u32>) {
        let Some(before) = self.conversation.take() else { return };
        let all = before.history().cloned().chain(pending).collect();
        self.conversation = Some(Conversation::new(all, ids, self.options.clone()));
        let report = std::mem::take(&mut self.report);
        self.ended.extend(trajectory(before, &self.speaker, prompt, FinishReason::Stop, report));
    }

    /// The trajectories in which the policy wrote.
    pub(crate) fn end(self, prompt: &[Message]) -> Vec<Trajectory> {
        let Self { speaker, conversation, mut ended, finish_reason, report, .. } = self;
        let last = conversation.and_then(|last| trajectory(last, &speaker, prompt, finish_reason, report));
        ended.extend(last);
        ended
    }
}

/// The trajectory of a conversation, if the policy wrote in it.
fn trajectory(
    conversation: Conversation,
    speaker: &str,
    prompt: &[Message],
    finish_reason: FinishReason,
    report: RolloutReport,
) -> Option<Trajectory> {
    let is_own = !speaker.is_empty() || !conversation.begins_with(prompt);
    let speaker = is_own.then(|| speaker.to_owned());
    (conversation.turns() > 0).then(|| conversation.end(speaker, finish_reason, report))
}
