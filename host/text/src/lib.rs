//! Between messages and token ids: the tokenizer and the chat template of a
//! model, read from and written to the files of a Hugging Face checkpoint.
//! No libtorch here.

mod error;
mod files;
mod model;
pub mod template;
pub mod tokenizer;

pub use error::TextError;
pub use model::TextModel;
pub use template::{ChatTemplate, RenderOptions};
pub use tokenizer::Tokenizer;
