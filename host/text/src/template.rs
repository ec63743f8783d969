//! Chat templates: Jinja, as `transformers` runs it.

use crate::error::{Result, TextError};
use crate::files;
use gavel_data::{ContentPart, Message};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::Path;

const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
const NAME: &str = "chat_template";

/// Renders a conversation into the text that a model was trained on.
#[derive(Clone)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
    /// What the template sees besides the conversation: `eos_token` and so on.
    special_tokens: Map<String, Value>,
}

impl ChatTemplate {
    /// The template that most open models derive theirs from:
    /// `<|im_start|>role\ncontent<|im_end|>\n` for each message.
    pub fn chatml() -> Self {
        #[expect(clippy::expect_used, reason = "the source is a constant, which the tests render")]
        Self::new(CHATML.to_owned(), Map::new()).expect("a valid template")
    }

    /// Reads `chat_template.jinja` in the folder `dir`, or else the
    /// `chat_template` of `tokenizer_config.json` (of several, `default`).
    pub fn load(dir: &Path) -> Result<Self> {
        let file = dir.join("chat_template.jinja");
        let settings_file = dir.join("tokenizer_config.json");
        let mut settings = files::read_object(&settings_file)?;
        let (path, source) = match files::read(&file)? {
            Some(source) => (file, source),
            None => match settings.remove(NAME).as_ref().and_then(default_template) {
                Some(source) => (settings_file, source.to_owned()),
                None => {
                    return Err(TextError::File {
                        path: dir.to_owned(),
                        what: "there is no chat template: add chat_template.jinja, or `chat_template` to tokenizer_config.json".into(),
                    });
                }
            },
        };
        let special_tokens = settings
            .iter()
            .filter(|(name, _)| name.ends_with("_token"))
            .filter_map(|(name, value)| Some((name.clone(), files::token_text(value)?.into())))
            .collect();
        Self::new(source, special_tokens).map_err(|error| TextError::File {
            path,
            what: format!("the chat template has an error: {}", explain(&error)),
        })
    }

    fn new(source: String, special_tokens: Map<String, Value>) -> std::result::Result<Self, Error> {
        let mut environment = Environment::new();
        // As transformers sets Jinja up.
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", strftime_now);
        environment.add_filter("tojson", tojson);
        environment.add_template_owned(NAME, source.clone())?;
        Ok(Self { environment, source, special_tokens })
    }

    /// The text of the template.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The text of a conversation; with `add_generation_prompt`, up to where
    /// the assistant's next message begins.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String> {
        let mut context = self.special_tokens.clone();
        context.insert("messages".into(), messages.iter().map(message_value).collect());
        context.insert("add_generation_prompt".into(), add_generation_prompt.into());
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render(minijinja::Value::from(Serde(&context))))
            .map_err(|error| TextError::Template(explain(&error)))
    }
}

/// The template itself, or the one named `default` in a list.
fn default_template(value: &Value) -> Option<&str> {
    match value {
        Value::Array(list) => list.iter().find(|entry| entry["name"] == "default")?["template"].as_str(),
        other => other.as_str(),
    }
}

/// A message as templates expect it: content that is all text is one string,
/// and the arguments of tool calls are objects, not text.
fn message_value(message: &Message) -> Value {
    let mut value = Map::from_iter([("role".to_owned(), message.role.as_str().into())]);
    let only_text = message.content.iter().all(|part| matches!(part, ContentPart::Text(_)));
    let content =
        if only_text { message.text().into() } else { message.content.iter().cloned().map(Value::from).collect() };
    value.insert("content".into(), content);
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            let arguments =
                serde_json::from_str::<Value>(&call.arguments).unwrap_or_else(|_| call.arguments.as_str().into());
            json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
        });
        value.insert("tool_calls".into(), calls.collect());
    }
    for (name, text) in [("tool_call_id", &message.tool_call_id), ("name", &message.name)] {
        if let Some(text) = text {
            value.insert(name.into(), text.as_str().into());
        }
    }
    Value::Object(value)
}

/// The message of an error, and where in the template it is.
fn explain(error: &Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("{what} (line {line} of the template)"),
        None => what,
    }
}

/// How a template says that it does not take a conversation.
fn raise_exception(message: String) -> std::result::Result<String, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// The time now, in UTC, so that a prompt does not depend on the machine.
fn strftime_now(format: String) -> std::result::Result<String, Error> {
    let mut text = String::new();
    match write!(text, "{}", chrono::Utc::now().format(&format)) {
        Ok(()) => Ok(text),
        Err(_) => {
            Err(Error::new(ErrorKind::InvalidOperation, format!("strftime_now does not know the format {format:?}")))
        }
    }
}

/// JSON with Python's spacing and without HTML escapes, as in transformers.
fn tojson(value: minijinja::Value, options: Kwargs) -> std::result::Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let mut text = Vec::new();
    let written = match indent {
        None => value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, PythonSpacing)),
        Some(width) => {
            let indent = " ".repeat(width);
            let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, formatter))
        }
    };
    let invalid = |what: String| Error::new(ErrorKind::BadSerialization, what);
    written.map_err(|error| invalid(error.to_string()))?;
    String::from_utf8(text).map_err(|error| invalid(error.to_string()))
}

/// `{"a": 1, "b": [1, 2]}`
struct PythonSpacing;

impl serde_json::ser::Formatter for PythonSpacing {
    fn begin_array_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}
