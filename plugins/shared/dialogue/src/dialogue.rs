//! A conversation as its user reads it.

use crate::thought::without_thoughts;
use gavel_sdk::{Message, Role};

/// A conversation as its user reads it: what both sides said. System messages, calls of tools, their answers and thoughts
/// are no part of it.
#[derive(Debug, Default)]
pub struct Dialogue {
    lines: Vec<Line>,
    said: usize,
    is_answered: bool,
}

/// What one side said until the other spoke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The side that spoke.
    pub by: Side,
    /// Its words.
    pub text: String,
}

/// A side of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The user.
    User,
    /// The policy, or an assistant of the row's prompt.
    Policy,
}

/// What the user reads where the policy said nothing.
const SILENCE: &str = "(no message)";

impl Dialogue {
    /// The dialogue in the prompt of a row.
    pub fn of_prompt(prompt: &[Message]) -> Self {
        let mut dialogue = Self::default();
        for message in prompt {
            match message.role {
                Role::User => dialogue.add(Side::User, message.text()),
                Role::Assistant if message.tool_calls.is_empty() => {
                    dialogue.add(Side::Policy, audible(&message.text()));
                }
                Role::System | Role::Assistant | Role::Tool => {}
            }
        }
        dialogue
    }

    /// Adds a message of the user who is played.
    pub fn user_says(&mut self, text: String) {
        self.said += 1;
        self.add(Side::User, text);
    }

    /// Adds the policy's answer.
    pub fn policy_says(&mut self, text: &str) {
        self.is_answered = true;
        self.add(Side::Policy, audible(text));
    }

    /// What both sides said, in turns.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The number of messages that the user who is played has said.
    pub fn said(&self) -> usize {
        self.said
    }

    /// Whether the policy has answered at least once.
    pub fn is_answered(&self) -> bool {
        self.is_answered
    }

    fn add(&mut self, by: Side, text: String) {
        match self.lines.last_mut() {
            Some(last) if last.by == by => last.text = format!("{}\n\n{text}", last.text),
            _ => self.lines.push(Line { by, text }),
        }
    }
}

/// What a user reads of a text of the policy.
fn audible(text: &str) -> String {
    without_thoughts(text).filter(|spoken| !spoken.is_empty()).unwrap_or(SILENCE).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_sdk::ToolCall;

    fn texts(dialogue: &Dialogue) -> Vec<(Side, &str)> {
        dialogue.lines().iter().map(|line| (line.by, line.text.as_str())).collect()
    }

    #[test]
    fn a_user_reads_what_was_said_alone() {
        let call = ToolCall { id: "1".into(), name: "look".into(), arguments: "{}".into() };
        let prompt = [
            Message::system("Never give refunds."),
            Message::user("Hello?"),
            Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "I look.") },
            Message::new(Role::Tool, "order 7"),
            Message::new(Role::Assistant, "<think>He wants money.</think>How can I help?"),
            Message::user("I want"),
            Message::user("a refund."),
        ];
        let mut dialogue = Dialogue::of_prompt(&prompt);
        let in_prompt =
            [(Side::User, "Hello?"), (Side::Policy, "How can I help?"), (Side::User, "I want\n\na refund.")];
        assert_eq!(texts(&dialogue), in_prompt);
        assert_eq!((dialogue.said(), dialogue.is_answered()), (0, false));
        dialogue.policy_says("<think>No.</think>\nNo.\n");
        dialogue.user_says("Why?".into());
        dialogue.policy_says("<think>Because");
        assert_eq!(texts(&dialogue)[3..], [(Side::Policy, "No."), (Side::User, "Why?"), (Side::Policy, SILENCE)]);
        assert_eq!((dialogue.said(), dialogue.is_answered()), (1, true));
    }
}
