//! Tokenizers, chat templates and the calls in replies.
//! Linking a program takes longer than most of these tests, so they are one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod chat_templates;
mod checkpoints;
mod continuation;
mod families;
mod grammars;
mod special_texts;
mod tokenizers;
mod tool_call_marks;
mod tool_call_parity;
mod tool_calls;
