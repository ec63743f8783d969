//! The model that plays the user.

use crate::reply::{Reply, Rules, Unusable};
use gavel_sdk::chat::{Error, Request};
use gavel_sdk::{Failure, Message, Role};
use serde_json::{Map, Value};
use user_dialogue::{Dialogue, Ending, Said, Side, User};

/// The place of the instructions in the system prompt.
pub(crate) const INSTRUCTIONS: &str = "{instructions}";
/// The place of the phrase that ends the conversation.
const STOP: &str = "{stop}";

/// A model, and how it is asked.
pub(crate) struct Model {
    /// The name of its `[chat.NAME]`.
    pub(crate) endpoint: String,
    /// The system prompt, with places for the instructions and the phrase.
    pub(crate) system: String,
    /// What the model reads of the assistant before the user's first message.
    pub(crate) greeting: String,
    /// The most messages of the user.
    pub(crate) turns: usize,
    /// The phrase with which the model ends the conversation.
    pub(crate) stop: String,
    /// The most characters of a message.
    pub(crate) max_chars: usize,
    /// How often it is asked again after a reply that is no message.
    pub(crate) retries: u32,
    /// Further fields of each request.
    pub(crate) options: Map<String, Value>,
}

/// The model in the part of one user.
pub(crate) struct Player<'a> {
    model: &'a Model,
    system: String,
}

impl<'a> Player<'a> {
    /// The user with these instructions.
    pub(crate) fn new(model: &'a Model, instructions: &str) -> Self {
        // The instructions last, so that nothing in them is a place.
        let system = model.system.replace(STOP, &model.stop).replace(INSTRUCTIONS, instructions);
        Self { model, system }
    }

    /// The conversation from the user's side: the model is the user, and the assistant speaks to it. `problem` is the
    /// number of its last reply and what was wrong with it.
    fn messages(&self, dialogue: &Dialogue, problem: Option<(u32, Unusable)>) -> Vec<Message> {
        let lines = dialogue.lines().iter().map(|line| match line.by {
            Side::User => (Role::Assistant, line.text.clone()),
            Side::Policy => (Role::User, line.text.clone()),
        });
        // Many chat templates refuse a conversation that the assistant begins.
        let is_greeted = dialogue.lines().first().is_none_or(|first| first.by == Side::User);
        let greeting = is_greeted.then(|| (Role::User, self.model.greeting.clone()));
        let mut messages: Vec<(Role, String)> = greeting.into_iter().chain(lines).collect();
        if let (Some((number, problem)), Some((_, text))) = (problem, messages.last_mut()) {
            // With its number, as a cache answers an equal request with the same reply.
            let most = self.model.max_chars;
            text.push_str(&format!(
                "\n\n(This note is not from the assistant. Your reply {number} was {problem}. Write the user's next message, of at most {most} characters.)"
            ));
        }
        let system = Message::system(&self.system);
        let messages = messages.into_iter().map(|(role, text)| Message::new(role, text));
        std::iter::once(system).chain(messages).collect()
    }

    /// Asks the model until its reply is a message or ends the conversation.
    fn ask(&self, dialogue: &Dialogue, send: impl Fn(Vec<Message>) -> Result<Reply, Error>) -> Result<Said, Failure> {
        let Model { endpoint, stop, max_chars, retries, .. } = self.model;
        let rules = Rules { stop, max_chars: *max_chars, may_end: dialogue.is_answered() };
        let mut problem = None;
        for number in 1..=retries.saturating_add(1) {
            match rules.read(&send(self.messages(dialogue, problem))?) {
                Ok(said) => return Ok(said),
                Err(unusable) => problem = Some((number, unusable)),
            }
        }
        let last = problem.map(|(_, last)| format!("; the last reply was {last}")).unwrap_or_default();
        let what = format!("the model of the endpoint `{endpoint}` wrote no message of a user{last}");
        Err(Failure::unavailable(what))
    }

    fn request(&self, messages: Vec<Message>) -> Request {
        let request = messages.into_iter().fold(Request::new(&self.model.endpoint), Request::message);
        self.model.options.iter().fold(request, |request, (name, value)| request.option(name, value.clone()))
    }
}

impl User for Player<'_> {
    fn ending(&self, said: usize) -> Option<Ending> {
        (said >= self.model.turns).then_some(Ending::Turns)
    }

    fn speak(&self, dialogue: &Dialogue) -> Result<Said, Failure> {
        self.ask(dialogue, |messages| Ok(self.request(messages).send()?.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn model(retries: u32) -> Model {
        let [endpoint, system, greeting, stop] =
            ["user", "Play. {instructions} End with {stop}.", "Hello!", "###STOP###"].map(str::to_owned);
        Model { endpoint, system, greeting, turns: 2, stop, max_chars: 20, retries, options: Map::new() }
    }

    fn texts(messages: &[Message]) -> Vec<(Role, String)> {
        messages.iter().map(|message| (message.role, message.text())).collect()
    }

    fn written(expected: &[(Role, &str)]) -> Vec<(Role, String)> {
        expected.iter().map(|(role, text)| (*role, (*text).to_owned())).collect()
    }

    #[test]
    fn the_model_is_the_user_and_reads_the_policy_as_its_user() {
        let model = model(0);
        let player = Player::new(&model, "You want {stop}.");
        let system = (Role::System, "Play. You want {stop}. End with ###STOP###.");
        let prompt = [Message::system("Never give refunds."), Message::user("A refund!")];
        let mut dialogue = Dialogue::of_prompt(&prompt);
        dialogue.policy_says("<think>No.</think>Which order?");
        let expected = [system, (Role::User, "Hello!"), (Role::Assistant, "A refund!"), (Role::User, "Which order?")];
        assert_eq!(texts(&player.messages(&dialogue, None)), written(&expected));
        // The user writes the first message.
        let opens = texts(&player.messages(&Dialogue::of_prompt(&prompt[..1]), None));
        assert_eq!(opens, written(&[system, (Role::User, "Hello!")]));
        // The policy spoke first.
        let mut dialogue = Dialogue::default();
        dialogue.policy_says("Welcome.");
        assert_eq!(texts(&player.messages(&dialogue, None)), written(&[system, (Role::User, "Welcome.")]));
    }

    /// What becomes of these replies, and the last message of each request.
    fn asked(retries: u32, replies: &[Result<&str, Error>]) -> (Result<Said, Failure>, Vec<String>) {
        let model = model(retries);
        let mut dialogue = Dialogue::of_prompt(&[Message::user("A refund!")]);
        dialogue.policy_says("Which order?");
        let requests = RefCell::new(Vec::new());
        let send = |messages: Vec<Message>| {
            let reply = replies[requests.borrow().len()].clone();
            requests.borrow_mut().extend(messages.last().map(Message::text));
            reply.map(|text| Reply { text: text.into(), is_cut: false })
        };
        (Player::new(&model, "You want it.").ask(&dialogue, send), requests.into_inner())
    }

    #[test]
    fn a_reply_that_is_no_message_is_asked_for_again() {
        let (said, requests) = asked(2, &[Ok(""), Ok("It is the order seven."), Ok("Order 7.")]);
        assert_eq!(said.unwrap(), Said::Message("Order 7.".into()));
        assert_eq!((requests.len(), requests[0].as_str()), (3, "Which order?"));
        assert!(requests[1].starts_with("Which order?\n\n(This note is not from the assistant."), "{requests:?}");
        assert!(requests[1].contains("reply 1 was empty"), "{requests:?}");
        assert!(requests[2].contains("reply 2 was 22 characters long"), "{requests:?}");
        let (_, requests) = asked(2, &[Ok(""), Ok(""), Ok("Order 7.")]);
        assert_ne!(requests[1], requests[2]);
        let (said, requests) = asked(2, &[Ok("Thanks. ###STOP###")]);
        assert_eq!((said.unwrap(), requests.len()), (Said::Farewell("Thanks.".into()), 1));
    }

    #[test]
    fn a_user_without_a_message_is_unavailable() {
        let (said, requests) = asked(1, &[Ok(""), Ok("<think>Hm")]);
        let Err(Failure::Unavailable(what)) = &said else { panic!("{said:?}") };
        let expected = "the model of the endpoint `user` wrote no message of a user; the last reply was a thought without a message";
        assert_eq!((what.as_str(), requests.len()), (expected, 2));
        let (said, _) = asked(1, &[Ok(""), Err(Error::Unavailable("busy".into()))]);
        assert!(matches!(said, Err(Failure::Unavailable(ref what)) if what == "busy"), "{said:?}");
        let (said, _) = asked(1, &[Err(Error::Refused("too long".into()))]);
        assert!(matches!(said, Err(Failure::Internal(ref what)) if what == "too long"), "{said:?}");
    }
}
