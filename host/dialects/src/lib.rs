//! The dialects in which programs ask language models: OpenAI's Responses, Anthropic's Messages and Google's
//! `generateContent`. Each is a translation of its requests to `/v1/chat/completions`, and of what that answers back, as
//! a whole or as a stream. What answers is a [`ChatServer`].

mod chat;
mod deltas;
mod dialect;
mod fields;
mod google;
mod messages;
mod mount;
mod refused;
mod reply;
mod responses;
mod sealed;
mod sse;

pub use mount::{ChatServer, router, with_key_of_query};
