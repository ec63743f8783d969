//! Turns messages into token ids and replies into messages. It has the
//! tokenizer and the chat template of a model, as files of a Hugging Face
//! checkpoint, and parses the tool calls in replies. It also binds replies to
//! grammars. It does not use libtorch.

mod byte_char;
mod content;
mod continuation;
mod error;
mod files;
pub mod grammar;
mod history;
mod model;
mod prompt;
mod renderer;
mod special_texts;
mod stop;
pub mod stream;
pub mod template;
pub mod tokenizer;
pub mod tool_calls;

pub use content::ContentError;
pub use error::TextError;
pub use grammar::{Grammar, GrammarCompiler, GrammarError, GrammarSource};
pub use history::{History, HistoryCheck};
pub use model::TextModel;
pub use stop::{Certain, MOST_STOP_BYTES, MOST_STOP_TEXTS, StopTexts, StopTextsError, check_stop_texts};
pub use stream::DecodeStream;
pub use template::{ChatTemplate, RenderOptions};
pub use tokenizer::{TokenText, Tokenizer};
pub use tool_calls::{MalformedCall, Reply, ToolCallFormat};
