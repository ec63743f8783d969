//! Who writes the first message of the user.

use gavel_sdk::{Failure, Message, Role};
use serde::Deserialize;

/// Who writes the first message of the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Opening {
    /// The row: the policy answers its prompt.
    #[default]
    Prompt,
    /// The user who is played.
    User,
}

impl Opening {
    /// Checks the prompt of a row.
    ///
    /// # Errors
    /// The user would speak after a message of the user.
    pub fn check(self, prompt: &[Message]) -> Result<(), Failure> {
        let last = prompt.last().map(|message| message.role);
        match (self, last) {
            (Self::User, Some(Role::User)) => Err(Failure::invalid_input(
                "the row's `prompt` ends with a message of the user, and with `opening = \"user\"` the user who is played writes the first; leave only a system message in the prompt, or set `opening = \"prompt\"`",
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_does_not_speak_after_a_user() {
        let both = [Message::system("Be brief."), Message::user("Hi.")];
        assert!(Opening::Prompt.check(&both).is_ok() && Opening::User.check(&both[..1]).is_ok());
        let Err(Failure::InvalidInput(what)) = Opening::User.check(&both) else { panic!("it was allowed") };
        assert!(what.contains("`opening = \"prompt\"`"), "{what}");
    }
}
