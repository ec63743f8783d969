//! An attempt at a task: the policy and its user speak in turns.

use crate::dialogue::Dialogue;
use crate::opening::Opening;
use crate::user::{Ending, Said, User};
use gavel_sdk::policy::{Conversation, Error, Options};
use gavel_sdk::{Answer, Failure, Message, Task, tools};
use serde_json::json;

/// Lets the policy speak with its user until one of them ends it. The policy calls tools within its turn. Its last message
/// is the response. The object beside it has `user_turns`, the messages of the user that the policy answered, `ended`, and
/// `farewell` if the user said one.
///
/// # Errors
/// The row does not fit, the user has no message, or the policy could not speak.
pub fn attempt(task: &Task, opening: Opening, options: &Options, user: &impl User) -> Result<Answer, Failure> {
    let prompt = task.prompt();
    opening.check(&prompt)?;
    let mut dialogue = Dialogue::of_prompt(&prompt);
    let conversation = Conversation::open("", prompt, &tools::specs())?;
    let (mut response, mut answered) = (None, 0);
    let mut is_users_turn = opening == Opening::User;
    let (ending, farewell) = loop {
        if is_users_turn {
            if let Some(ending) = user.ending(dialogue.said()) {
                break (ending, String::new());
            }
            // Without tokens, nothing could be answered.
            if conversation.tokens_left() == 0 {
                break (Ending::Exhausted, String::new());
            }
            match user.speak(&dialogue)? {
                Said::Message(text) => {
                    conversation.append(vec![Message::user(&text)])?;
                    dialogue.user_says(text);
                }
                Said::Farewell(words) => break (Ending::Stop, words),
            }
        }
        match answer(&conversation, options, &mut response) {
            Ok(()) => {}
            Err(Error::Exhausted(_)) if response.is_some() => break (Ending::Exhausted, String::new()),
            Err(error) => return Err(error.into()),
        }
        answered = dialogue.said();
        dialogue.policy_says(response.as_deref().unwrap_or_default());
        is_users_turn = true;
    };
    let no_answer = || Failure::internal("the conversation ended before the policy spoke");
    let mut extra = json!({"user_turns": answered, "ended": ending.as_str()});
    if !farewell.is_empty() {
        extra["farewell"] = farewell.into();
    }
    Ok(Answer::new(response.ok_or_else(no_answer)?).extra(extra))
}

/// Generates turns until one calls no tool. `response` becomes the text of the last turn.
fn answer(conversation: &Conversation, options: &Options, response: &mut Option<String>) -> Result<(), Error> {
    loop {
        let turn = conversation.generate(options)?;
        *response = Some(turn.text());
        let answers = tools::answer(&turn);
        if answers.is_empty() {
            return Ok(());
        }
        conversation.append(answers)?;
    }
}
