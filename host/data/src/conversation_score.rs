//! The score that a reward model gives to a conversation.

use serde::{Deserialize, Serialize};

/// The score of a conversation, and the values of its steps where the model gives these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationScore {
    /// The score, finite.
    pub score: f64,
    /// The values of the steps, in order; empty unless the model is a process reward model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepValue>,
}

/// The value of a step: of the bytes `start..end` of the text of the conversation's last message.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepValue {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
    /// The value, finite.
    pub value: f64,
}

impl ConversationScore {
    /// A score without steps.
    pub fn whole(score: f64) -> Self {
        Self { score, steps: Vec::new() }
    }

    /// The score as a text: its number, or with steps an object. [`parse`](Self::parse) reads the same bits.
    pub fn to_text(&self) -> String {
        match self.steps.is_empty() {
            true => self.score.to_string(),
            // Cannot fail: it is numbers.
            false => serde_json::to_string(self).unwrap_or_default(),
        }
    }

    /// Reads `0.5`, or `{"score": 0.5, "steps": [{"start": 0, "end": 9, "value": 0.5}]}`. `None` if the text is
    /// neither, or a number is not finite.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let score = match text.starts_with('{') {
            true => serde_json::from_str(text).ok()?,
            false => Self::whole(text.parse().ok()?),
        };
        score.is_finite().then_some(score)
    }

    /// Whether all of its numbers are finite.
    pub fn is_finite(&self) -> bool {
        self.score.is_finite() && self.steps.iter().all(|step| step.value.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_read_as_it_was_written() {
        let steps =
            vec![StepValue { start: 0, end: 4, value: 0.1 + 0.2 }, StepValue { start: 6, end: 9, value: 1e-300 }];
        for score in [ConversationScore::whole(-5.0 / 3.0), ConversationScore { score: 1.0 / 3.0, steps }] {
            assert_eq!(ConversationScore::parse(&score.to_text()), Some(score));
        }
        assert_eq!(ConversationScore::whole(1.25).to_text(), "1.25");
        for text in ["good", "", "NaN", "inf", "{}", r#"{"score": 1, "steps": [{"start": 0, "end": -1, "value": 0}]}"#]
        {
            assert_eq!(ConversationScore::parse(text), None, "{text}");
        }
    }
}
