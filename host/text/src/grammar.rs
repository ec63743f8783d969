//! Grammars that bind responses: JSON schemas, regular expressions, choices, context-free grammars and tool calls.
//!
//! The library `llguidance` reads them. It finds which tokens may follow the tokens of a response, and it counts its
//! work, so that a grammar that needs too much is refused and never hangs. What a schema may cost before the library
//! counts is found by `schema` first.

mod compiler;
mod error;
mod lark;
mod matching;
mod reason;
mod schema;
mod source;
mod tool_calls;
mod vocabulary;

pub use compiler::GrammarCompiler;
pub use error::GrammarError;
pub use matching::Grammar;
pub use source::GrammarSource;
