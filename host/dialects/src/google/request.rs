//! A request, as a chat request.

use super::contents::{contents, instruction};
use super::dialect::Google;
use super::form::Form;
use super::schema::{Extra, json_schema};
use crate::chat::Chat;
use crate::fields::Fields;
use crate::refused::Refused;
use serde_json::{Value, json};

/// Settings that are the same under another name.
const SETTINGS: [(&str, &str); 9] = [
    ("temperature", "temperature"),
    ("topP", "top_p"),
    ("candidateCount", "n"),
    ("maxOutputTokens", "max_tokens"),
    ("stopSequences", "stop"),
    ("presencePenalty", "presence_penalty"),
    ("frequencyPenalty", "frequency_penalty"),
    ("responseLogprobs", "logprobs"),
    ("logprobs", "top_logprobs"),
];
/// vLLM's settings, whose names are not in camel case.
const MORE: [(&str, &str); 5] = [
    ("minP", "min_p"),
    ("repetitionPenalty", "repetition_penalty"),
    ("logitBias", "logit_bias"),
    ("stopTokenIds", "stop_token_ids"),
    ("ignoreEos", "ignore_eos"),
];

/// The chat request for this model, and how it is answered.
pub(crate) fn read(body: Value, model: &str, form: Form) -> Result<(Value, Google), Refused> {
    let mut fields = Fields::camel(body, "")?;
    let (mut chat, mut asked) = (Chat::default(), Google { form, ..Google::default() });
    chat.set("model", Some(model));
    // Some clients repeat what the path says.
    fields.ignore(&["model"]);
    if let Some(system) = fields.take("systemInstruction") {
        chat.messages.push(json!({"role": "system", "content": instruction(system)?}));
    }
    if !fields.has("contents") {
        return Err(Refused::field("contents", " is missing"));
    }
    contents(fields.list("contents")?, &mut chat)?;
    for (tool, at) in fields.list("tools")?.into_iter().zip(0..) {
        self::tool(Fields::camel(tool, format!("tools[{at}]"))?, &mut chat)?;
    }
    if let Some(config) = fields.take("toolConfig") {
        let mut config = Fields::camel(config, "toolConfig")?;
        if let Some(calling) = config.take("functionCallingConfig") {
            function_calling(Fields::camel(calling, "toolConfig.functionCallingConfig")?, &mut chat)?;
        }
        config.only("includeServerSideToolInvocations", &["false"], "")?;
        config.done()?;
    }
    if let Some(config) = fields.take("generationConfig") {
        generation(Fields::camel(config, "generationConfig")?, &mut chat, &mut asked)?;
    }
    fields.only("store", &["false"], "nothing is kept here")?;
    // Nothing is filtered here, and nothing is billed.
    fields.ignore(&["safetySettings", "labels", "serviceTier"]);
    fields.done()?;
    if asked.form != Form::Whole {
        chat.stream();
    }
    Ok((chat.into_body(), asked))
}

/// The chat request whose tokens are counted.
pub(crate) fn read_counted(body: Value, model: &str) -> Result<Value, Refused> {
    let mut fields = Fields::camel(body, "")?;
    let whole = fields.take("generateContentRequest");
    match whole {
        Some(whole) => {
            fields.done()?;
            Ok(read(whole, model, Form::Whole)?.0)
        }
        None => {
            let contents = fields.take("contents");
            let mut body = json!({"contents": contents});
            // Enterprise clients have these beside the contents.
            for name in ["systemInstruction", "tools", "generationConfig"] {
                body[name] = fields.take(name).unwrap_or(Value::Null);
            }
            fields.ignore(&["model"]);
            fields.done()?;
            Ok(read(body, model, Form::Whole)?.0)
        }
    }
}

fn tool(mut tool: Fields, chat: &mut Chat) -> Result<(), Refused> {
    let place = tool.path("functionDeclarations");
    for (function, at) in tool.list("functionDeclarations")?.into_iter().zip(0..) {
        let mut function = Fields::camel(function, format!("{place}[{at}]"))?;
        let (name, description) = (function.need_text("name")?, function.text("description")?);
        let parameters = match function.take("parametersJsonSchema") {
            Some(schema) => Some(schema),
            None => function.take("parameters").map(|schema| json_schema(schema, Extra::Open)),
        };
        chat.tool(name, description, parameters);
        // What a function answers is not shown to models.
        function.ignore(&["response", "responseJsonSchema"]);
        function.only("behavior", &["UNSPECIFIED", "BLOCKING"], "")?;
        function.done()?;
    }
    let at = tool.at().to_owned();
    tool.done().map_err(|refused| {
        let param = refused.param.unwrap_or(at);
        Refused::unsupported(param, "only functionDeclarations are: nothing is run at the server")
    })
}

fn function_calling(mut config: Fields, chat: &mut Chat) -> Result<(), Refused> {
    let mode = config.text("mode")?.unwrap_or_else(|| "AUTO".into()).to_ascii_uppercase();
    let place = config.path("allowedFunctionNames");
    let names = config.list("allowedFunctionNames")?.into_iter().map(|name| match name {
        Value::String(name) => Ok(name),
        _ => Err(Refused::field(place.as_str(), " must be a list of texts")),
    });
    let names = names.collect::<Result<Vec<String>, Refused>>()?;
    if let Some(name) = names.iter().find(|name| !chat.has_tool(name)) {
        return Err(Refused::field(place, format!(" has {name}, which is no function of the request")));
    }
    let all = chat.tools.iter().all(|tool| names.iter().any(|name| tool["function"]["name"] == name.as_str()));
    match (mode.as_str(), &names[..]) {
        ("AUTO" | "MODE_UNSPECIFIED", []) => chat.set("tool_choice", Some("auto")),
        ("NONE", _) => chat.set("tool_choice", Some("none")),
        ("ANY", []) => chat.set("tool_choice", Some("required")),
        // It is called once.
        ("ANY", [name]) => chat.must_call(name),
        ("ANY", _) if all => chat.set("tool_choice", Some("required")),
        ("ANY", _) => chat.may_call(&names, "required"),
        _ => return Err(Refused::unsupported(config.path("mode"), "AUTO, ANY and NONE are")),
    }
    config.only("streamFunctionCallArguments", &["false"], "")?;
    config.done()
}

fn generation(mut config: Fields, chat: &mut Chat, asked: &mut Google) -> Result<(), Refused> {
    format(&mut config, chat)?;
    // Clients write whole numbers as 40.0.
    let top_k = config.take("topK").map(|k| k.as_f64().filter(|k| k.fract() == 0.0).map_or(k, |k| json!(k as i64)));
    chat.set("top_k", top_k);
    chat.settings(&mut config, &[&SETTINGS[..], &MORE].concat())?;
    let variables = config.take("chatTemplateKwargs");
    if let Some(variables) = variables {
        let mut fields = Fields::of(json!({"chat_template_kwargs": variables}), config.at())?;
        chat.variables(&mut fields)?;
    }
    if let Some(thinking) = config.take("thinkingConfig") {
        let mut thinking = Fields::camel(thinking, config.path("thinkingConfig"))?;
        asked.shows_thoughts = thinking.flag("includeThoughts")?.unwrap_or(false);
        // What the model aims at, not a limit; -1 lets it choose.
        match thinking.take("thinkingBudget").and_then(|budget| budget.as_i64()) {
            Some(0) => chat.think(false),
            Some(1..) => chat.think(true),
            _ => {}
        }
        let level = thinking.text("thinkingLevel")?.filter(|level| level != "THINKING_LEVEL_UNSPECIFIED");
        chat.set("reasoning_effort", level.map(|level| level.to_ascii_lowercase()));
        thinking.done()?;
    }
    if let Some(kinds) = config.take("responseModalities") {
        let is_text = kinds.as_array().is_some_and(|kinds| kinds.iter().all(|kind| kind == "TEXT"));
        if !is_text {
            return Err(Refused::unsupported(config.path("responseModalities"), "only [\"TEXT\"] is"));
        }
    }
    // Of images, and there are none.
    config.ignore(&["mediaResolution"]);
    config.only("enableEnhancedCivicAnswers", &["false"], "")?;
    config.done()
}

/// What the answer is bound to.
fn format(config: &mut Fields, chat: &mut Chat) -> Result<(), Refused> {
    let kind = config.text("responseMimeType")?.unwrap_or_else(|| "text/plain".into());
    let place = config.path("responseMimeType");
    let own = config.take("responseSchema").map(|schema| json_schema(schema, Extra::Closed));
    let json = config.take("responseJsonSchema").or_else(|| config.take("_responseJsonSchema"));
    if own.is_some() && json.is_some() {
        return Err(Refused::field(config.path("responseSchema"), " and `responseJsonSchema` do not go together"));
    }
    let schema = own.or(json);
    match (kind.as_str(), schema) {
        ("text/plain", None) => {}
        ("application/json", None) => chat.set("response_format", Some(json!({"type": "json_object"}))),
        ("application/json", Some(schema)) => chat.schema("output", schema),
        // One of the texts, without quotation marks.
        ("text/x.enum", Some(schema)) if schema["enum"].is_array() => {
            chat.set("structured_outputs", Some(json!({"choice": schema["enum"]})));
        }
        ("text/x.enum", _) => return Err(Refused::field(place, " text/x.enum needs a `responseSchema` with `enum`")),
        ("text/plain", Some(_)) => return Err(Refused::field(place, " must be application/json with a schema")),
        _ => return Err(Refused::unsupported(place, "text/plain, application/json and text/x.enum are")),
    }
    Ok(())
}
