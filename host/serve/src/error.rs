//! What can go wrong while text is generated.

use gavel_policy::PolicyError;
use gavel_text::TextError;

/// A failure of the service.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The request, or the model.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The tokenizer or the chat template.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The step that the request was part of failed.
    #[error("the model failed while it wrote this: {0}")]
    Step(String),
    /// The thread that decodes is gone.
    #[error("the model was stopped")]
    Stopped,
    /// The thread that decodes cannot be started.
    #[error("cannot start a thread for the model: {0}")]
    Thread(std::io::Error),
}
