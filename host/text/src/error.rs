//! Errors of tokenizers and chat templates.

use gavel_data::disk;
use std::path::PathBuf;

/// A failure of a tokenizer or a chat template.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TextError {
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}{}", path.display(), disk::hint(source))]
    Io {
        /// `read`, `write` or `create`.
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The content of a file is wrong.
    #[error("{}: {what}", path.display())]
    File {
        path: PathBuf,
        /// What is wrong, naming the field.
        what: String,
    },
    /// A model has no chat template, as is common for base models.
    #[error("{}: there is no chat template\nhint: add chat_template.jinja, or `chat_template` to tokenizer_config.json", .0.display())]
    NoTemplate(PathBuf),
    /// A text cannot be turned into tokens, or tokens into text.
    #[error("the tokenizer failed: {0}")]
    Tokenizer(String),
    /// A text has so many bytes that its tokens cannot fit, so that it is not tokenised.
    #[error("the prompt has {bytes} bytes, and the {tokens} tokens that fit have at most {most}")]
    TooManyBytes { bytes: usize, most: usize, tokens: usize },
    /// A template refuses a conversation with `raise_exception`.
    #[error("{}{}: the chat template refuses the conversation: {what}\nhint: change the messages, or the template", path.display(), at(*.line))]
    Refused {
        path: PathBuf,
        /// The line of the template, from 1 on.
        line: Option<usize>,
        what: String,
    },
    /// A template renders no text that could follow a reply as it was generated.
    #[error("{}: the chat template cannot continue a conversation after a reply: {what}\nhint: use another chat template", path.display())]
    Continuation { path: PathBuf, what: String },
    /// A template cannot render a conversation.
    #[error("{}{}: the chat template failed: {what}\nhint: correct the template, or remove what it does not support from the messages", path.display(), at(*.line))]
    Template {
        path: PathBuf,
        /// The line of the template, from 1 on.
        line: Option<usize>,
        what: String,
    },
}

pub(crate) type Result<T> = std::result::Result<T, TextError>;

fn at(line: Option<usize>) -> String {
    line.map(|line| format!(", line {line} of the template")).unwrap_or_default()
}
