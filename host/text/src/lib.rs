//! Between messages and token ids: the tokenizer and the chat template of a
//! model, read from and written to the files of a Hugging Face checkpoint, and
//! the tool calls in what a model replies. No libtorch here.

mod byte_char;
mod error;
mod files;
mod model;
mod stop;
pub mod stream;
pub mod template;
pub mod tokenizer;
pub mod tool_calls;

pub use error::TextError;
pub use model::TextModel;
pub use stop::{Certain, StopTexts};
pub use stream::DecodeStream;
pub use template::{ChatTemplate, RenderOptions};
pub use tokenizer::{TokenText, Tokenizer};
pub use tool_calls::{Reply, ToolCallFormat};
