//! Chat templates: Jinja templates, rendered as `transformers` renders them.

mod budget;
mod counted;
mod json;
mod measured;
mod methods;
mod python;
mod source;
mod stack;
mod values;
mod variables;

use crate::error::{Result, TextError};
use crate::files;
use crate::tool_calls::ToolCallFormat;
use chrono::{DateTime, Utc};
use gavel_data::Message;
use gavel_data::files::read_regular_text;
use gavel_data::panics;
use measured::measured;
use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind, Value as JinjaValue};
use serde_json::{Map, Value};
use source::{DEFAULT, Source, TOOL_USE};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use variables::{Form, Size};

const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// The most bytes that a byte of a date's format becomes: `%+` is a whole date.
const DATE: usize = 20;

/// Renders a conversation into the text that a model was trained on.
#[derive(Clone)]
pub struct ChatTemplate {
    /// One for each of [`budget::TEXTS`], with fewer steps for longer texts.
    environments: [Environment<'static>; budget::TEXTS.len()],
    /// Empty if the model has none; then no conversation can be rendered.
    sources: Vec<Source>,
    /// The folder in which a template was looked for.
    folder: PathBuf,
    /// The variables of the templates besides the conversation, such as `eos_token`.
    variables: Map<String, Value>,
    form: Form,
    /// The work that a conversation may take.
    work: u64,
}

/// The inputs of a template besides the messages.
#[derive(Debug, Clone, Default)]
pub struct RenderOptions<'a> {
    /// The functions that the model may call, each
    /// `{"type": "function", "function": {"name", "description", "parameters"}}`.
    pub tools: &'a [Value],
    /// Whether the text ends with the beginning of an assistant's message.
    pub add_generation_prompt: bool,
    /// Further variables of the template, such as `enable_thinking`. They win
    /// over [the model's variables](ChatTemplate::set_variables).
    pub variables: Map<String, Value>,
    /// The time of `strftime_now`; without it, the time of the call. It is in
    /// UTC, so that a prompt does not depend on the machine.
    pub now: Option<DateTime<Utc>>,
}

impl<'a> RenderOptions<'a> {
    /// Asks for the assistant's next message, which may call `tools`.
    pub fn prompt(tools: &'a [Value]) -> Self {
        Self { tools, add_generation_prompt: true, ..Self::default() }
    }
}

impl ChatTemplate {
    /// The template that most open models derive theirs from:
    /// `<|im_start|>role\ncontent<|im_end|>\n` for each message.
    pub fn chatml() -> Self {
        let source =
            Source { name: DEFAULT.into(), text: CHATML.into(), path: PathBuf::from("the built-in chat template") };
        #[expect(clippy::expect_used, reason = "the source is a constant, which the tests render")]
        Self::new(vec![source], PathBuf::new(), Map::new()).expect("a valid template")
    }

    /// Reads `chat_template.jinja` in the folder `dir`, with the further ones
    /// in `additional_chat_templates/`, or else the `chat_template` of
    /// `tokenizer_config.json`. Of several, `tool_use` is for conversations
    /// with tools and `default` for the others. A folder without a template is
    /// an error only when a conversation is rendered.
    pub fn load(dir: &Path) -> Result<Self> {
        Self::load_with(dir, dir)
    }

    /// The same as [`load`](Self::load), with the template in the folder `base`
    /// where `dir` has none.
    pub(crate) fn load_with(dir: &Path, base: &Path) -> Result<Self> {
        Self::new(source::sources(dir, base)?, dir.to_owned(), source::special_tokens(dir)?)
    }

    fn new(sources: Vec<Source>, folder: PathBuf, variables: Map<String, Value>) -> Result<Self> {
        let broken = |path: &Path, error: &Error| TextError::File {
            path: path.to_owned(),
            what: format!("the chat template has an error: {}", explain(error)),
        };
        let mut environment = python::environment().map_err(|error| broken(&folder, &error))?;
        let syntax = python::syntax().map_err(|error| broken(&folder, &error))?;
        let mut longest = 0;
        for source in &sources {
            let text = source::prepare(&source.text);
            stack::check(&source.path, &text, &syntax)?;
            let added = stack::deep(|| {
                let (text, literal) = measured(&text, &syntax);
                longest = longest.max(literal);
                environment.add_template_owned(source.name.clone(), text)
            });
            let no_thread = |error| TextError::Io { action: "read", path: source.path.clone(), source: error };
            added.map_err(no_thread)?.map_err(|error| broken(&source.path, &error))?;
        }
        let environments = budget::TEXTS.map(|text| {
            let mut environment = environment.clone();
            environment.set_fuel(Some(budget::steps(longest, text)));
            environment
        });
        let form = Form { text: true, parts: false, arguments_as_text: false };
        let mut template = Self { environments, sources, folder, variables, form, work: budget::PROBE };
        template.form =
            Form::probe(|messages| Some(template.run(template.choose(&[])?, messages, &RenderOptions::default())));
        template.work = budget::WORK;
        Ok(template)
    }

    /// A copy with the template in the file `path` in place of all of its own.
    ///
    /// # Errors
    /// The file cannot be read, or is not a template.
    pub fn replaced_by(&self, path: &Path) -> Result<Self> {
        let text = read_regular_text(path, files::MOST_BYTES).map_err(|error| TextError::File {
            path: path.to_owned(),
            what: format!("the chat template cannot be read: {error}"),
        })?;
        let source = Source { name: DEFAULT.into(), text, path: path.to_owned() };
        Self::new(vec![source], self.folder.clone(), self.variables.clone())
    }

    /// The text of the template, if there is one; if there are several, the default one.
    pub fn source(&self) -> Option<&str> {
        Some(&self.choose(&[])?.text)
    }

    /// The value of `chat_template` in `tokenizer_config.json` for this template.
    pub(crate) fn to_settings(&self) -> Option<Value> {
        source::to_settings(&self.sources)
    }

    /// Sets variables that every conversation is rendered with, such as
    /// `enable_thinking`.
    pub fn set_variables(&mut self, variables: Map<String, Value>) {
        self.variables.extend(variables);
    }

    /// The name of a special token, such as `bos_token`, that the template uses but no variable defines.
    pub fn unknown_token(&self) -> Option<String> {
        let template = self.environments[0].get_template(&self.choose(&[])?.name).ok()?;
        let mut read: Vec<String> = stack::deep(|| template.undeclared_variables(false)).ok()?.into_iter().collect();
        read.retain(|name| name.ends_with("_token") && !self.variables.contains_key(name));
        read.into_iter().min()
    }

    /// The text of a conversation.
    pub fn render(&self, messages: &[Message], options: &RenderOptions<'_>) -> Result<String> {
        self.render_values(&self.values(messages), options)
    }

    /// The messages in the form that the template takes.
    pub(crate) fn values<'m>(&self, messages: impl IntoIterator<Item = &'m Message>) -> Vec<Value> {
        messages.into_iter().map(|message| self.form.message(message)).collect()
    }

    /// The text of a conversation of such [values](Self::values).
    pub(crate) fn render_values(&self, messages: &[Value], options: &RenderOptions<'_>) -> Result<String> {
        let source = self.choose(options.tools).ok_or_else(|| TextError::NoTemplate(self.folder.clone()))?;
        self.run(source, messages, options).map_err(|error| failure(source, &error))
    }

    /// The file with the template for a conversation with these tools, or the folder where there is none.
    pub(crate) fn path(&self, tools: &[Value]) -> PathBuf {
        self.choose(tools).map_or(&self.folder, |source| &source.path).clone()
    }

    /// Whether the template for a conversation with these tools has `text` in it.
    pub(crate) fn mentions(&self, text: &str, tools: &[Value]) -> bool {
        self.choose(tools).is_some_and(|source| source.text.contains(text))
    }

    /// The format in which the model writes tool calls, from the template for
    /// conversations with tools; `None` if it is not known.
    pub fn tool_call_format(&self) -> Option<ToolCallFormat> {
        let for_tools = self.sources.iter().find(|source| source.name == TOOL_USE);
        ToolCallFormat::detect(for_tools.map_or(self.source()?, |source| &source.text))
    }

    /// The template for a conversation with these tools.
    fn choose(&self, tools: &[Value]) -> Option<&Source> {
        let named = |name: &str| self.sources.iter().find(|source| source.name == name);
        let for_tools = if tools.is_empty() { None } else { named(TOOL_USE) };
        for_tools.or_else(|| named(DEFAULT)).or(self.sources.first())
    }

    fn run(
        &self,
        source: &Source,
        messages: &[Value],
        options: &RenderOptions<'_>,
    ) -> std::result::Result<String, Error> {
        let now = options.now.unwrap_or_else(Utc::now);
        let tools =
            if options.tools.is_empty() { JinjaValue::from(()) } else { JinjaValue::from(Serde(options.tools)) };
        let mut variables = BTreeMap::from([
            ("messages", JinjaValue::from(Serde(messages))),
            ("tools", tools),
            ("documents", JinjaValue::from(())),
            ("add_generation_prompt", options.add_generation_prompt.into()),
            ("strftime_now", JinjaValue::from_function(move |format: String| strftime(now, &format))),
        ]);
        let mut size = Size::default();
        messages.iter().chain(options.tools).for_each(|value| size.add(value));
        for (name, value) in self.variables.iter().chain(&options.variables) {
            variables.insert(name, JinjaValue::from(Serde(value)));
            size.add(value);
        }
        let last = budget::TEXTS.len() - 1;
        let mut at = budget::TEXTS.iter().position(|text| size.fits(*text)).unwrap_or(last);
        loop {
            budget::start(budget::TEXTS[at], size.bytes, self.work);
            let rendered = render(&self.environments[at], source, variables.clone());
            match budget::TEXTS.iter().position(|text| budget::needed() <= *text) {
                Some(next) if next > at && rendered.is_err() => at = next,
                _ => return rendered,
            }
        }
    }
}

fn render(
    environment: &Environment<'_>,
    source: &Source,
    variables: BTreeMap<&str, JinjaValue>,
) -> std::result::Result<String, Error> {
    // minijinja 3.0.5 panics at `[][::-1]`: a template must not take the host down.
    let render = || environment.get_template(&source.name)?.render(variables);
    panics::caught(render).unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::InvalidOperation, "the template engine panicked, as it does for `[][::-1]`"))
    })
}

/// The message of an error, with its line in the template.
fn explain(error: &Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("{what} (line {line} of the template)"),
        None => what,
    }
}

/// Tells a template that refuses the conversation from a template that fails.
fn failure(source: &Source, error: &Error) -> TextError {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    let mut line = error.line();
    while let Some(inner) = cause {
        if let Some(raised) = inner.downcast_ref::<python::Raised>() {
            return TextError::Refused { path: source.path.clone(), line, what: raised.0.clone() };
        }
        // The innermost line is the line of the error; the others called it.
        line = inner.downcast_ref::<Error>().and_then(Error::line).or(line);
        cause = inner.source();
    }
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    TextError::Template { path: source.path.clone(), line, what }
}

fn strftime(now: DateTime<Utc>, format: &str) -> std::result::Result<String, Error> {
    budget::charge_bytes(format.len(), budget::SPELL)?;
    budget::charge(format.len().saturating_mul(DATE))?;
    let mut text = String::new();
    match write!(text, "{}", now.format(format)) {
        Ok(()) => Ok(text),
        Err(_) => {
            Err(Error::new(ErrorKind::InvalidOperation, format!("strftime_now does not know the format {format:?}")))
        }
    }
}
