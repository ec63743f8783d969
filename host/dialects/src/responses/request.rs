//! A request, as a chat request.

use super::dialect::Responses;
use super::items::items;
use super::told::Told;
use crate::chat::{Chat, check};
use crate::fields::{Fields, kind};
use crate::refused::Refused;
use serde_json::{Value, json};

/// Fields that say nothing about what is generated.
const HARMLESS: [&str; 8] = [
    "user",
    "safety_identifier",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    // Of tools that are run at the server, and there are none.
    "max_tool_calls",
    "access_programs",
];
/// What `include` may name of things that no answer has.
const NEVER: [&str; 6] = [
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
];
/// The most of `metadata`, as at the maker's. The answer repeats it.
const METADATA: (usize, usize) = (16, 512);

/// The chat request, and how it is answered.
pub(crate) fn read(body: Value) -> Result<(Value, Responses), Refused> {
    let mut fields = Fields::of(body, "")?;
    let (mut chat, mut told) = (Chat::default(), Told::default());
    let is_streamed = fields.flag("stream")?.unwrap_or(false);
    kept_nowhere(&mut fields)?;
    if let Some(metadata) = fields.take("metadata") {
        told.fields.insert("metadata".into(), self::metadata(metadata)?);
    }
    let instructions = fields.text("instructions")?;
    if let Some(text) = &instructions {
        chat.messages.push(json!({"role": "system", "content": text}));
    }
    match fields.take("input") {
        None => return Err(Refused::field("input", " is missing")),
        Some(Value::String(text)) => chat.messages.push(json!({"role": "user", "content": text})),
        Some(Value::Array(list)) => items(list, &mut chat)?,
        Some(other) => {
            return Err(Refused::field("input", format!(" must be a text or a list of items, not {}", kind(&other))));
        }
    }
    let tools = fields.list("tools")?;
    for (tool, at) in tools.iter().cloned().zip(0..) {
        self::tool(Fields::of(tool, format!("tools[{at}]"))?, &mut chat)?;
    }
    let choice = fields.take("tool_choice");
    if let Some(choice) = &choice {
        tool_choice(choice.clone(), &mut chat)?;
    }
    includes(&mut fields, &mut chat, &mut told)?;
    reasoning(&mut fields, &mut chat, &mut told)?;
    text(&mut fields, &mut chat, &mut told)?;
    for name in ["temperature", "top_p", "max_output_tokens"] {
        if let Some(value) = fields.take(name) {
            let of_chat = if name == "max_output_tokens" { "max_tokens" } else { name };
            check(of_chat, &value, || name.into())?;
            told.fields.insert(name.into(), value.clone());
            chat.set(of_chat, Some(value));
        }
    }
    chat.settings(
        &mut fields,
        &[("model", "model"), ("top_k", "top_k"), ("stop", "stop"), ("parallel_tool_calls", "parallel_tool_calls")],
    )?;
    chat.variables(&mut fields)?;
    fields.ignore(&HARMLESS);
    fields.done()?;
    // A large request is not repeated where the model does not see it.
    let is_shown = choice.as_ref() != Some(&"none".into());
    told.fields.insert("instructions".into(), instructions.map_or(Value::Null, Value::from));
    told.fields.insert("tools".into(), if is_shown { tools.into() } else { json!([]) });
    told.fields.insert("tool_choice".into(), choice.unwrap_or_else(|| "auto".into()));
    if is_streamed {
        chat.stream();
    }
    Ok((chat.into_body(), Responses { is_streamed, told, ..Responses::default() }))
}

/// Refuses what needs earlier requests, or answers that are kept.
fn kept_nowhere(fields: &mut Fields) -> Result<(), Refused> {
    let whole = "nothing is kept here: send the whole conversation as `input`";
    for name in ["previous_response_id", "conversation", "prompt"] {
        fields.only(name, &[], whole)?;
    }
    fields.only("store", &["false"], whole)?;
    fields.only("background", &["false"], "wait for the answer, or stream it")?;
    fields.only("context_management", &["[]"], "shorten `input` in the program")?;
    // Nothing is dropped: a prompt that is too long is refused either way.
    fields.only("truncation", &["auto", "disabled"], "")?;
    if let Some(mut options) = fields.object("stream_options")? {
        options.only("include_obfuscation", &["false"], "")?;
        options.done()?;
    }
    Ok(())
}

fn metadata(metadata: Value) -> Result<Value, Refused> {
    let (most, bytes) = METADATA;
    let fits = |(name, value): (&String, &Value)| {
        name.len() <= bytes && value.as_str().is_some_and(|text| text.len() <= 4 * bytes)
    };
    match &metadata {
        Value::Object(map) if map.len() <= most && map.iter().all(fits) => Ok(metadata),
        _ => {
            Err(Refused::field("metadata", format!(" must be an object of at most {most} texts of {bytes} characters")))
        }
    }
}

fn tool(mut tool: Fields, chat: &mut Chat) -> Result<(), Refused> {
    match tool.need_text("type")?.as_str() {
        "function" => {}
        _ => return Err(Refused::unsupported(tool.path("type"), "only functions are: nothing is run at the server")),
    }
    let (name, description) = (tool.need_text("name")?, tool.text("description")?);
    let parameters = tool.take("parameters");
    chat.tool(name, description, parameters);
    tool.only("defer_loading", &["false"], "")?;
    tool.only("async", &["false"], "")?;
    if let Some(callers) = tool.take("allowed_callers").filter(|callers| *callers != json!(["direct"])) {
        return Err(Refused::field(
            tool.path("allowed_callers"),
            format!(" must be [\"direct\"], not {}", kind(&callers)),
        ));
    }
    // A schema always binds where a call is demanded.
    tool.ignore(&["strict"]);
    tool.done()
}

fn tool_choice(choice: Value, chat: &mut Chat) -> Result<(), Refused> {
    if let Some(text) = choice.as_str() {
        return match text {
            "auto" | "none" | "required" => {
                chat.set("tool_choice", Some(text));
                Ok(())
            }
            _ => Err(Refused::field(
                "tool_choice",
                " must be auto, none, required, or {\"type\": \"function\", \"name\": …}",
            )),
        };
    }
    let mut choice = Fields::of(choice, "tool_choice")?;
    match choice.need_text("type")?.as_str() {
        "function" => {
            let name = choice.need_text("name")?;
            chat.must_call(&name);
        }
        "allowed_tools" => {
            let mode = choice.need_text("mode")?;
            let names = choice
                .list("tools")?
                .into_iter()
                .zip(0..)
                .map(|(tool, at)| Fields::of(tool, format!("tool_choice.tools[{at}]"))?.need_text("name"));
            let names = names.collect::<Result<Vec<String>, Refused>>()?;
            let all = chat.tools.iter().all(|tool| names.iter().any(|name| tool["function"]["name"] == name.as_str()));
            match (mode.as_str(), &names[..]) {
                ("auto" | "required", _) if all => chat.set("tool_choice", Some(mode.as_str())),
                ("required", [name]) => chat.must_call(name),
                ("auto" | "required", _) => chat.may_call(&names, &mode),
                _ => return Err(Refused::field("tool_choice.mode", " must be auto or required")),
            }
        }
        _ => return Err(Refused::unsupported("tool_choice.type", "function and allowed_tools are")),
    }
    choice.done()
}

/// `include` and `top_logprobs`.
fn includes(fields: &mut Fields, chat: &mut Chat, told: &mut Told) -> Result<(), Refused> {
    for (name, at) in fields.list("include")?.into_iter().zip(0..) {
        match name.as_str() {
            Some("message.output_text.logprobs") => told.logprobs = true,
            Some("reasoning.encrypted_content") => told.seals_thoughts = true,
            Some(name) if NEVER.contains(&name) => {}
            _ => return Err(Refused::unsupported(format!("include[{at}]"), "leave it out")),
        }
    }
    let top = fields.take("top_logprobs");
    told.logprobs |= top.as_ref().is_some_and(|top| top.as_u64() != Some(0));
    if told.logprobs {
        chat.set("logprobs", Some(true));
        chat.set("top_logprobs", top.clone());
    }
    if let Some(top) = top.filter(Value::is_number) {
        told.fields.insert("top_logprobs".into(), top);
    }
    Ok(())
}

fn reasoning(fields: &mut Fields, chat: &mut Chat, told: &mut Told) -> Result<(), Refused> {
    let Some(mut reasoning) = fields.object("reasoning")? else { return Ok(()) };
    let effort = reasoning.text("effort")?;
    if effort.as_ref().is_some_and(|effort| effort.len() > 64) {
        return Err(Refused::field(reasoning.path("effort"), " is longer than any effort"));
    }
    // Thoughts are given as they are, without a summary.
    reasoning.ignore(&["summary", "generate_summary"]);
    reasoning.only("context", &["auto"], "the chat template decides which thoughts the model sees again")?;
    reasoning.only("mode", &["standard"], "")?;
    reasoning.done()?;
    told.fields.insert("reasoning".into(), json!({"effort": effort, "summary": null}));
    chat.set("reasoning_effort", effort);
    Ok(())
}

/// `text`: the format of the answer.
fn text(fields: &mut Fields, chat: &mut Chat, told: &mut Told) -> Result<(), Refused> {
    let Some(mut text) = fields.object("text")? else { return Ok(()) };
    text.only("verbosity", &["medium"], "ask for it in `instructions`")?;
    let format = text.take("format");
    text.done()?;
    let Some(format) = format else { return Ok(()) };
    told.fields.insert("text".into(), json!({"format": format.clone()}));
    let mut format = Fields::of(format, "text.format")?;
    match format.need_text("type")?.as_str() {
        "text" => {}
        "json_object" => chat.set("response_format", Some(json!({"type": "json_object"}))),
        "json_schema" => {
            let name = format.text("name")?.unwrap_or_else(|| "output".into());
            let schema = format.take("schema").ok_or_else(|| Refused::field("text.format.schema", " is missing"))?;
            chat.schema(&name, schema);
            // A schema always binds.
            format.ignore(&["strict", "description"]);
        }
        _ => return Err(Refused::field("text.format.type", " must be text, json_object or json_schema")),
    }
    format.done()
}
