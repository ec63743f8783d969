//! Checks before a run whether a chat template keeps the policy's text when a conversation continues.

use crate::continuation::unused;
use crate::error::Result;
use crate::model::TextModel;
use crate::renderer::Renderer;
use crate::template::RenderOptions;
use crate::tool_calls::ToolCallFormat;
use chrono::Utc;
use gavel_data::{Message, Role, ToolCall};
use serde_json::json;

/// How a template treats an earlier reply when the conversation continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum History {
    /// It keeps the reply as the policy wrote it.
    Kept,
    /// It writes something other than the policy read and wrote.
    Rewritten {
        /// The difference, with the template's file.
        what: String,
    },
    /// The template refuses such a conversation.
    Refused {
        /// Why, with the template's file.
        what: String,
    },
}

/// How a template treats earlier replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryCheck {
    /// When tools answer the calls of replies.
    pub after_tool: History,
    /// When a user speaks after a reply.
    pub after_user: History,
}

impl TextModel {
    /// Renders a conversation with two replies after `prompt`, and compares it with the text that the policy would have
    /// read and written. The replies have a call and a thought if the model has them. White space is ignored. So is
    /// text that the prompt for a reply has but the template leaves out before earlier replies, such as Qwen3's empty
    /// thought.
    ///
    /// # Errors
    /// The template does not render the prompt.
    pub fn check_history(&self, prompt: &[Message], options: &RenderOptions<'_>) -> Result<HistoryCheck> {
        let options = RenderOptions { now: Some(options.now.unwrap_or_else(Utc::now)), ..options.clone() };
        let renderer = Renderer { model: self, options, mark: "" };
        renderer.render(prompt, true)?;
        let user = || Message::new(Role::User, "And then?");
        let tool = |turn: &Turn| Message {
            tool_call_id: Some(turn.message.tool_calls.first().map_or("call00000", |call| &call.id).into()),
            name: turn.message.tool_calls.first().map(|call| call.name.clone()),
            ..Message::new(Role::Tool, "It is 7.")
        };
        let after_tool = renderer.check(prompt, [&tool, &tool]);
        let after_users = || renderer.check(prompt, [&|_| user(), &|_| user()]);
        let after_user = match after_tool {
            History::Refused { .. } => after_users(),
            // A template may keep a reply with a call and rewrite one without.
            _ => match renderer.check(prompt, [&tool, &|_| user()]) {
                History::Kept => after_users(),
                other => other,
            },
        };
        Ok(HistoryCheck { after_tool, after_user })
    }
}

/// A reply as the policy would write it.
struct Turn {
    /// Without the end of the turn.
    text: String,
    message: Message,
    said: String,
    thought: String,
    /// Whether it contains a thought.
    thinks: bool,
}

impl Renderer<'_> {
    /// How the template treats two replies, each followed by the message that `follow` makes.
    fn check(&self, prompt: &[Message], follow: [&dyn Fn(&Turn) -> Message; 2]) -> History {
        let kept =
            self.conversation(prompt, follow).map(|(turns, written, whole)| self.compare(&turns, &written, &whole));
        match kept {
            Ok(None) => History::Kept,
            Ok(Some(what)) => {
                let path = self.model.template.path(self.options.tools);
                History::Rewritten { what: format!("{}: the chat template {what}", path.display()) }
            }
            Err(error) => History::Refused { what: error.to_string() },
        }
    }

    /// The replies, the texts between them, and the template's text of the whole conversation.
    fn conversation(
        &self,
        prompt: &[Message],
        follow: [&dyn Fn(&Turn) -> Message; 2],
    ) -> Result<(Vec<Turn>, Vec<String>, String)> {
        let mut messages = prompt.to_vec();
        let (mut turns, mut between) = (Vec::new(), vec![self.asked(prompt)?.0]);
        for follow in follow {
            let turn = self.turn(&messages, follow)?;
            let new = follow(&turn);
            let following = self.continuation(&messages, &turn.message, None, std::slice::from_ref(&new))?;
            messages.extend([turn.message.clone(), new]);
            let asking = self.asked(&messages)?.1;
            between.push(following.strip_suffix(&asking).unwrap_or(&following).to_owned());
            turns.push(turn);
        }
        Ok((turns, between, self.render(&messages, true)?))
    }

    /// The text of the messages, and the text with which the template then asks for a reply.
    fn asked(&self, messages: &[Message]) -> Result<(String, String)> {
        let (told, mut asked) = (self.render(messages, false)?, self.render(messages, true)?);
        let asking = asked.split_off(common(&told, &asked));
        Ok((asked, asking))
    }

    /// A reply with marks in its parts, as the template writes a last message.
    fn turn(&self, history: &[Message], follow: &dyn Fn(&Turn) -> Message) -> Result<Turn> {
        let [said, thought, argument] = ["said", "thought", "argument"].map(|name| unused(name, history.iter()));
        let tools = self.options.tools;
        let format = self.model.template.tool_call_format().filter(|_| !tools.is_empty());
        let calls_before: usize = history.iter().map(|message| message.tool_calls.len()).sum();
        let (_, asking) = self.asked(history)?;
        let asks = |end: &str| asking.trim_end().ends_with(end);

        let mut message = Message::new(Role::Assistant, said.as_str());
        message.reasoning = Some(thought.clone()).filter(|_| !asks("</think>"));
        let mut turn = Turn { text: String::new(), message, said, thought, thinks: false };
        let plain = turn.message.clone();
        if format.is_some() && follow(&turn).role == Role::Tool {
            let name = tools.first().and_then(|tool| tool["function"]["name"].as_str()).unwrap_or("f");
            turn.message.tool_calls = vec![ToolCall {
                id: format!("call{calls_before:05}"),
                name: name.into(),
                arguments: json!({"value": argument}).to_string(),
            }];
            if format == Some(ToolCallFormat::Harmony) {
                // All text beside a call is thought.
                turn.message.content = Vec::new();
            }
        }
        let prompt = self.render(history, true)?;
        let whole = self.render(history.iter().chain([&turn.message]), false)?;
        let written = &whole[common(&prompt, &whole)..];
        let after = |text: &str, mark: &str| text.rfind(mark).map(|at| text[at + mark.len()..].to_owned());
        let closing = match after(written, &argument) {
            None => after(written, &turn.said).ok_or_else(|| self.cannot("it leaves a reply out".into()))?,
            Some(end) => {
                let plain = self.render(history.iter().chain([&plain]), false)?;
                let closing = self.closing(&end, &after(&plain, &turn.said).unwrap_or_default()).map(str::to_owned);
                closing.ok_or_else(|| self.cannot("it is not known how a turn with calls ends".into()))?
            }
        };
        turn.text = written.strip_suffix(&closing).unwrap_or(written).to_owned();

        turn.thinks = turn.text.contains(&turn.thought);
        let tags = self.model.template.mentions("</think>", tools);
        if tags && !turn.thinks && turn.message.reasoning.is_some() {
            let open = if asks("<think>") { "" } else { "<think>\n" };
            turn.text = format!("{open}{}\n</think>\n\n{}", turn.thought, turn.text.trim_start());
            turn.thinks = true;
        }
        // A thought without tags is kept apart, since nothing parses it from the text.
        if tags || !turn.thinks {
            turn.message = match format {
                Some(format) => format.parse(&turn.text, tools, calls_before).into_message(),
                None => Message::new(Role::Assistant, turn.text.as_str()),
            };
        }
        Ok(turn)
    }

    /// The first difference of the whole conversation, if any.
    fn compare(&self, turns: &[Turn], between: &[String], whole: &str) -> Option<String> {
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        let whole = bare(whole);
        let Some(mut rest) = between.first().and_then(|prompt| whole.strip_prefix(&bare(prompt))) else {
            return Some("writes what comes before a reply in another way once the conversation continues".into());
        };
        for (turn, following) in turns.iter().zip(&between[1..]) {
            let text = bare(&turn.text);
            let Some(at) = rest.find(&text) else {
                return Some(match () {
                    () if !rest.contains(&turn.said) && text.contains(&turn.said) => "leaves out replies".into(),
                    () if turn.thinks && !rest.contains(&turn.thought) => {
                        "leaves out what was thought in replies".into()
                    }
                    () => "writes replies in another way than the model".into(),
                });
            };
            let after = &rest[at + text.len()..];
            let Some(after) = after.strip_prefix(&bare(following)) else {
                return Some("writes what follows a reply in another way once the conversation continues".into());
            };
            rest = after;
        }
        None
    }
}

/// The number of bytes that two texts share at their beginnings.
fn common(left: &str, right: &str) -> usize {
    let pairs = left.chars().zip(right.chars());
    pairs.take_while(|(left, right)| left == right).map(|(char, _)| char.len_utf8()).sum()
}
