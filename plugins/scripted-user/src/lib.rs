//! An agent in which the policy speaks with a user who follows a script: the messages come one after another, whatever
//! the policy answers.

use gavel_sdk::policy::Options;
use gavel_sdk::{Agent, Answer, Failure, Info, Task};
use serde::Deserialize;
use std::num::NonZeroU32;
use user_dialogue::{Dialogue, Ending, Opening, Said, Settings, User, attempt};

struct ScriptedUser {
    script: Vec<String>,
    opening: Opening,
    options: Options,
}

/// The keys of `[agent.params]`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// The messages of the user, for rows without a script of their own.
    script: Vec<String>,
    /// Who writes the first message of the user.
    opening: Opening,
    /// The most tokens of a turn of the policy.
    max_tokens: Option<NonZeroU32>,
}

impl Agent for ScriptedUser {
    type Params = Params;

    fn new(Params { script, opening, max_tokens }: Params) -> Result<Self, String> {
        check(&script)?;
        let options = Options::default();
        let options = max_tokens.map_or(options.clone(), |most| options.max_tokens(most.get()));
        Ok(Self { script, opening, options })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn run(&self, task: &Task) -> Result<Answer, Failure> {
        let script = self.script_of(Settings::of(task)?)?;
        attempt(task, self.opening, &self.options, &Script(script))
    }
}

gavel_sdk::export_agent!(ScriptedUser);

impl ScriptedUser {
    /// The script of a row.
    fn script_of(&self, settings: Settings) -> Result<Vec<String>, Failure> {
        let script = settings.script.unwrap_or_else(|| self.script.clone());
        check(&script)
            .map_err(|what| Failure::invalid_input(format!("the row's `extra_info.agent_kwargs`: {what}")))?;
        match script.is_empty() {
            true => Err(Failure::invalid_input(
                "the user has no message; give one in the row's `extra_info.agent_kwargs.script`, or in the parameter `script` for all rows",
            )),
            false => Ok(script),
        }
    }
}

/// Refuses a script with an empty message.
fn check(script: &[String]) -> Result<(), String> {
    match script.iter().position(|message| message.trim().is_empty()) {
        Some(at) => Err(format!("message {} of `script` is empty", at + 1)),
        None => Ok(()),
    }
}

/// The messages of a user.
struct Script(Vec<String>);

impl User for Script {
    fn ending(&self, said: usize) -> Option<Ending> {
        (said >= self.0.len()).then_some(Ending::Script)
    }

    fn speak(&self, dialogue: &Dialogue) -> Result<Said, Failure> {
        let message = self.0.get(dialogue.said()).cloned();
        message.map(Said::Message).ok_or_else(|| Failure::internal("the script has ended"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &[&str]) -> Vec<String> {
        script.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn the_messages_come_in_their_order() {
        let script = Script(texts(&["Why?", "Really?"]));
        let mut dialogue = Dialogue::default();
        for message in ["Why?", "Really?"] {
            assert_eq!(script.ending(dialogue.said()), None);
            assert_eq!(script.speak(&dialogue).unwrap(), Said::Message(message.into()));
            dialogue.user_says(message.into());
            dialogue.policy_says("Because.");
        }
        assert_eq!(script.ending(dialogue.said()), Some(Ending::Script));
    }

    #[test]
    fn a_row_has_its_own_script_or_the_common_one() {
        let params = Params { script: texts(&["Why?"]), ..Params::default() };
        let user = ScriptedUser::new(params).unwrap();
        let script = |script: Option<&[&str]>| {
            let settings = Settings { script: script.map(texts), ..Settings::default() };
            user.script_of(settings).map_err(|failure| failure.to_string())
        };
        assert_eq!(script(None).unwrap(), ["Why?"]);
        assert_eq!(script(Some(&["When?"])).unwrap(), ["When?"]);
        assert!(script(Some(&["When?", " "])).unwrap_err().contains("message 2 of `script` is empty"));
        assert!(script(Some(&[])).unwrap_err().contains("the user has no message"));
    }
}
