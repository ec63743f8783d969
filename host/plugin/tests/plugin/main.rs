//! Plugins in the sandbox.
//! Linking a program takes longer than most of these tests, so they are one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod calls;
mod chat;
mod common;
mod contracts;
mod exec;
mod full;
mod grants;
mod groups;
mod http;
mod outcomes;
mod reading;
mod snapshots;
mod tools;
mod trace;
