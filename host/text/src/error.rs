//! What can go wrong with text.

use std::path::PathBuf;

/// A failure of a tokenizer or a chat template.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read`, `write` or `create`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file has a content that is not understood.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, naming the field.
        what: String,
    },
    /// A text cannot be turned into tokens, or tokens into text.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(String),
    /// A conversation cannot be rendered, or the template refused it.
    #[error("the chat template failed: {0}")]
    Template(String),
}

pub(crate) type Result<T> = std::result::Result<T, TextError>;
