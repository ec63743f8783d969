//! A request, as a chat request.

use super::content::{blocks_as_texts, messages};
use super::dialect::Messages;
use crate::chat::Chat;
use crate::fields::Fields;
use crate::refused::Refused;
use serde_json::{Value, json};

/// Fields that say nothing about what is generated.
const HARMLESS: [&str; 9] = [
    "metadata",
    "service_tier",
    "inference_geo",
    "speed",
    "cache_control",
    "diagnostics",
    "user_profile_id",
    "workspace_id",
    "betas",
];

/// The chat request, and how it is answered.
pub(crate) fn read(body: Value) -> Result<(Value, Messages), Refused> {
    let mut fields = Fields::of(body, "")?;
    let mut chat = Chat::default();
    let mut asked = Messages { is_streamed: fields.flag("stream")?.unwrap_or(false), ..Messages::default() };
    chat.settings(
        &mut fields,
        &[
            ("model", "model"),
            ("max_tokens", "max_tokens"),
            ("temperature", "temperature"),
            ("top_p", "top_p"),
            ("top_k", "top_k"),
            ("stop_sequences", "stop"),
        ],
    )?;
    chat.variables(&mut fields)?;
    if let Some(system) = fields.take("system") {
        let texts = blocks_as_texts(system, "system")?;
        chat.messages.push(json!({"role": "system", "content": crate::chat::content(texts)}));
    }
    if !fields.has("messages") {
        return Err(Refused::field("messages", " is missing"));
    }
    messages(fields.list("messages")?, &mut chat)?;
    for (tool, at) in fields.list("tools")?.into_iter().zip(0..) {
        self::tool(Fields::of(tool, format!("tools[{at}]"))?, &mut chat)?;
    }
    if let Some(choice) = fields.object("tool_choice")? {
        tool_choice(choice, &mut chat)?;
    }
    if let Some(thinking) = fields.object("thinking")? {
        asked.hides_thoughts = self::thinking(thinking, &mut chat)?;
    }
    if let Some(mut config) = fields.object("output_config")? {
        chat.set("reasoning_effort", config.text("effort")?);
        if let Some(format) = config.object("format")? {
            output_format(format, &mut chat)?;
        }
        config.done()?;
    }
    // The name before `output_config`.
    if let Some(format) = fields.object("output_format")? {
        output_format(format, &mut chat)?;
    }
    fields.only("mcp_servers", &["[]"], "connect to MCP servers in the program, and give their tools as `tools`")?;
    fields.ignore(&HARMLESS);
    fields.done()?;
    if asked.is_streamed {
        chat.stream();
    }
    Ok((chat.into_body(), asked))
}

fn tool(mut tool: Fields, chat: &mut Chat) -> Result<(), Refused> {
    tool.only("type", &["custom"], "only tools with `input_schema` are: nothing is run at the server")?;
    let name = tool.need_text("name")?;
    let description = tool.text("description")?;
    let schema = tool.take("input_schema").ok_or_else(|| Refused::field(tool.path("input_schema"), " is missing"))?;
    chat.tool(name, description, Some(schema));
    tool.only("defer_loading", &["false"], "")?;
    tool.only("input_examples", &["[]"], "write the examples into `description`")?;
    if let Some(callers) = tool.take("allowed_callers").filter(|callers| *callers != json!(["direct"])) {
        let what = format!(" must be [\"direct\"], not {}", crate::fields::kind(&callers));
        return Err(Refused::field(tool.path("allowed_callers"), what));
    }
    // A schema always binds where a call is demanded.
    tool.ignore(&["cache_control", "strict", "eager_input_streaming"]);
    tool.done()
}

fn tool_choice(mut choice: Fields, chat: &mut Chat) -> Result<(), Refused> {
    let kind = choice.need_text("type")?;
    let single = choice.flag("disable_parallel_tool_use")? == Some(true);
    chat.set("parallel_tool_calls", single.then_some(false));
    match kind.as_str() {
        "none" => chat.set("tool_choice", Some("none")),
        "auto" => chat.set("tool_choice", Some("auto")),
        "any" => chat.set("tool_choice", Some("required")),
        // It is called once.
        "tool" => {
            let name = choice.need_text("name")?;
            chat.must_call(&name);
        }
        _ => return Err(Refused::field(choice.path("type"), " must be auto, any, tool or none")),
    }
    choice.done()
}

/// Whether thoughts are hidden.
fn thinking(mut thinking: Fields, chat: &mut Chat) -> Result<bool, Refused> {
    match thinking.need_text("type")?.as_str() {
        "enabled" | "adaptive" => chat.think(true),
        "disabled" => chat.think(false),
        _ => return Err(Refused::field(thinking.path("type"), " must be enabled, adaptive or disabled")),
    }
    // What the model aims at, not a limit.
    thinking.ignore(&["budget_tokens"]);
    let hides = match thinking.text("display")?.as_deref() {
        None | Some("summarized") => false,
        Some("omitted") => true,
        Some(_) => return Err(Refused::field(thinking.path("display"), " must be summarized or omitted")),
    };
    thinking.done()?;
    Ok(hides)
}

fn output_format(mut format: Fields, chat: &mut Chat) -> Result<(), Refused> {
    if format.need_text("type")? != "json_schema" {
        return Err(Refused::field(format.path("type"), " must be json_schema"));
    }
    let schema = format.take("schema").ok_or_else(|| Refused::field(format.path("schema"), " is missing"))?;
    chat.schema("output", schema);
    format.done()
}
