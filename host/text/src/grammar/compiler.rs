//! Compiles grammars for the vocabulary of a tokenizer.

use super::error::GrammarError;
use super::lark;
use super::matching::Grammar;
use super::reason::reason;
use super::schema::{self, Taken, bound_to, ends_with_escape};
use super::source::GrammarSource;
use super::tool_calls;
use super::vocabulary;
use crate::tokenizer::Tokenizer;
use crate::tool_calls::ToolCallFormat;
use gavel_data::panics::caught;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::thread;

/// Room for the deepest schema that [`schema::check`] accepts. Only what is used takes memory.
const STACK: usize = 256 << 20;
/// The most bytes of a regular expression.
const MOST_REGEX_BYTES: usize = 16 << 10;
/// The most tools that a reply may call, as in the OpenAI API.
const MOST_TOOLS: usize = 128;
/// The most bytes of a Lark grammar, and of all choices.
const MOST_LARK_BYTES: usize = 64 << 10;

/// Compiles grammars. What all of them need of the vocabulary is made at the first.
pub struct GrammarCompiler {
    tokenizer: Tokenizer,
    factory: OnceLock<Result<ParserFactory, String>>,
}

impl GrammarCompiler {
    /// A compiler of grammars for the tokens of `tokenizer`.
    pub fn new(tokenizer: Tokenizer) -> Self {
        Self { tokenizer, factory: OnceLock::new() }
    }

    /// Compiles a grammar. It takes bounded work: at most some seconds.
    ///
    /// # Errors
    /// The grammar is not one, has no text, needs too much, or has what the library does not support; or the tokenizer
    /// has no bytes of tokens.
    pub fn compile(&self, source: &GrammarSource) -> Result<Grammar, GrammarError> {
        self.on_a_large_stack(source.name(), || match source {
            GrammarSource::JsonObject => Ok(of_schema(&json!({"type": "object"}))),
            GrammarSource::JsonSchema(schema) => {
                schema::check(schema, &mut Taken::default()).map(|()| of_schema(schema))
            }
            GrammarSource::Regex(regex) => {
                check_bytes(regex.len(), MOST_REGEX_BYTES)?;
                match regex.as_str() {
                    "" => Err("it is empty".into()),
                    regex if ends_with_escape(regex) => Err("it ends with a lone `\\`".into()),
                    regex => Ok(TopLevelGrammar::from_regex(regex)),
                }
            }
            GrammarSource::Lark(text) => {
                check_bytes(text.len(), MOST_LARK_BYTES)?;
                lark::check(text)?;
                Ok(TopLevelGrammar::from_lark(text.clone()))
            }
            GrammarSource::Choice(texts) => {
                check_bytes(texts.iter().map(String::len).sum(), MOST_LARK_BYTES)?;
                match texts.is_empty() || texts.iter().any(String::is_empty) {
                    true => Err("it must have texts that are not empty".into()),
                    false => Ok(TopLevelGrammar::from_lark(lark::choice(texts))),
                }
            }
        })
    }

    /// Compiles the grammar of a reply that calls tools in this format: one of `tools`, or, where there is a name, the
    /// tool of this name. The arguments of a call are bound to the parameters of its tool.
    ///
    /// # Errors
    /// As in [`compile`](Self::compile); there is no such tool; or calls in this format cannot be bound.
    pub fn compile_tool_calls(
        &self,
        format: ToolCallFormat,
        tools: &[Value],
        name: Option<&str>,
    ) -> Result<Grammar, GrammarError> {
        self.on_a_large_stack("the tool choice", || {
            let tools = tool_calls::chosen(tools, name)?;
            if tools.len() > MOST_TOOLS {
                return Err(format!("{} tools are more than {MOST_TOOLS}", tools.len()));
            }
            let mut taken = Taken::default();
            for tool in &tools {
                let checked = schema::check(&tool.parameters, &mut taken);
                checked.map_err(|why| format!("the parameters of the tool `{}`: {why}", tool.name))?;
            }
            // A named tool is called once.
            let has_more = name.is_none();
            Ok(TopLevelGrammar::from_lark(tool_calls::lark(format, &tools, has_more, &self.tokenizer)?))
        })
    }

    /// Compiles what `read` gives. Reading and compiling descend into nested schemas.
    fn on_a_large_stack(
        &self,
        what: &str,
        read: impl FnOnce() -> Result<TopLevelGrammar, String> + Send,
    ) -> Result<Grammar, GrammarError> {
        let compiled = thread::scope(|scope| {
            let work = || caught(|| read().and_then(|grammar| self.matcher(grammar))).unwrap_or_else(Err);
            let started =
                thread::Builder::new().name("gavel-grammar".into()).stack_size(STACK).spawn_scoped(scope, work);
            match started {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err("the library panicked".into())),
                Err(error) => Err(format!("a thread cannot be started: {error}")),
            }
        });
        let start = compiled.map_err(|why| GrammarError::new(what, why))?;
        Ok(Grammar::new(start, self.tokenizer.stop_ids()))
    }

    fn matcher(&self, grammar: TopLevelGrammar) -> Result<Matcher, String> {
        let factory = self.factory.get_or_init(|| vocabulary::factory(&self.tokenizer));
        let factory = factory.as_ref().map_err(Clone::clone)?;
        let parser = factory.create_parser(grammar).map_err(|error| reason(&error))?;
        let mut matcher = Matcher::new(Ok(parser));
        // The first step, so that a grammar without a text, or one that needs too much, is refused here.
        matcher.compute_mask().map_err(|error| reason(&error))?;
        Ok(matcher)
    }
}

fn of_schema(schema: &Value) -> TopLevelGrammar {
    TopLevelGrammar::from_json_schema(bound_to(schema))
}

fn check_bytes(bytes: usize, most: usize) -> Result<(), String> {
    if bytes > most { Err(format!("its {bytes} bytes are more than {most}")) } else { Ok(()) }
}
