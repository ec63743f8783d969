//! What can go wrong while responses are generated.

use crate::served::error::ServedError;
use crate::thread_end::Cause;
use gavel_policy::PolicyError;
use gavel_policy::device::DeviceFailure;
use gavel_text::TextError;
use std::sync::Arc;

/// A failure of generation.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The request cannot be served, or the model cannot be loaded.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The tokenizer or the chat template failed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The step that the request was part of failed, for this request or for all of them.
    #[error("the model failed while it drew this response: {0}")]
    Step(Arc<PolicyError>),
    /// The device has failed, and its thread has ended.
    #[error(transparent)]
    Device(Arc<DeviceFailure>),
    /// The device's thread has ended.
    #[error("the model was stopped")]
    Stopped,
    /// A pause was ended before it began.
    #[error("the pause was ended before the responses under way were whole")]
    Resumed,
    /// The servers that draw do not.
    #[error(transparent)]
    Served(#[from] ServedError),
    /// The device's thread cannot be started.
    #[error("cannot start a thread for the model: {0}")]
    Thread(std::io::Error),
}

impl From<Cause> for RolloutError {
    fn from(cause: Cause) -> Self {
        cause.map_or(Self::Stopped, Self::Device)
    }
}
