//! The messages of a request, as chat messages.

use crate::chat::{Chat, Turn, arguments, content, result};
use crate::fields::{Fields, kind};
use crate::refused::Refused;
use crate::sealed;
use serde_json::{Value, json};

/// The hint for a block that is not text.
const ONLY_TEXT: &str = "only text, thinking, tool_use and tool_result blocks are";

/// Adds the messages. Neighbours of one role are one turn, as at the maker's.
pub(super) fn messages(messages: Vec<Value>, chat: &mut Chat) -> Result<(), Refused> {
    let mut turn = Turn::default();
    let mut texts = Vec::new();
    let mut last_is_assistants = false;
    for (message, at) in messages.into_iter().zip(0..) {
        let at = format!("messages[{at}]");
        let mut message = Fields::of(message, at.as_str())?;
        let role = message.need_text("role")?;
        let said = message.take("content").ok_or_else(|| Refused::field(message.path("content"), " is missing"))?;
        message.done()?;
        let place = format!("{at}.content");
        last_is_assistants = role == "assistant";
        if !last_is_assistants {
            chat.messages.extend(turn.message());
        }
        match role.as_str() {
            "assistant" => {
                say(&mut texts, chat);
                assistant(said, &place, &mut turn)?;
            }
            "user" => user(said, &place, &mut texts, chat)?,
            "system" => {
                say(&mut texts, chat);
                let texts = blocks_as_texts(said, &place)?;
                chat.messages.push(json!({"role": "system", "content": content(texts)}));
            }
            _ => return Err(Refused::field(format!("{at}.role"), " must be user, assistant or system")),
        }
    }
    say(&mut texts, chat);
    chat.messages.extend(turn.message());
    if last_is_assistants {
        let hint = "a reply does not continue a message that was begun";
        return Err(Refused::unsupported("messages: the assistant's message at the end", hint));
    }
    Ok(())
}

/// Adds the user's message of these texts, if there are any.
fn say(texts: &mut Vec<String>, chat: &mut Chat) {
    if !texts.is_empty() {
        chat.messages.push(json!({"role": "user", "content": content(std::mem::take(texts))}));
    }
}

/// The blocks of a content, with where they are. A text is one block.
fn blocks(said: Value, at: &str) -> Result<Vec<Fields>, Refused> {
    match said {
        Value::String(text) => Ok(vec![Fields::of(json!({"type": "text", "text": text}), at)?]),
        Value::Array(list) => {
            list.into_iter().zip(0..).map(|(block, index)| Fields::of(block, format!("{at}[{index}]"))).collect()
        }
        other => Err(Refused::field(at, format!(" must be a text or a list of blocks, not {}", kind(&other)))),
    }
}

/// The text of a text block.
fn text(mut block: Fields) -> Result<String, Refused> {
    let text = block.need_text("text")?;
    // Citations are of documents, and there are none.
    block.ignore(&["cache_control", "citations"]);
    block.done()?;
    Ok(text)
}

/// The texts of a content that has nothing else.
pub(super) fn blocks_as_texts(said: Value, at: &str) -> Result<Vec<String>, Refused> {
    let one = |mut block: Fields| match block.need_text("type")?.as_str() {
        "text" => text(block),
        other => {
            Err(Refused::unsupported(format!("{}: a block of the type {other}", block.at()), "only text blocks are"))
        }
    };
    blocks(said, at)?.into_iter().map(one).collect()
}

fn user(said: Value, at: &str, texts: &mut Vec<String>, chat: &mut Chat) -> Result<(), Refused> {
    for mut block in blocks(said, at)? {
        match block.need_text("type")?.as_str() {
            "text" => texts.push(text(block)?),
            "tool_result" => {
                say(texts, chat);
                let id = block.need_text("tool_use_id")?;
                let place = block.path("content");
                let said = block.take("content").map_or(Ok(Vec::new()), |said| blocks_as_texts(said, &place))?;
                // Chat templates have no place for whether the tool failed: its content says it.
                block.ignore(&["is_error", "cache_control"]);
                block.done()?;
                chat.messages.push(result(&id, content(said)));
            }
            other => {
                return Err(Refused::unsupported(format!("{}: a block of the type {other}", block.at()), ONLY_TEXT));
            }
        }
    }
    Ok(())
}

fn assistant(said: Value, at: &str, turn: &mut Turn) -> Result<(), Refused> {
    for mut block in blocks(said, at)? {
        match block.need_text("type")?.as_str() {
            "text" => turn.say(&text(block)?),
            "thinking" => {
                let shown = block.text("thinking")?.unwrap_or_default();
                let signed = block.text("signature")?.unwrap_or_default();
                match sealed::open(&signed).filter(|_| shown.is_empty()) {
                    Some(thought) => turn.think(&thought),
                    None => turn.think(&shown),
                }
                block.done()?;
            }
            "tool_use" => {
                let (id, name) = (block.need_text("id")?, block.need_text("name")?);
                let input = block.take("input").unwrap_or_else(|| json!({}));
                turn.call(&id, &name, &arguments(input));
                block.ignore(&["cache_control", "caller", "toolset_name"]);
                block.done()?;
            }
            other => {
                return Err(Refused::unsupported(format!("{}: a block of the type {other}", block.at()), ONLY_TEXT));
            }
        }
    }
    Ok(())
}
