//! The contents of a request, as chat messages.

use crate::chat::{Chat, Turn, arguments, content, result};
use crate::fields::{Fields, kind};
use crate::refused::Refused;
use crate::sealed;
use serde_json::{Value, json};

/// The calls of a conversation. They need not have ids, so each gets one, as replies of Gavel number theirs.
#[derive(Debug, Default)]
struct Calls {
    made: usize,
    /// Id and name of those without a result.
    waiting: Vec<(String, String)>,
}

/// Adds the contents. Neighbours of the model are one message: a streamed reply comes back as one content a piece.
pub(super) fn contents(contents: Vec<Value>, chat: &mut Chat) -> Result<(), Refused> {
    let (mut turn, mut calls) = (Turn::default(), Calls::default());
    for (one, at) in contents.into_iter().zip(0..) {
        let mut one = Fields::camel(one, format!("contents[{at}]"))?;
        let role = one.text("role")?.unwrap_or_else(|| "user".into());
        let place = one.path("parts");
        let parts = one.list("parts")?;
        match role.as_str() {
            "model" => {
                for (part, at) in parts.into_iter().zip(0..) {
                    of_model(Fields::camel(part, format!("{place}[{at}]"))?, &mut turn, &mut calls)?;
                }
            }
            "user" | "function" => {
                chat.messages.extend(turn.message());
                of_user(parts, &place, &mut calls, chat)?;
            }
            _ => return Err(Refused::field(one.path("role"), " must be user or model")),
        }
        one.done()?;
    }
    chat.messages.extend(turn.message());
    Ok(())
}

/// The text of the system's instruction, which is a content.
pub(super) fn instruction(system: Value) -> Result<Value, Refused> {
    if let Value::String(text) = system {
        return Ok(text.into());
    }
    let mut system = Fields::camel(system, "systemInstruction")?;
    let place = system.path("parts");
    system.ignore(&["role"]);
    let one = |(part, at): (Value, usize)| text(Fields::camel(part, format!("{place}[{at}]"))?);
    let texts = system.list("parts")?.into_iter().zip(0..).map(one).collect::<Result<_, _>>()?;
    system.done()?;
    Ok(content(texts))
}

/// The text of a part that has nothing else.
fn text(mut part: Fields) -> Result<String, Refused> {
    let said = part.text("text")?;
    part.ignore(&["thoughtSignature", "partMetadata", "mediaResolution"]);
    let at = part.at().to_owned();
    part.done()?;
    said.ok_or_else(|| Refused::field(at, " has no `text`"))
}

fn of_model(mut part: Fields, turn: &mut Turn, calls: &mut Calls) -> Result<(), Refused> {
    let is_thought = part.flag("thought")? == Some(true);
    if let Some(hidden) = part.text("thoughtSignature")?.as_deref().and_then(sealed::open) {
        // It was not shown, so it is not there as text.
        turn.think(&hidden);
    }
    if let Some(call) = part.take("functionCall") {
        let mut call = Fields::camel(call, part.path("functionCall"))?;
        let name = call.need_text("name")?;
        let id = call.text("id")?.unwrap_or_else(|| format!("call{:05}", calls.made));
        let input = call.take("args").unwrap_or_else(|| json!({}));
        call.only("willContinue", &["false"], "")?;
        call.done()?;
        calls.made += 1;
        turn.call(&id, &name, &arguments(input));
        calls.waiting.push((id, name));
        part.ignore(&["partMetadata"]);
        return part.done();
    }
    let said = text(part)?;
    if is_thought {
        turn.think(&said)
    } else {
        turn.say(&said)
    }
    Ok(())
}

fn of_user(parts: Vec<Value>, place: &str, calls: &mut Calls, chat: &mut Chat) -> Result<(), Refused> {
    let mut texts = Vec::new();
    let mut results = 0;
    for (part, at) in parts.into_iter().zip(0..) {
        let mut part = Fields::camel(part, format!("{place}[{at}]"))?;
        match part.take("functionResponse") {
            None => texts.push(text(part)?),
            Some(response) => {
                say(&mut texts, chat);
                let answer = self::result_of(Fields::camel(response, part.path("functionResponse"))?, calls)?;
                part.ignore(&["partMetadata", "thoughtSignature"]);
                part.done()?;
                chat.messages.push(answer);
                results += 1;
            }
        }
    }
    if !texts.is_empty() || results == 0 {
        chat.messages.push(json!({"role": "user", "content": content(texts)}));
    }
    Ok(())
}

fn say(texts: &mut Vec<String>, chat: &mut Chat) {
    if !texts.is_empty() {
        chat.messages.push(json!({"role": "user", "content": content(std::mem::take(texts))}));
    }
}

/// The message with the result of a call: that of its id, else the first of its name that waits for one.
fn result_of(mut response: Fields, calls: &mut Calls) -> Result<Value, Refused> {
    let (id, name) = (response.text("id")?, response.text("name")?.unwrap_or_default());
    let found = calls.waiting.iter().position(|(made, of)| match &id {
        Some(id) => made == id,
        None => *of == name,
    });
    let id = match (found, id) {
        (Some(at), _) => calls.waiting.remove(at).0,
        (None, Some(id)) => id,
        (None, None) => {
            return Err(Refused::field(
                response.path("name"),
                " is of no function that was called and has no response",
            ));
        }
    };
    let place = response.path("response");
    let answer = match response.take("response").unwrap_or_else(|| json!({})) {
        // As the maker reads it: `output` and `error` are its fields, and without them the whole is the output.
        Value::Object(map) if map.len() == 1 && map.contains_key("output") => {
            map.into_iter().next().map_or(Value::Null, |(_, output)| output)
        }
        Value::Object(map) => map.into(),
        other => return Err(Refused::field(place, format!(" must be an object, not {}", kind(&other)))),
    };
    response.only("parts", &["[]"], "only `response` is")?;
    response.only("willContinue", &["false"], "")?;
    // Of calls that go on beside others.
    response.ignore(&["scheduling"]);
    response.done()?;
    Ok(result(&id, arguments(answer)))
}
