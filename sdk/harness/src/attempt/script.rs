//! The script of an attempt: the turns of the policy, and the answers of the tools.

use gavel_data::{FinishReason, Message, Role, ToolCall};
use gavel_plugin::{AgentTurn, TurnOptions};
use std::collections::BTreeMap;

/// The tokens of a conversation that a script does not limit.
pub(crate) const MAX_TOKENS: usize = 4096;

/// The turns of the policy and the answers of the tools in an attempt, one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The turns of the policy, in all conversations.
    pub turns: Vec<ScriptedTurn>,
    /// The answers of each function.
    pub answers: BTreeMap<String, Vec<String>>,
    /// The most turns of the policy, like `agent.max_turns` of a run.
    pub max_turns: Option<usize>,
    /// The number of tokens by which a conversation may grow, like `rollout.max_tokens` of a run. A character counts as
    /// a token.
    pub max_tokens: usize,
}

/// A turn of the policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScriptedTurn {
    /// Its text.
    pub text: String,
    /// The tools that it calls.
    pub calls: Vec<ScriptedCall>,
    /// What is wrong with the calls in its text that cannot be parsed, one text for each.
    pub malformed: Vec<String>,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedCall {
    /// The name of the function.
    pub function: String,
    /// The arguments, as the policy writes them.
    pub arguments: String,
}

impl ScriptedTurn {
    /// The turn as the policy would generate it: it ends after a stop text, or at the limit of tokens.
    pub(super) fn drawn(&self, number: usize, left: usize, options: &TurnOptions) -> AgentTurn {
        let stops = options.stop.iter().filter(|stop| !stop.is_empty());
        let ends = stops.filter_map(|stop| Some(self.text.find(stop)? + stop.len()));
        let text = &self.text[..ends.min().unwrap_or(self.text.len())];
        let most = options.max_tokens.map_or(left, |most| left.min(most.get()));
        let cut = text.char_indices().nth(most).map(|(at, _)| at);
        let text = &text[..cut.unwrap_or(text.len())];
        let call = |(index, call): (usize, &ScriptedCall)| ToolCall {
            id: format!("call-{number}-{index}"),
            name: call.function.clone(),
            arguments: call.arguments.clone(),
        };
        // A turn that is cut off ends before its calls.
        let (calls, malformed) = match cut {
            Some(_) => (&[][..], &[][..]),
            None => (&self.calls[..], &self.malformed[..]),
        };
        AgentTurn {
            message: Message {
                tool_calls: (1..).zip(calls).map(call).collect(),
                ..Message::new(Role::Assistant, text)
            },
            malformed_calls: malformed.to_vec(),
            finish_reason: if cut.is_some() { FinishReason::Length } else { FinishReason::Stop },
            tokens: text.chars().count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroUsize;

    #[test]
    fn a_turn_ends_at_a_stop_text_and_after_its_last_token() {
        let call = ScriptedCall { function: "add".into(), arguments: "{}".into() };
        let malformed = vec!["it is not JSON".to_owned()];
        let turn = ScriptedTurn { text: "one! two? thrée".into(), calls: vec![call], malformed };
        let drawn = |left, max_tokens, stop: &[&str]| {
            let stop = stop.iter().map(|&stop| stop.to_owned()).collect();
            let turn = turn.drawn(1, left, &TurnOptions { max_tokens: NonZeroUsize::new(max_tokens), stop });
            assert_eq!(turn.malformed_calls.len(), turn.message.tool_calls.len());
            (turn.message.text(), turn.message.tool_calls.len(), turn.finish_reason, turn.tokens)
        };
        assert_eq!(drawn(15, 0, &[]), ("one! two? thrée".into(), 1, FinishReason::Stop, 15));
        assert_eq!(drawn(14, 0, &["?", "!", ""]), ("one!".into(), 1, FinishReason::Stop, 4));
        assert_eq!(drawn(14, 0, &["none"]), ("one! two? thré".into(), 0, FinishReason::Length, 14));
        assert_eq!(drawn(14, 3, &["!"]), ("one".into(), 0, FinishReason::Length, 3));
    }
}
