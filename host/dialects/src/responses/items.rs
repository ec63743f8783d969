//! The items of `input`, as chat messages.

use crate::chat::{Chat, Turn, content, result};
use crate::fields::{Fields, kind};
use crate::refused::Refused;
use crate::sealed;
use serde_json::{Value, json};

/// Adds the items. Thoughts, text and calls that follow each other in this order are one message of the assistant.
pub(super) fn items(items: Vec<Value>, chat: &mut Chat) -> Result<(), Refused> {
    let mut turn = Turn::default();
    for (item, at) in items.into_iter().zip(0..) {
        let mut item = Fields::of(item, format!("input[{at}]"))?;
        let kind = item.text("type")?.unwrap_or_else(|| "message".into());
        // What the server called the item, and whether it was whole.
        item.ignore(&["id", "status", "phase"]);
        match kind.as_str() {
            "message" => message(item, &mut turn, chat)?,
            "reasoning" => {
                if turn.text.is_some() || !turn.calls.is_empty() {
                    chat.messages.extend(turn.message());
                }
                turn.think(&thought(item)?);
            }
            "function_call" => {
                let (id, name) = (item.need_text("call_id")?, item.need_text("name")?);
                turn.call(&id, &name, &item.need_text("arguments")?);
                item.only("namespace", &[], "")?;
                item.ignore(&["caller", "async"]);
                item.done()?;
            }
            "function_call_output" => {
                chat.messages.extend(turn.message());
                let id = item.need_text("call_id")?;
                let place = item.path("output");
                let output = item.take("output").ok_or_else(|| Refused::field(place.as_str(), " is missing"))?;
                item.only("namespace", &[], "")?;
                item.ignore(&["caller", "name"]);
                item.done()?;
                chat.messages.push(result(&id, content(texts(output, &place)?)));
            }
            _ => {
                let hint = "messages, reasoning, function_call and function_call_output are";
                return Err(Refused::unsupported(item.path("type"), hint));
            }
        }
    }
    chat.messages.extend(turn.message());
    Ok(())
}

fn message(mut item: Fields, turn: &mut Turn, chat: &mut Chat) -> Result<(), Refused> {
    let role = item.need_text("role")?;
    let place = item.path("content");
    let said = item.take("content").ok_or_else(|| Refused::field(place.as_str(), " is missing"))?;
    let texts = texts(said, &place)?;
    match role.as_str() {
        "assistant" => {
            if turn.text.is_some() || !turn.calls.is_empty() {
                chat.messages.extend(turn.message());
            }
            turn.say(&texts.concat());
        }
        "user" | "system" | "developer" => {
            chat.messages.extend(turn.message());
            chat.messages.push(json!({"role": role, "content": content(texts)}));
        }
        _ => return Err(Refused::field(item.path("role"), " must be user, assistant, system or developer")),
    }
    item.done()
}

/// The texts of a content.
fn texts(said: Value, at: &str) -> Result<Vec<String>, Refused> {
    let parts = match said {
        Value::String(text) => return Ok(vec![text]),
        Value::Array(parts) => parts,
        other => {
            return Err(Refused::field(at, format!(" must be a text or a list of parts, not {}", kind(&other))));
        }
    };
    let one = |(part, index): (Value, usize)| {
        let mut part = Fields::of(part, format!("{at}[{index}]"))?;
        match part.need_text("type")?.as_str() {
            "input_text" | "output_text" | "text" => {}
            _ => return Err(Refused::unsupported(part.path("type"), "only text is")),
        }
        let text = part.need_text("text")?;
        part.ignore(&["annotations", "logprobs", "prompt_cache_breakpoint"]);
        part.done()?;
        Ok(text)
    };
    parts.into_iter().zip(0..).map(one).collect()
}

/// The thought of an item, which is shown or sealed.
fn thought(mut item: Fields) -> Result<String, Refused> {
    let mut shown = String::new();
    let mut read = |item: &mut Fields, name: &str| {
        for (part, at) in item.list(name)?.into_iter().zip(0..) {
            let mut part = Fields::of(part, format!("{}[{at}]", item.path(name)))?;
            part.ignore(&["type"]);
            shown.push_str(&part.need_text("text")?);
            part.done()?;
        }
        Ok::<_, Refused>(shown.is_empty())
    };
    let hidden = read(&mut item, "content")?;
    if hidden {
        read(&mut item, "summary")?;
    }
    item.ignore(&["summary"]);
    let sealed = item.text("encrypted_content")?;
    item.done()?;
    match sealed {
        // A summary is less than the thought.
        Some(sealed) if hidden => match sealed::open(&sealed) {
            Some(thought) => Ok(thought),
            None if shown.is_empty() => {
                Err(Refused::unsupported("input: `encrypted_content` of another server", "leave the item out"))
            }
            None => Ok(shown),
        },
        _ => Ok(shown),
    }
}
