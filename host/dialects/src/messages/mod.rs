//! Anthropic's Messages: `/v1/messages`.

mod answer;
mod content;
mod dialect;
mod request;
mod stream;

pub(crate) use dialect::Messages;
pub(crate) use request::read;
