//! The parameters of the agent.

use crate::model::{INSTRUCTIONS, Model};
use gavel_sdk::policy::Options;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::num::NonZeroU32;
use user_dialogue::Opening;

/// The most that `max_chars` may be.
const MOST_CHARS: usize = 100_000;

const SYSTEM: &str = "\
You play a user who speaks with an assistant. You are not the assistant.

<instructions>
{instructions}
</instructions>

- Write the user's next message, and nothing before or after it.
- Write briefly and in your own words. Do not repeat the instructions word for word.
- Say only what the assistant needs for its next step, not everything at once.
- Do not make up what the instructions do not say. If the assistant asks for it, say that you do not know.
- Once the user has what the instructions ask for, or it is clear that it cannot be had, write {stop} and nothing else.";

/// `[agent.params]`
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// The model, by the name of its `[chat.NAME]`.
    pub(crate) endpoint: String,
    /// Who the user is and wants, for rows without instructions of their own.
    pub(crate) instructions: Option<String>,
    /// The system prompt of the model.
    pub(crate) system: String,
    /// What the model reads of the assistant before the user's first message.
    pub(crate) greeting: String,
    /// Who writes the first message of the user.
    pub(crate) opening: Opening,
    /// The most messages of the user who is played.
    pub(crate) turns: usize,
    /// The phrase with which the model ends the conversation.
    pub(crate) stop: String,
    /// The most characters of a message.
    pub(crate) max_chars: usize,
    /// How often the model is asked again after a reply that is no message.
    pub(crate) retries: u32,
    /// Further fields of each request, such as `temperature`.
    pub(crate) options: Map<String, Value>,
    /// The most tokens of a turn of the policy.
    pub(crate) max_tokens: Option<NonZeroU32>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            endpoint: "user".into(),
            instructions: None,
            system: SYSTEM.into(),
            greeting: "Hello! How can I help you?".into(),
            opening: Opening::default(),
            turns: 4,
            stop: "###STOP###".into(),
            max_chars: 4000,
            retries: 2,
            options: Map::new(),
            max_tokens: None,
        }
    }
}

/// Parameters that were checked.
pub(crate) struct Config {
    pub(crate) model: Model,
    /// Who the user is and wants, for rows without instructions of their own.
    pub(crate) instructions: Option<String>,
    pub(crate) opening: Opening,
    /// How turns of the policy are drawn.
    pub(crate) policy: Options,
}

impl Params {
    /// Checks the parameters.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn check(self) -> Result<Config, String> {
        let Self {
            endpoint,
            instructions,
            system,
            greeting,
            opening,
            turns,
            stop,
            max_chars,
            retries,
            options,
            max_tokens,
        } = self;
        if turns == 0 {
            return Err("`turns` must be at least 1, not 0: the user would say nothing".into());
        }
        if stop.trim().is_empty() {
            return Err("`stop` is empty: every message would end the conversation".into());
        }
        if greeting.trim().is_empty() {
            return Err("`greeting` is empty: the model would have no message to answer".into());
        }
        if !(1..=MOST_CHARS).contains(&max_chars) {
            return Err(format!("`max_chars` must be from 1 to {MOST_CHARS}, not {max_chars}"));
        }
        if !system.contains(INSTRUCTIONS) {
            return Err(format!("`system` has no {INSTRUCTIONS}: the model would not know whom to play"));
        }
        let model = Model { endpoint, system, greeting, turns, stop, max_chars, retries, options };
        let instructions = instructions.filter(|instructions| !instructions.trim().is_empty());
        let policy = Options::default();
        let policy = max_tokens.map_or(policy.clone(), |most| policy.max_tokens(most.get()));
        Ok(Config { model, instructions, opening, policy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(params: Value) -> Result<Config, String> {
        serde_json::from_value::<Params>(params).map_err(|error| error.to_string())?.check()
    }

    #[test]
    fn every_parameter_has_a_default() {
        let user = read(json!({})).unwrap();
        assert_eq!((user.model.endpoint.as_str(), user.model.turns, user.opening), ("user", 4, Opening::Prompt));
        assert!(user.model.system.contains("{stop}") && user.instructions.is_none());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (params, what) in [
            (json!({"turns": 0}), "`turns` must be at least 1"),
            (json!({"stop": " "}), "`stop` is empty"),
            (json!({"greeting": ""}), "`greeting` is empty"),
            (json!({"max_chars": 0}), "from 1 to 100000, not 0"),
            (json!({"max_chars": 100001}), "from 1 to 100000, not 100001"),
            (json!({"system": "You are angry."}), "no {instructions}"),
            (json!({"opening": "policy"}), "unknown variant `policy`"),
            (json!({"script": ["Why?"]}), "unknown field `script`"),
        ] {
            let error = read(params.clone()).err().unwrap();
            assert!(error.contains(what), "{params}: {error}");
        }
    }
}
